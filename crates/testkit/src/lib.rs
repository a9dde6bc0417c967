//! Fixtures for tests that speak to a live Kennel as users do. Never shipped.
//!
//! ```text
//!  Kennel (a child process, a data directory of its own, a free port)
//!    ▲ admin.kubeconfig
//!    │
//!  Kubectl (a real kubectl of a given version)     session (a file that reads like a terminal)
//! ```
//!
//! It contains no rules of Kubernetes: it starts processes, sends requests, and compares output.
//! A fixture that cannot do its work panics with what it saw, so that a test reads as a story.

mod agent;
mod controller;
mod dashboard;
mod eventually;
pub mod faulty;
mod fetch;
pub mod fuzz;
mod helm;
pub mod history;
pub mod inprocess;
mod kubectl;
mod library;
pub mod machine;
pub mod older;
mod process;
pub mod session;
pub mod terminal;
mod visitor;
mod wire;

pub use agent::{Agent, AgentPlan};
pub use controller::Controller;
pub use dashboard::Dashboard;
pub use eventually::{Deadline, eventually};
pub use fetch::{fetch, fetch_within};
pub use helm::Helm;
pub use kennel_test_support::fresh_seed;
pub use kubectl::{Answer, Kubectl, Version};
pub use library::Library;
pub use process::Kennel;
pub use visitor::{Answered, Events, Visitor};
pub use wire::{Access, Reply, Wire};

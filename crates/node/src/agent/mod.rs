//! A node: this machine, looked after for a cluster.
//!
//! ```text
//!   settings, machine ─▶ start ─┬▶ identity   certificates: got, kept fresh
//!                               ├▶ lease      a sign of life; one agent per node
//!                               ├▶ heartbeat  the Node object: registered, kept true (node, register)
//!                               └▶ the other rooms of this crate
//! ```

pub mod choose;
mod heartbeat;
pub mod identity;
mod lease;
pub mod lock;
pub mod machine;
mod news;
pub mod node;
mod register;
mod serving;
pub mod settings;
pub mod start;

pub use machine::Machine;
pub use settings::{ApiAddress, Paths, Settings};
pub use start::{Cluster, Start, StartError};

//! `kennel agent`, and what all our programs share.
//!
//! ```text
//!   args ─▶ run ─▶ node (settings, runtime) ─▶ kennel_node::agent
//!
//!   every program: logging · signals · notify · memory · descriptors · cluster (clients of the API) · kubeconfig_certificate
//! ```
//!
//! This crate also builds a small program of its own (`main.rs`). A release build of `kennel` embeds that program, and
//! `kennel agent` executes it to use less memory. Servers and controllers must not be linked into it.

pub mod args;
pub mod cluster;
pub mod descriptors;
pub mod flag_values;
pub mod kubeconfig_certificate;
pub mod logging;
pub mod memory;
pub mod new_files;
pub mod node;
pub mod notify;
mod run;
mod runtime_choice;
pub mod service_proxy;
pub mod signals;

pub use run::{check, run};

/// Worker threads of an agent: few, to use little memory.
pub const THREADS: usize = 2;

//! The program of a node: `kennel agent` and nothing else, and what every program of ours has in common.
//!
//! ```text
//!   args ─▶ run ─▶ node (settings, runtime) ─▶ kennel_node::agent
//!
//!   every program: logging · signals · notify · memory · descriptors · cluster (whose API we speak to)
//! ```
//!
//! It is a crate of its own so that it can be linked alone, small (`main.rs`): a release build of `kennel` carries
//! that program, and `kennel agent` becomes it. What a server or a controller needs must not come in here.

pub mod args;
pub mod cluster;
pub mod descriptors;
pub mod logging;
pub mod memory;
pub mod node;
pub mod notify;
mod run;
pub mod signals;

pub use run::run;

/// The threads of an agent: a guest on somebody's machine keeps small.
pub const THREADS: usize = 2;

//! A node: this machine, looked after for a cluster.

pub mod settings;

pub use settings::{ApiAddress, Paths, Settings};

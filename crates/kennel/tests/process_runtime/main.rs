//! Containers as plain processes: the runtime with real shims, on this machine. As root, as agents run.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod faults;
mod files;
mod lives;
mod looking_in;
mod rights;
mod without_root;
mod world;

//! Containers as plain processes: the runtime with real shims, on this machine. As root, as agents run.

mod exec_and_logs;
mod faults;
mod files;
pub(crate) mod fixture;
mod lifecycle;
mod security_context;
mod without_root;

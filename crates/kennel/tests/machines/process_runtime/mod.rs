//! Containers as plain processes: the runtime with real shims, on this machine. As root, as agents run.

mod faults;
mod files;
mod fixture;
mod lives;
mod looking_in;
mod rights;
mod without_root;

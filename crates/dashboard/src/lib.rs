//! `kennel dashboard`: a page about the DaemonSets of any cluster.
//!
//! ```text
//!   browser ─▶ server (connections) ─▶ app ─▶ access (token, cookie, Host, Origin)
//!                                       ├─▶ page      embedded files
//!                                       ├─▶ answers   one request: why, history, diff, node; logs
//!                                       ├─▶ streams   server-sent events ◀─ watching ◀─ kennel_inspect::live
//!                                       └─▶ actions   the annotations of commands
//! ```
//!
//! It watches and reads through `kennel_inspect`, and writes only when changes are allowed: the annotations of commands,
//! and the template of an earlier revision for `undo`. It never imports `server`, `store` or `node`: it works with any
//! Kubernetes API.

mod access;
mod actions;
mod answers;
mod app;
#[cfg(test)]
mod colours_tests;
mod failure;
mod hosts;
#[cfg(test)]
mod language_tests;
pub mod page;
pub mod protocol;
mod reply;
mod route;
mod secret;
mod server;
mod streams;
mod tls;
mod undo;
mod watching;

pub use secret::NoRandomness;
pub use server::{Dashboard, Listen, PORT, Settings, StartError};
pub use tls::{TlsError, TlsFiles};

//! Looking in: the agent's own HTTPS server, which speaks the kubelet's API to the API server.
//!
//! ```text
//!   kubectl ─▶ API server ─▶ server ─▶ gate (who are you, may you?) ─▶ desk ─┬▶ logs    files of the machine
//!                                                                            ├▶ stream  exec, attach, port-forward
//!                                                                            └▶ pages   pods, metrics
//! ```
//!
//! Nothing here changes a pod or decides about one.

mod answer;
mod counted;
mod desk;
#[cfg(test)]
mod fake;
mod gate;
pub mod logs;
mod pages;
mod route;
mod server;
pub mod stream;

pub use self::counted::{Counted, METRICS as OPERATIONS};
pub use self::pages::METRICS;
pub use self::server::{Rooms, serve};

#[cfg(test)]
mod tests;

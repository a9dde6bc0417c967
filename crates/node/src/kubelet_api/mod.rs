//! The kubelet API: the agent's own HTTPS server, which the API server calls for logs, exec, attach and port-forward.
//!
//! ```text
//!   kubectl ─▶ API server ─▶ server ─▶ auth ─▶ handlers ─┬▶ container_logs   log files of this machine
//!                                                        ├▶ stream           exec, attach, port-forward
//!                                                        ├▶ node_endpoints   /pods, /metrics
//!                                                        ├▶ usage            /stats/summary, /metrics/resource, /metrics/cadvisor
//!                                                        └▶ configz          /configz
//! ```
//!
//! The rest of the agent uses only what is re-exported here, [`container_logs::rotate`], and the SPDY client in
//! [`stream`]. Nothing here changes a pod.

mod auth;
mod configz;
pub mod container_logs;
mod handlers;
mod node_endpoints;
mod response;
mod route;
mod server;
pub mod stream;
mod unauthenticated;
mod usage;

pub use self::node_endpoints::METRICS;
pub use self::server::{ServerContext, serve};
pub use self::usage::{CADVISOR_METRICS, RESOURCE_METRICS};

#[cfg(test)]
mod tests;

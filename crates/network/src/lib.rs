//! The pod network of a node: what the kernel and the container runtime need, so that pods reach the pods of all nodes.
//! [`kennel_core::pod_network`] decides what that is; this crate applies it, and takes it away again.
//!
//! ```text
//!   members ─▶ core::pod_network::plan ─▶ Network ─┬─ kernel      links, addresses, routes, neighbours (rtnetlink)
//!                                                  ├─ masquerade  a table of nftables
//!                                                  ├─ cni         the configuration of the container runtime
//!                                                  ├─ sysctl      forwarding
//!                                                  └─ probe       whether a link carries packets of pods
//! ```
//!
//! Everything that is made here can be recognised: routes by their protocol, the device, the table and the file by their
//! names. So a later agent takes over what an earlier one left, and a cleanup finds all of it. Nothing else is touched.

pub mod cni;
pub mod doctor;
mod error;
pub mod firewall;
mod host_ports;
pub mod kernel;
pub mod lock;
pub mod masquerade;
mod network;
pub mod overlap;
pub mod probe;
pub mod sysctl;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use network::{Applied, Network, Probed, cleanup, refuse_overlap};

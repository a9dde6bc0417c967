//! The service proxy of a node: what `core::services` routes, as nftables rules of the kernel.
//!
//! ```text
//!   Service, EndpointSlice ─▶ run ─▶ core::services ─▶ plan ─▶ difference ─▶ kernel (by crates/nftables)
//!                              │                                ruleset: our table without services
//!                              ├ conntrack     UDP connections to endpoints that are gone
//!                              └ health_check  healthCheckNodePort
//! ```
//!
//! Rules outlive the agent: packets of services are routed while it is down.

mod conntrack;
mod difference;
mod health_check;
mod kernel;
mod lock;
mod metrics;
mod plan;
mod ruleset;
mod run;
#[cfg(test)]
mod tests;

use kennel_nftables::{monitor, netlink, nft};

pub use kernel::{KernelError, has_table, remove};
pub use lock::{Lock, LockError};
pub use metrics::{METRICS, Metrics};
pub use ruleset::TABLE;
pub use run::Proxy;

//! The node agent: registers this machine as a node and runs its pods.
//!
//! ```text
//!   settings, machine ─▶ start ─┬▶ identity   certificates: obtains and rotates them
//!                               ├▶ lease      the node's Lease: heartbeats, and one agent per node
//!                               ├▶ heartbeat  the Node object: registers it and updates its status (node, register)
//!                               └▶ pods, manifests, pressure, kubelet API
//! ```

pub mod addresses;
pub mod data_version;
mod health;
mod heartbeat;
pub mod identity;
mod lease;
pub mod lock;
pub mod machine;
pub mod node;
mod node_events;
pub mod proxy_link;
mod register;
pub mod runtime_record;
mod serving;
pub mod settings;
pub mod start;

/// How often the agent writes, for `/configz`.
pub(crate) mod intervals {
    pub(crate) use super::heartbeat::{
        HEALTH_CHECK_INTERVAL as STATUS_CHECK, REPORT_INTERVAL as STATUS_REPORT,
    };
    pub(crate) use super::lease::LEASE_SECONDS;
}

pub use addresses::Addresses;
pub use health::AgentHealth;
pub use machine::Machine;
pub use proxy_link::ProxyLink;
pub use runtime_record::RuntimeRecord;
pub use settings::{ApiAddress, Paths, PodNetwork, Settings};
pub use start::{Cluster, Start, StartError};

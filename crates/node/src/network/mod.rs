//! The agent's part of the pod network: publishes what this node has of it, watches what the others have, and has
//! [`kennel_network`] apply it.
//!
//! ```text
//!   own Node (podCIDR) ─┐
//!   ConfigMaps, one per node ─┼─▶ manager ─▶ kennel_network ─▶ kernel, CNI configuration
//!   own addresses ──────┘        │
//!                                └─▶ annotations of the own Node · state ─▶ heartbeat (NetworkUnavailable, Ready)
//! ```
//!
//! Agents never watch Nodes: their heartbeats would be 83,000 events a second in a cluster of 5,000. What is watched here changes
//! only when a node joins or leaves, or its address or range changes.

mod link;
mod manager;
mod members;
mod published;

pub(crate) use manager::{Manager, withdraw};

/// What the heartbeat reports of the pod network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkState {
    /// The agent manages none, and leaves the condition to whoever does.
    #[default]
    Off,
    /// The agent has just started, and does not know yet: what it wrote before its restart holds.
    Starting {
        /// See [`crate::agent::PodNetwork::required`].
        required: bool,
        /// No configuration of somebody else was found, so that the agent will most likely set up its own network.
        expected: bool,
    },
    Unavailable {
        /// Of the condition.
        reason: String,
        message: String,
    },
    Ready,
}

/// All our reasons of the condition `NetworkUnavailable` begin with this, so that an agent clears no others.
pub(crate) const REASON_PREFIX: &str = "PodNetwork";
/// The reason of the condition after the agent has left the pod network to somebody else.
pub(crate) const REASON_OFF: &str = "PodNetworkOff";

impl NetworkState {
    pub(crate) fn unavailable(reason: &str, message: String) -> Self {
        Self::Unavailable {
            reason: format!("{REASON_PREFIX}{reason}"),
            message,
        }
    }
}

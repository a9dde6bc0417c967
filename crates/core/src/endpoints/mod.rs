//! The endpoints controllers: `EndpointSlices` and Endpoints of services.
//!
//! ```text
//!   service, pod, node, slice, Endpoints events ─▶ Tracker ─▶ create, update, delete
//!
//!   facts: the fields read of services, pods and nodes      member: one pod as a member of one service
//!   selector_index: which services may select a pod         pod_index: pods by namespace and node
//!   slices: the assignment of endpoints to slices           subsets, endpoints_object: the Endpoints object
//!   manifest: objects as JSON                               parse: objects from JSON
//! ```
//!
//! An event costs as much as it changes: a pod is matched only with services found by one of its labels, and only its
//! slices are written. Changes of one service are batched, so that many pods that become ready together need few writes.

mod endpoints_object;
pub mod facts;
mod manifest;
mod member;
mod parse;
mod pod_index;
mod selector_index;
mod service;
mod slices;
mod subsets;
mod tracker;
mod write;

pub use facts::{Distribution, Family, Labels, NamedPort, PodFacts, ServiceFacts, Uid};
pub use parse::StoredObject;
pub use tracker::Tracker;
pub use write::{Form, Operation, Outcome, Write};

use std::time::Duration;

/// Endpoints per slice at most.
pub const SLICE_MAX: usize = 100;
/// Addresses per Endpoints object at most.
pub const ENDPOINTS_MAX: usize = 1000;
/// The delay of the first write after a change, so that changes that happen together are one write.
pub const BATCH_PERIOD: Duration = Duration::from_millis(100);
/// The minimum interval between the syncs of one service that keeps changing, for each [`ENDPOINTS_PER_INTERVAL`] endpoints: each
/// sync may change all slices of the service, and every node reads them.
pub const MIN_SYNC_INTERVAL: Duration = Duration::from_secs(1);
pub const ENDPOINTS_PER_INTERVAL: usize = 1000;
/// For services of any size, so that clients learn soon that an endpoint is gone.
pub const MAX_SYNC_INTERVAL: Duration = Duration::from_secs(5);

/// Which of the two kinds of objects to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forms {
    pub slices: bool,
    pub endpoints: bool,
}

/// How many endpoints one object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub slice: usize,
    pub endpoints: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            slice: SLICE_MAX,
            endpoints: ENDPOINTS_MAX,
        }
    }
}

#[cfg(test)]
mod tests;

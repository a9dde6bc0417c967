//! Endpoints: where the pods of a service can be reached, as slices and as Endpoints.
//!
//! ```text
//!   service, pod, node, slice, Endpoints changed or gone ─▶ Tracker ─▶ create, update, delete
//!
//!   index: which services may a pod belong to      member: one pod as a member of one service
//!   slices: who stands in which slice              subsets: the same as Endpoints
//!   form: all of it as JSON                        facts: what is read of services, pods, nodes
//! ```
//!
//! A change costs as much as what it changes: a pod asks only the services that its labels lead to, and
//! only the slices it stands in are written. Changes of one service are gathered, so that a crowd of pods
//! that become ready together is a few writes.

pub mod facts;
mod form;
mod index;
mod kept;
mod member;
mod observed;
mod service;
mod slices;
mod subsets;
mod tracker;
mod world;
mod write;

pub use facts::{Family, Labels, NamedPort, PodFacts, ServiceFacts, Uid};
pub use observed::Stored;
pub use tracker::Tracker;
pub use write::{Outcome, Shell, What, Write};

/// How many endpoints a slice holds.
pub const SLICE_MAX: usize = 100;
/// How many addresses an Endpoints object holds.
pub const ENDPOINTS_MAX: usize = 1000;
/// How long after a change the first write comes, in milliseconds: what happens together is one write.
pub const GATHER_MS: i64 = 100;
/// How far the writes of one service are apart while it keeps changing, in milliseconds.
pub const PACE_MS: i64 = 1000;

/// Which of the two forms are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forms {
    /// Slices.
    pub slices: bool,
    /// Endpoints.
    pub endpoints: bool,
}

/// How much one object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Endpoints of a slice.
    pub slice: usize,
    /// Addresses of an Endpoints object.
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

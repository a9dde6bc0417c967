//! A node as the scheduler accounts for it: what it has, and what of that is taken.
//!
//! The sums are kept by adding and taking away one pod at a time. Who may go where is not decided here.

use std::sync::Arc;

use super::demand::Demand;
use super::ports::HostPort;
use super::resources::Resources;
use crate::daemonset::view::NodeView;

/// The place of a node in the scheduler's list.
pub(super) type NodeId = usize;
/// The place of a pod in the scheduler's list.
pub(super) type PodId = usize;

/// A node as it says itself that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Name, labels, taints, and whether it is cordoned.
    pub view: NodeView,
    /// What its pods can have.
    pub allocatable: Resources,
}

/// What pods take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) requested: Resources,
    /// As it counts in scores: processors and memory.
    pub(super) counted: (i64, i64),
    pub(super) pods: i64,
    pub(super) ports: Vec<HostPort>,
}

impl Usage {
    pub(super) fn add(&mut self, demand: &Demand) {
        self.requested.add(&demand.requests);
        self.counted.0 += demand.counted.0;
        self.counted.1 += demand.counted.1;
        self.pods += 1;
        self.ports.extend_from_slice(&demand.ports);
    }

    pub(super) fn remove(&mut self, demand: &Demand) {
        self.requested.subtract(&demand.requests);
        self.counted.0 -= demand.counted.0;
        self.counted.1 -= demand.counted.1;
        self.pods -= 1;
        for port in &demand.ports {
            if let Some(at) = self.ports.iter().position(|p| p == port) {
                self.ports.swap_remove(at);
            }
        }
    }
}

/// A node and its pods. Pods may be seen before their node, and stay a while after it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) machine: Option<Machine>,
    pub(super) usage: Usage,
    /// Those that are bound to it, or about to be.
    pub(super) pods: Vec<PodId>,
    /// Those for whom others were evicted here.
    pub(super) nominated: Vec<PodId>,
}

impl Node {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            machine: None,
            usage: Usage::default(),
            pods: Vec::new(),
            nominated: Vec::new(),
        }
    }

    /// Does nothing speak of it any more?
    pub(super) fn is_forgotten(&self) -> bool {
        self.machine.is_none() && self.pods.is_empty() && self.nominated.is_empty()
    }

    /// The value of one of its labels.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let labels = &self.machine.as_ref()?.view.labels;
        labels.get(key).map(String::as_str)
    }
}

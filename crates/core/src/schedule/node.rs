//! A node in the scheduler's cache: its capacity, its pods and their usage, updated one pod at a time.

use std::sync::Arc;

pub(super) use crate::ids::{NodeId, PodId};

use super::ports::HostPort;
use super::requirements::PodRequirements;
use super::resources::Resources;
use crate::daemonset::view::NodeView;

/// A node as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    pub view: NodeView,
    pub allocatable: Resources,
}

/// The sum of the pods' requests and host ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) requested: Resources,
    /// CPU and memory as they count in scores.
    pub(super) scored: (i64, i64),
    pub(super) pods: i64,
    pub(super) ports: Vec<HostPort>,
}

impl Usage {
    pub(super) fn add(&mut self, requirements: &PodRequirements) {
        self.requested.add(&requirements.requests);
        self.scored.0 += requirements.scored.0;
        self.scored.1 += requirements.scored.1;
        self.pods += 1;
        self.ports.extend_from_slice(&requirements.ports);
    }

    pub(super) fn remove(&mut self, requirements: &PodRequirements) {
        self.requested.subtract(&requirements.requests);
        self.scored.0 -= requirements.scored.0;
        self.scored.1 -= requirements.scored.1;
        self.pods -= 1;
        for port in &requirements.ports {
            if let Some(at) = self.ports.iter().position(|p| p == port) {
                self.ports.swap_remove(at);
            }
        }
    }
}

/// A node and its pods. Pods may be seen before their node, and may outlive it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) info: Option<NodeInfo>,
    pub(super) usage: Usage,
    /// Pods that are bound to it or being bound.
    pub(super) pods: Vec<PodId>,
    /// Pods for which others were evicted here.
    pub(super) nominated: Vec<PodId>,
}

impl Node {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            info: None,
            usage: Usage::default(),
            pods: Vec::new(),
            nominated: Vec::new(),
        }
    }

    /// Whether nothing refers to it any more.
    pub(super) fn is_forgotten(&self) -> bool {
        self.info.is_none() && self.pods.is_empty() && self.nominated.is_empty()
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let labels = &self.info.as_ref()?.view.labels;
        labels.get(key).map(String::as_str)
    }
}

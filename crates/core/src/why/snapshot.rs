//! The input: the state of a cluster at one moment, as far as it concerns one DaemonSet.
//!
//! Beside the views that the planner's rules read, it holds the API objects that explain a pod's state.

use std::collections::BTreeMap;

use kennel_types::condition::find;
use kennel_types::event::Event;
use kennel_types::{Condition, ConditionType, Timestamp};

use super::log::LogSnapshot;
use super::unscheduled::NodeOccupancy;
use crate::daemonset::history::Revision;
use crate::daemonset::{DaemonSetView, NodeView, PodView};

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub now: Timestamp,
    pub daemon_set: DaemonSetView,
    pub nodes: Vec<NodeSnapshot>,
    /// Whether the user may list nodes.
    pub nodes_known: bool,
    /// Pods that it owns or could adopt.
    pub pods: Vec<PodSnapshot>,
    pub revisions: Vec<Revision>,
    /// The annotations of its Namespace, which has defaults of rollout policies.
    pub namespace: BTreeMap<String, String>,
    /// Events about the DaemonSet and its pods.
    pub events: Vec<Event>,
    /// The nodes where a pod cannot be scheduled, as far as they were looked up.
    pub occupancies: Vec<NodeOccupancy>,
    /// Logs of containers that exit again and again, as far as they were read.
    pub logs: Vec<LogSnapshot>,
    /// The required DaemonSets, if some node waits for its daemons (R12).
    pub required: Vec<RequiredSnapshot>,
    /// Messages about what could not be read.
    pub unreadable: Vec<String>,
    /// Answer for this node alone.
    pub only: Option<String>,
}

/// A DaemonSet that nodes wait for, and its pods.
#[derive(Clone, Debug)]
pub struct RequiredSnapshot {
    pub daemon_set: DaemonSetView,
    pub pods: Vec<PodView>,
}

#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    pub view: NodeView,
    pub conditions: Vec<Condition>,
}

impl NodeSnapshot {
    /// The `Ready` condition, unless it is `True`. A node without one is not ready either.
    pub fn unready(&self) -> Option<Condition> {
        match find(&self.conditions, &ConditionType::Ready) {
            Some(ready) if ready.is_true() => None,
            Some(ready) => Some(ready.clone()),
            None => Some(Condition {
                message: "it has not reported yet".to_owned(),
                ..Condition::default()
            }),
        }
    }
}

#[derive(Clone, Debug)]
pub struct PodSnapshot {
    pub view: PodView,
    pub object: kennel_types::Pod,
}

impl PodSnapshot {
    pub(super) fn created(&self) -> Timestamp {
        self.view.created
    }

    /// The command that shows more about it.
    pub(super) fn describe(&self) -> String {
        let (namespace, name) = (&self.view.namespace, &self.view.name);
        format!("kubectl describe pod -n {namespace} {name}")
    }
}

impl Snapshot {
    /// Whether a node of this name exists, or a pod names it.
    pub fn has_node(&self, name: &str) -> bool {
        let mut nodes = self.nodes.iter();
        let mut targets = self.pods.iter().filter_map(|pod| pod.view.target());
        nodes.any(|node| &*node.view.name == name) || targets.any(|target| &**target == name)
    }

    /// The events about an object, the newest first.
    pub fn events_of(&self, uid: &str) -> Vec<&Event> {
        let of = |event: &&Event| event.involved_object.uid == uid;
        let mut events: Vec<&Event> = self.events.iter().filter(of).collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.last_seen()));
        events
    }
}

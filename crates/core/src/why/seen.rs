//! What is looked at: one moment of a cluster, as far as it concerns one DaemonSet.
//!
//! Beside the views that the planner's rules read, these are the fields that tell people more.

use serde::Deserialize;
use serde_json::Value;

use super::span::seconds;
use super::unplaced::Crowd;
use crate::daemonset::history::Revision;
use crate::daemonset::view::Seconds;
use crate::daemonset::{DaemonSetView, NodeView, PodView};

/// One moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Now.
    pub now: Seconds,
    /// The DaemonSet.
    pub daemon_set: DaemonSetView,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Whether nodes could be read.
    pub nodes_known: bool,
    /// Pods that it owns or could adopt.
    pub pods: Vec<Pod>,
    /// Its revisions.
    pub revisions: Vec<Revision>,
    /// Events about it and about its pods.
    pub events: Vec<Event>,
    /// Who is on the nodes where pods find no room, as far as it was looked up.
    pub crowds: Vec<Crowd>,
    /// What could not be read, in words.
    pub unread: Vec<String>,
    /// Answer for this node alone.
    pub only: Option<String>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What the rules read.
    pub view: NodeView,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

impl Node {
    /// Its `Ready` condition, unless that is `True`. A node that says nothing yet is not ready either.
    pub fn unready(&self) -> Option<Condition> {
        let ready = self.conditions.iter().find(|c| c.r#type == "Ready");
        match ready {
            Some(ready) if ready.status == "True" => None,
            Some(ready) => Some(ready.clone()),
            None => Some(Condition {
                message: "it has not reported yet".to_owned(),
                ..Condition::default()
            }),
        }
    }
}

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// What the rules read.
    pub view: PodView,
    /// What tells people more.
    pub facts: PodFacts,
}

/// A condition of a pod or a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Which.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Since when.
    pub last_transition_time: Option<String>,
}

impl Condition {
    /// Since when, in seconds.
    pub fn since(&self) -> Option<Seconds> {
        seconds(self.last_transition_time.as_deref()?)
    }
}

/// The fields of a pod that say how it fares.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodFacts {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) deletion_timestamp: Option<String>,
    pub(super) finalizers: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) scheduler_name: String,
    pub(super) scheduling_gates: Vec<Named>,
    pub(super) readiness_gates: Vec<Gate>,
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Gate {
    pub(super) condition_type: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) restart_policy: String,
    pub(super) readiness_probe: Option<Value>,
    pub(super) liveness_probe: Option<Value>,
    pub(super) startup_probe: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) phase: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) conditions: Vec<Condition>,
    pub(super) container_statuses: Vec<ContainerStatus>,
    pub(super) init_container_statuses: Vec<ContainerStatus>,
}

impl Status {
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.r#type == kind)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    pub(super) ready: bool,
    pub(super) started: Option<bool>,
    pub(super) restart_count: i64,
    pub(super) state: State,
    pub(super) last_state: State,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) waiting: Option<Waiting>,
    pub(super) running: Option<Running>,
    pub(super) terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Waiting {
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Running {
    pub(super) started_at: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Terminated {
    pub(super) exit_code: i64,
    pub(super) signal: i64,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) finished_at: Option<String>,
}

/// An event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// A word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// How often.
    pub count: Option<i64>,
    /// What it is about.
    pub involved_object: Involved,
    /// When it happened last.
    pub last_timestamp: Option<String>,
    /// When it happened, in the new form of events.
    pub event_time: Option<String>,
    /// How often, in the new form of events.
    pub series: Option<Series>,
    /// When it was written.
    pub metadata: EventMetadata,
}

/// What an event is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Involved {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// Which part of it.
    pub field_path: String,
}

/// An event that came again.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Series {
    /// How often.
    pub count: i64,
    /// When last.
    pub last_observed_time: Option<String>,
}

/// What is read of an event's metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventMetadata {
    /// When it was written.
    pub creation_timestamp: Option<String>,
}

impl Event {
    /// When it happened last.
    pub fn last(&self) -> Seconds {
        let series = self.series.as_ref();
        let times = [
            series.and_then(|s| s.last_observed_time.as_deref()),
            self.last_timestamp.as_deref(),
            self.event_time.as_deref(),
            self.metadata.creation_timestamp.as_deref(),
        ];
        let mut times = times.into_iter().flatten().filter_map(seconds);
        times.next().unwrap_or_default()
    }

    /// How often it happened.
    pub fn times(&self) -> i64 {
        let series = self.series.as_ref().map(|s| s.count);
        series.or(self.count).unwrap_or(1).max(1)
    }
}

impl Snapshot {
    /// The events about an object, the newest first.
    pub fn events_of(&self, uid: &str) -> Vec<&Event> {
        let of = |event: &&Event| event.involved_object.uid == uid;
        let mut events: Vec<&Event> = self.events.iter().filter(of).collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.last()));
        events
    }
}

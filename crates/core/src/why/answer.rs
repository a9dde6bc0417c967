//! The answer, whose JSON is a public format (docs/reference/why.md).

use kennel_types::Timestamp;
use serde::Serialize;

use super::finding::Finding;
use super::log::LogAnswer;
use super::snapshot::Snapshot;
use crate::daemonset::survey::Survey;

/// The version of the format. Causes and fields may be added; none are removed or changed.
const SCHEMA: &str = "kennel-why/1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It should run a pod and has no available one.
    Missing,
    /// It has a pod and is not eligible.
    Lingers,
    /// It has a pod, and whether that runs is not known, because the node is not ready.
    Unknown,
    /// It is not eligible and has no pod.
    Excluded,
    /// It has an available pod.
    Runs,
}

/// The first cause of a verdict. The names are part of the format; docs/reference/why.md explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    UpToDate,
    OldTemplate,
    WaitsForBudget,
    WaitsForStage,
    RolloutPaused,
    RevisionFailed,
    RolloutStopped,
    NewPodNotAvailable,
    DaemonSetDeleted,
    SelectsEverything,
    NotObserved,
    NoPod,
    Quota,
    Admission,
    CreateFailed,
    Adopting,
    NodeGone,
    NodeNotReady,
    NetworkUnavailable,
    Gated,
    NotScheduled,
    Unschedulable,
    Terminating,
    PodFailed,
    PodSucceeded,
    NotStarted,
    Volume,
    Sandbox,
    Image,
    ContainerConfig,
    ContainerStart,
    CrashLoop,
    InitContainer,
    Probe,
    Starting,
    ReadinessGate,
    NotReady,
    MinReadySeconds,
    NodeName,
    NodeSelector,
    NodeAffinity,
    Taint,
}

impl Cause {
    /// The name in the JSON.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub rule: String,
    pub holds: bool,
    pub found: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAnswer {
    pub name: String,
    pub phase: &'static str,
    pub ready: bool,
    /// Ready for `minReadySeconds`.
    pub available: bool,
    /// Of the current template.
    pub updated: bool,
    pub terminating: bool,
    pub created: Timestamp,
    /// Init containers first.
    pub containers: Vec<ContainerAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerAnswer {
    pub name: String,
    pub init: bool,
    /// As text, such as `waiting (CrashLoopBackOff)`.
    pub state: String,
    pub ready: bool,
    pub restarts: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAnswer {
    pub node: String,
    pub verdict: Verdict,
    pub cause: Cause,
    /// Equal for all nodes in the same state.
    pub message: String,
    /// Commands or YAML that would fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// When the trouble began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Of the container that the cause is about, if it exits again and again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogAnswer>,
    /// Its place in the order in which a staged rollout takes nodes, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Every placement rule, in the order of evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodAnswer>,
}

impl NodeAnswer {
    pub(super) fn new(node: &str, finding: Finding, snapshot: &Snapshot) -> Self {
        let log = finding.log.map(|source| LogAnswer::of(source, snapshot));
        Self {
            node: node.to_owned(),
            verdict: finding.verdict,
            cause: finding.cause,
            message: finding.message,
            remedy: finding.remedy,
            since: finding.since,
            pod: finding.pod,
            log,
            place: None,
            remarks: Vec::new(),
            checks: Vec::new(),
            pods: Vec::new(),
        }
    }

    /// Whether the node is in its desired state.
    pub fn ok(&self) -> bool {
        matches!(self.verdict, Verdict::Runs | Verdict::Excluded)
    }
}

/// About the DaemonSet as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Part of the format.
    pub code: String,
    pub message: String,
}

impl Note {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

/// Numbers of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub nodes: usize,
    /// Eligible nodes.
    pub desired: i64,
    /// Eligible nodes with an available pod.
    pub available: i64,
    /// Eligible nodes with a pod of the current template.
    pub updated: i64,
    /// By verdict, like the next four.
    pub missing: usize,
    pub lingers: usize,
    pub unknown: usize,
    pub excluded: usize,
    pub runs: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub schema: &'static str,
    pub namespace: String,
    pub name: String,
    /// Whether every node is in its desired state, and no typo leaves the DaemonSet without nodes.
    pub ok: bool,
    pub counts: Counts,
    pub notes: Vec<Note>,
    /// In the natural order of names.
    pub nodes: Vec<NodeAnswer>,
}

impl Answer {
    pub(super) fn new(
        snapshot: &Snapshot,
        survey: &Survey<'_>,
        nodes: Vec<NodeAnswer>,
        notes: Vec<Note>,
    ) -> Self {
        let with = |verdict| nodes.iter().filter(|n| n.verdict == verdict).count();
        Self {
            schema: SCHEMA,
            namespace: snapshot.daemon_set.namespace.to_string(),
            name: snapshot.daemon_set.name.to_string(),
            ok: nodes.iter().all(NodeAnswer::ok),
            counts: Counts {
                nodes: nodes.len(),
                desired: survey.counters.desired,
                available: survey.counters.available,
                updated: survey.counters.updated,
                missing: with(Verdict::Missing),
                lingers: with(Verdict::Lingers),
                unknown: with(Verdict::Unknown),
                excluded: with(Verdict::Excluded),
                runs: with(Verdict::Runs),
            },
            notes,
            nodes,
        }
    }
}

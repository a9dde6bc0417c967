//! What is answered: its form is the JSON that scripts read (docs/reference/why.md).
//!
//! Only the form: who finds what is next door.

use serde::{Serialize, Serializer};

use super::seen::Snapshot;
use crate::daemonset::survey::Survey;

/// The name of this form. Words and fields may be added to it; none go or change.
const SCHEMA: &str = "kennel-why/1";

/// How it stands with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It should run a pod, and none works.
    Missing,
    /// It has a pod, and should not.
    Lingers,
    /// It should have none, and has none.
    Excluded,
    /// Its pod works.
    Runs,
}

/// The first cause of a verdict. Scripts read these words: they do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "docs/reference/why.md explains each word")]
pub enum Cause {
    UpToDate,
    OldTemplate,
    WaitsForBudget,
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
    /// The word for it.
    pub fn word(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// What was found out about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) cause: Cause,
    /// The same on all nodes in the same state: no names of pods, no times.
    pub(super) message: String,
    pub(super) remedy: Option<String>,
    pub(super) since: Option<i64>,
    pub(super) pod: Option<String>,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, cause: Cause, message: impl Into<String>) -> Self {
        Self {
            verdict,
            cause,
            message: message.into(),
            remedy: None,
            since: None,
            pod: None,
        }
    }

    pub(super) fn missing(cause: Cause, message: impl Into<String>) -> Self {
        Self::new(Verdict::Missing, cause, message)
    }

    #[must_use]
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    #[must_use]
    pub(super) fn since(mut self, since: Option<i64>) -> Self {
        self.since = since;
        self
    }
}

/// One rule, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which.
    pub rule: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was found.
    pub found: String,
}

/// A pod of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAnswer {
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: String,
    /// Ready by its condition.
    pub ready: bool,
    /// Ready for `minReadySeconds`.
    pub available: bool,
    /// Of the present template.
    pub updated: bool,
    /// Being deleted.
    pub terminating: bool,
    /// When it was created.
    pub created: Time,
    /// How its containers are, those that run first included.
    pub containers: Vec<ContainerAnswer>,
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerAnswer {
    /// Its name.
    pub name: String,
    /// Whether it runs before the others.
    pub init: bool,
    /// Its state in words.
    pub state: String,
    /// Whether it is ready.
    pub ready: bool,
    /// How often it was restarted.
    pub restarts: i64,
}

/// A time as API objects carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(
    /// In seconds since the epoch.
    pub i64,
);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = jiff::Timestamp::from_second(self.0).unwrap_or_default();
        serializer.collect_str(&time)
    }
}

/// The answer for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAnswer {
    /// The node's name.
    pub node: String,
    /// How it stands.
    pub verdict: Verdict,
    /// The first cause.
    pub cause: Cause,
    /// For people; the same on all nodes in the same state.
    pub message: String,
    /// What would change it, if that is known: a command, or YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Since when, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The pod that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// What else is odd.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Every rule of placing, in the order they are looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Its pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodAnswer>,
}

impl NodeAnswer {
    pub(super) fn new(node: &str, finding: Finding) -> Self {
        Self {
            node: node.to_owned(),
            verdict: finding.verdict,
            cause: finding.cause,
            message: finding.message,
            remedy: finding.remedy,
            since: finding.since.map(Time),
            pod: finding.pod,
            remarks: Vec::new(),
            checks: Vec::new(),
            pods: Vec::new(),
        }
    }

    /// Is it as it should be?
    pub fn ok(&self) -> bool {
        matches!(self.verdict, Verdict::Runs | Verdict::Excluded)
    }
}

/// Something about the DaemonSet as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A word that does not change.
    pub code: String,
    /// For people.
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

/// How many nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Nodes that were judged.
    pub nodes: usize,
    /// By the rules, nodes that should run a pod.
    pub desired: i64,
    /// Of those, nodes with an available pod.
    pub available: i64,
    /// Of those, nodes whose pod is of the present template.
    pub updated: i64,
    /// Nodes by verdict.
    pub missing: usize,
    /// Nodes by verdict.
    pub lingers: usize,
    /// Nodes by verdict.
    pub excluded: usize,
    /// Nodes by verdict.
    pub runs: usize,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Which form this is.
    pub schema: &'static str,
    /// The DaemonSet's namespace.
    pub namespace: String,
    /// The DaemonSet's name.
    pub name: String,
    /// Is everything as it should be?
    pub ok: bool,
    /// How many nodes.
    pub counts: Counts,
    /// What is to be said of the whole.
    pub notes: Vec<Note>,
    /// Node by node, in the order of names.
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
                excluded: with(Verdict::Excluded),
                runs: with(Verdict::Runs),
            },
            notes,
            nodes,
        }
    }
}

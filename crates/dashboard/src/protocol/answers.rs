//! Answers to single requests, and what changes need.

use kennel_core::why::NodeAnswer;
use kennel_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::Effect;

/// The body of every answer with a status of 400 or more.
///
/// | status | code | |
/// |---|---|---|
/// | 400 | `BadRequest` | the request cannot be read |
/// | 401 | `NoSession` | no cookie, or one of another run of the dashboard: open the address that it printed |
/// | 403 | `WrongOrigin` | the request comes from another site |
/// | 403 | `ReadOnly` | the dashboard runs without `--allow-changes` |
/// | 403 | `Forbidden` | the API server refuses it to the user of the kubeconfig |
/// | 404 | `NotFound` | no such path, DaemonSet, node, pod or revision |
/// | 405 | `Method` | |
/// | 409 | `Refused` | the verb would do nothing |
/// | 409 | `Changed` | the target is another one than the page showed |
/// | 413 | `TooLarge` | |
/// | 415 | `MediaType` | a change that is not `application/json` |
/// | 421 | `WrongHost` | the `Host` header is not the dashboard's own |
/// | 502 | `Upstream` | the API server answered with an error, or not at all |
/// | 503 | `TooMany` | too many streams or requests at once |
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub code: &'static str,
    /// One sentence, for people.
    pub message: String,
}

/// `GET …/nodes/NODE/why`: what `kennel why ds/NAME --node NODE` says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// As `kennel why -o json` has it in `nodes[]`.
    pub answer: NodeAnswer,
    /// As `kennel why` prints it.
    pub text: String,
    /// What to type to see the same, and to fix it.
    pub commands: Vec<String>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// Event `lines` of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lines {
    /// The pod and its container, in the first event only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<LogSource>,
    /// Without their line ends; each at most 4 KiB.
    pub lines: Vec<String>,
}

/// The pod and container of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogSource {
    pub pod: String,
    pub container: String,
    /// All containers of the pod, init containers first; one of them can be `?container=`.
    pub containers: Vec<String>,
}

/// Event `end` of a log, which is the last one. The page closes the `EventSource`, or it would begin again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEnd {
    /// Why it ends, if not because there is no more: no pod, no right, no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// `GET …/diff`: the templates of two revisions as YAML, line by line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Hashes.
    pub from: String,
    pub to: String,
    pub lines: Vec<DiffLine>,
    /// More lines differ than are shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A line of a [`Diff`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    /// ` ` in both, `-` in `from` only, `+` in `to` only, `@` for lines left out (the text says how many).
    pub kind: char,
    pub text: String,
}

/// What a person can have the controller do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    Promote,
    PromoteFull,
    Pause,
    Resume,
    Abort,
    Retry,
    /// Writes the template of the previous revision, as `kubectl rollout undo` does.
    Undo,
}

/// `GET …/rollout/preview`: what a verb will do, from a fresh look at the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    pub verb: Verb,
    pub possible: bool,
    #[serde(flatten)]
    pub effect: Effect,
    /// The annotations that it will write; `null` removes one.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub annotations: serde_json::Map<String, serde_json::Value>,
    /// The same on the command line.
    pub command: String,
    /// Hash of the present target, for [`Act::target`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// `POST …/rollout`, with `Content-Type: application/json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Act {
    pub verb: Verb,
    /// For `pause`; "from the dashboard" without one.
    #[serde(default)]
    pub reason: Option<String>,
    /// The target that the page showed. 409 `Changed` if it is another one now.
    #[serde(default)]
    pub target: Option<String>,
}

/// What a change has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Acted {
    #[serde(flatten)]
    pub effect: Effect,
}

/// `GET /api/nodes/NODE`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub name: String,
    pub ready: bool,
    /// Cordoned.
    pub unschedulable: bool,
    pub conditions: Vec<NodeCondition>,
    /// As `KEY=VALUE:EFFECT`.
    pub taints: Vec<String>,
    /// By key.
    pub labels: std::collections::BTreeMap<String, String>,
    pub kubelet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Absent where metrics.k8s.io does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the node has for pods.
    pub allocatable: Usage,
    /// The pods of DaemonSets on it.
    pub daemons: Vec<Daemon>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A condition of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub reason: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Processor and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub cpu_millicores: u64,
    pub memory_bytes: u64,
}

/// A daemon on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Daemon {
    pub namespace: String,
    /// The DaemonSet's.
    pub name: String,
    pub pod: String,
    /// As `kubectl get pods` shows it: `Running`, `CrashLoopBackOff`, …
    pub status: String,
    pub ready: bool,
    pub restarts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

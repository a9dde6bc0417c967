//! The stream of one DaemonSet.

use kennel_core::rollout::plan::StageState;
use kennel_core::rollout::{Outcome, Sentence, state};
use kennel_types::Timestamp;
use serde::Serialize;

use super::{Counts, Key, StagePosition, Verb};

/// Event `picture`: all nodes. A node keeps its index until the next `picture`, also when it is gone for a while; no index
/// has two names in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    #[serde(flatten)]
    pub key: Key,
    /// The nodes' names, in the order in which people count (`node-2` before `node-10`).
    pub nodes: Vec<String>,
    /// The label by which nodes are grouped, or `@stage`: by the stage that takes them. Absent without `?group=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_label: Option<String>,
    /// The values of that label (or numbers of stages), in order; `""` for nodes that do not have it (or are in none). One
    /// group `""` without `?group=`.
    pub groups: Vec<String>,
    /// For each node, the index of its group.
    pub group: Vec<u32>,
    /// For each node one character: `o` old, `u` updating, `n` new, `f` failed, `d` down, `x` not eligible, `w` waiting its
    /// turn, `-` gone.
    pub cells: String,
    pub counts: Counts,
    /// Why a node is failed, down or updating, by index: the code of a [`Reason`](kennel_core::picture::Reason), with its
    /// number as `restarts:3`.
    pub reasons: Vec<(u32, String)>,
    /// Label keys by which nodes can be grouped: several nodes share a value, and there are at least two values. Zone and
    /// region come first.
    pub labels: Vec<String>,
    pub now: Timestamp,
}

/// Event `delta`: what changed since the last `picture` or `delta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// Nodes that are new; they get the next indices, in this order. Apply these before `cells`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<AddedNode>,
    /// Groups that are new; they get the next indices. The page puts them where their names sort.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// `[index, state]`; a node with state `-` is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<(u32, char)>,
    /// `[index, group]`: nodes whose label changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<(u32, u32)>,
    /// `[index, code]`: reasons that changed; an empty code takes one away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<(u32, String)>,
    pub counts: Counts,
}

/// A node of a [`Delta`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedNode {
    pub name: String,
    /// Index of its group.
    pub group: u32,
    pub state: char,
}

/// Event `rollout`: where the rollout stands; at most once a second. The fields of `kennel rollout status -o json`, but nodes of
/// stages as numbers, no problems (the cells have them), and sentences with their codes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    pub outcome: Outcome,
    pub phase: String,
    pub message: String,
    /// The message by its code.
    pub said: Sentence,
    /// Whether the DaemonSet or its Namespace has a policy.
    pub policy: bool,
    /// `RollingUpdate` or `OnDelete`.
    pub strategy: String,
    /// Hash of the template's revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Hash of the revision that nodes go back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StagePosition>,
    /// When the phase began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// If nothing but bakes takes time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_end: Option<Timestamp>,
    /// Why it has failed or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<state::Reason>,
    /// A person has paused or frozen it: the reason that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Nodes of the rollout.
    pub nodes: kennel_core::rollout::status::Counts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What a person could type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Typed>,
    /// Every verb: whether it would do something now. The buttons.
    pub actions: Vec<Action>,
    /// The dashboard's clock when this was computed.
    pub now: Timestamp,
}

/// A stage of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Counted from 1.
    pub stage: usize,
    /// As the policy has it: `10% 30m manual`.
    pub policy: String,
    /// `done`, `present`, `ahead` or `passed-over`.
    pub state: StageState,
    /// How many nodes have had their turn when the stage is complete.
    pub reaches: usize,
    /// How many nodes it adds.
    pub nodes: usize,
    pub bake_seconds: u64,
    /// It waits for a person.
    pub manual: bool,
    /// When it began and ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// When its bake began and will end, while it bakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bake_began: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bake_ends: Option<Timestamp>,
}

/// Whether a verb would do something now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    pub verb: Verb,
    pub possible: bool,
    #[serde(flatten)]
    pub effect: Effect,
}

/// What a verb will do or has done, or why it would do nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// One sentence in English.
    pub effect: String,
    /// The same by its code; absent where it would do nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<Sentence>,
}

impl Effect {
    /// It would do nothing.
    pub(crate) fn none(why: String) -> Self {
        let said = None;
        Self { effect: why, said }
    }
}

/// A command that a person could type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Typed {
    pub command: String,
    /// What it does, in English.
    pub effect: String,
    /// The same by its code.
    pub said: Sentence,
}

/// Event `events`: the DaemonSet's newest events, the newest first; at most fifty, all of them each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Events {
    pub events: Vec<Event>,
}

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Two events may have the same reason and message.
    pub uid: String,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
    pub message: String,
    /// How often.
    pub count: u64,
    /// The last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
}

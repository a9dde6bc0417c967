//! The session, and the stream of all DaemonSets.

use kennel_core::rollout::{Outcome, Sentence};
use kennel_types::Timestamp;
use serde::Serialize;

/// `GET /api/session`: what the page needs once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Kennel's.
    pub version: String,
    /// URL of the API server.
    pub server: String,
    /// Of the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Whether `POST …/rollout` may succeed.
    pub allow_changes: bool,
    /// The dashboard's clock, from which the page takes the difference to its own.
    pub now: Timestamp,
}

/// Event `status`: whether what is shown is up to date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Whether all watches of this stream are connected.
    pub connected: bool,
    /// What is wrong, for people: `reconnecting to https://…: connection refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What may not be read, and what is missing for that reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The DaemonSet does not exist (any more). The stream stays open in case that it is created.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    pub now: Timestamp,
}

/// Nodes by state; see [`Picture::cells`](super::Picture::cells). The fields' names are those of the states in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub old: usize,
    pub updating: usize,
    pub new: usize,
    pub failed: usize,
    pub down: usize,
    pub not_eligible: usize,
    pub waiting: usize,
}

/// Event `overview`: every DaemonSet that may be read, the one with most trouble first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub rows: Vec<Row>,
}

/// Event `change`: rows that are new or differ, and DaemonSets that are gone. The page sorts by `trouble`, then by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OverviewChange {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Key>,
}

/// A DaemonSet's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

/// One DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    #[serde(flatten)]
    pub key: Key,
    pub counts: Counts,
    /// Nodes that should run a pod: all but those that are not eligible.
    pub desired: usize,
    /// The stage of a rollout in stages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StagePosition>,
    /// `complete`, `progressing`, `failed` or `waiting`, as `kennel rollout status` has it.
    pub outcome: Outcome,
    /// `Updating`, `Baking`, …; see `docs/reference/rollout.md`.
    pub phase: String,
    /// A person has paused or frozen it: the reason that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Sorts the rows: a larger one comes first. 0 is no trouble.
    pub trouble: u32,
    /// One sentence in English.
    pub message: String,
    /// The same by its code.
    pub said: Sentence,
}

/// Where a rollout in stages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StagePosition {
    /// Counted from 1.
    pub index: usize,
    pub total: usize,
}

//! A rollout over time: the state of each node at each moment, who failed and why, and how long it took.
//!
//! ```text
//!   live ─▶ recorder ─┐
//!                     ├─▶ Recording ─▶ report
//!   live ─▶ past ─────┘   (past: what the API still shows of a rollout that is over)
//! ```

mod causes;
mod failures;
mod order;
mod past;
mod recorder;
mod spans;
#[cfg(test)]
mod tests;

use kennel_core::picture::{CellState, Counts};
use kennel_core::rollout::Outcome;
use kennel_core::rollout::history::StageEntry;
use kennel_types::Timestamp;
use serde::{Serialize, Serializer};

pub use causes::Causes;
pub use failures::Failures;
pub use order::order;
pub use past::past;
pub use recorder::Recorder;
pub use spans::Spans;

/// The version of the format. Fields may be added; none are removed or changed.
const SCHEMA: &str = "kennel-rollout-report/1";

/// Where the states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// They were observed.
    Recorded,
    /// They follow from what the API still shows.
    Reconstructed,
}

/// Times are in milliseconds since `began`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    pub schema: &'static str,
    pub source: Source,
    /// What is not known, for people.
    pub notes: Vec<String>,
    pub namespace: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// As the policy has them: `1 2s, 50%, 100%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    pub outcome: Outcome,
    pub message: String,
    pub began: Timestamp,
    pub ended: Timestamp,
    /// The names, in the order in which stages take them; then those that are in no stage.
    pub nodes: Vec<String>,
    /// A letter for each node.
    pub initial: String,
    pub changes: Vec<Change>,
    pub phases: Vec<PhaseNote>,
    pub stages: Vec<StageEntry>,
    pub failures: Vec<Failure>,
    pub durations: Durations,
    /// At the end.
    pub counts: Counts,
    pub events: Vec<EventNote>,
}

/// A node has got another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub at: u64,
    /// Index in `nodes`.
    pub node: usize,
    pub letter: u8,
}

/// `[at, node, "letter"]`, as there are many.
impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.at, self.node, char::from(self.letter)).serialize(serializer)
    }
}

/// A phase of the rollout has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseNote {
    pub at: u64,
    pub phase: String,
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub node: String,
    /// When it began, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// When the node left that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    pub message: String,
}

/// How long nodes took from their first change to an available pod of the target, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Durations {
    /// The nodes that are counted.
    pub nodes: usize,
    pub shortest: u64,
    pub median: u64,
    pub p95: u64,
    pub longest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventNote {
    pub time: Timestamp,
    pub warning: bool,
    pub reason: String,
    pub message: String,
}

impl Recording {
    pub fn length(&self) -> u64 {
        let millis = self.ended.millis_since(self.began);
        u64::try_from(millis).unwrap_or(0)
    }

    /// The nodes that ever had a pod of the target, or were on the way to one.
    pub fn reached(&self) -> usize {
        let touched = |letter: u8| {
            let state = CellState::of_letter(letter);
            matches!(
                state,
                Some(CellState::New | CellState::Updating | CellState::Failed)
            )
        };
        let initial = self.initial.bytes().enumerate();
        let initial = initial.filter(|(_, letter)| touched(*letter));
        let changed = self.changes.iter().filter(|change| touched(change.letter));
        let mut nodes: Vec<usize> = initial.map(|(node, _)| node).collect();
        nodes.extend(changed.map(|change| change.node));
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

impl Durations {
    pub(crate) fn of(mut millis: Vec<u64>) -> Self {
        millis.sort_unstable();
        let at = |percent: usize| {
            let index = (millis.len() * percent).div_ceil(100).saturating_sub(1);
            millis.get(index).copied().unwrap_or(0)
        };
        Self {
            nodes: millis.len(),
            shortest: millis.first().copied().unwrap_or(0),
            median: at(50),
            p95: at(95),
            longest: millis.last().copied().unwrap_or(0),
        }
    }
}

//! The state of a rollout (R8), as annotations of the target's ControllerRevision.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kennel_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::order::Place;
use super::{STATE, VERDICT};

/// What is known of a revision. It outlives the rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Progressing,
    Stable,
    Failed,
    Superseded,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Progressing => "progressing",
            Self::Stable => "stable",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Progressing,
            Self::Stable,
            Self::Failed,
            Self::Superseded,
        ];
        all.into_iter().find(|verdict| verdict.as_str() == text)
    }
}

/// Where a rollout stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The nodes of the stage get the target.
    Updating,
    /// The stage is complete, and its bake runs.
    Baking,
    /// A person has to promote.
    AwaitingPromotion,
    /// The rollout has failed, and a person has to decide.
    Paused,
    /// The rollout has failed, and all nodes go back to stable.
    RollingBack,
    /// No node has the target any more; it stays failed.
    Held,
    /// Every node has the target.
    Complete,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The last place that is admitted (R3.1). Places are written as names of nodes: a name has its place in the order
/// whether the node exists or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cut {
    /// Nothing by place: the stage admits nodes by label.
    #[default]
    Nothing,
    /// Everything, written as `*`.
    All(AllNodes),
    /// Up to this node.
    Node(String),
    /// Up to a node for each value of the `spread` label; nodes without the label have an empty value.
    ByValue(BTreeMap<String, String>),
}

impl Cut {
    /// Whether the place of a node with this `spread` value is up to the cut. `seed` is the DaemonSet's.
    pub fn admits(&self, seed: u32, value: &str, place: Place) -> bool {
        let last = match self {
            Self::Nothing => return false,
            Self::All(AllNodes) => return true,
            Self::Node(last) => Some(last),
            Self::ByValue(by_value) => by_value.get(value),
        };
        last.is_some_and(|last| place <= Place::of(seed, last))
    }
}

/// The text `*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllNodes;

const ALL_NODES: &str = "*";

impl Serialize for AllNodes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(ALL_NODES)
    }
}

impl<'de> Deserialize<'de> for AllNodes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = || serde::de::Error::custom("not *");
        (text == ALL_NODES).then_some(Self).ok_or_else(expected)
    }
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The uid of the DaemonSet. The state of another one counts for nothing but its verdict (R8.2).
    pub owner: String,
    /// The hash of the revision to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// Counts the retries, from 1.
    pub attempt: u32,
    /// Counted from 1.
    pub stage: usize,
    #[serde(default)]
    pub cut: Cut,
    pub phase: Phase,
    /// When the phase began.
    pub since: Timestamp,
    /// Why the rollout has failed or waits, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Failed nodes that a person has accepted by promoting.
    #[serde(default, skip_serializing_if = "Accepted::is_none")]
    pub accepted: Accepted,
    /// The commands that were carried out, by key, as written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, String>,
    /// The stages of this attempt, in the order in which they began; of many, the last [`MAX_STAGES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTimes>,
    /// Nodes whose daemon was failing when the present stage began; of many, the first [`MAX_FAILING`]. They tell a
    /// controller that finds a node empty what was there before (R5.5).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failing: BTreeSet<String>,
}

/// How many failing nodes a state names: with the longest names they fill a tenth of what annotations may hold.
pub const MAX_FAILING: usize = 100;

/// How many stages a state has the times of, so that a policy with hundreds does not fill the annotation.
pub const MAX_STAGES: usize = 32;

/// When a stage was the present one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTimes {
    /// Counted from 1.
    pub stage: usize,
    pub began: Timestamp,
    /// When the next one began, or the rollout ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
}

impl State {
    /// Whether a stage begins with this state.
    pub fn begins_stage(&self, before: Option<&Self>) -> bool {
        let before = before.map(|before| (before.attempt, before.stage));
        self.stage > 0 && !self.is_over() && before != Some((self.attempt, self.stage))
    }

    /// No node gets the target any more that does not have it.
    pub fn is_over(&self) -> bool {
        matches!(
            self.phase,
            Phase::Complete | Phase::RollingBack | Phase::Held
        )
    }

    /// Enters into `stages` what begins and ends with this state.
    pub fn note_stages(&mut self, before: Option<&Self>) {
        let before = before.filter(|before| before.attempt == self.attempt);
        self.stages = before.map_or_else(Vec::new, |before| before.stages.clone());
        let is_over = self.is_over();
        let begins = before.is_none_or(|before| before.stage != self.stage) && !is_over;
        if let Some(last) = self.stages.last_mut()
            && (begins || is_over)
        {
            last.ended.get_or_insert(self.since);
        }
        if begins && self.stage > 0 {
            self.stages.push(StageTimes {
                stage: self.stage,
                began: self.since,
                ended: None,
            });
            let surplus = self.stages.len().saturating_sub(MAX_STAGES);
            self.stages.drain(..surplus);
        }
    }

    /// Whether a pod was created before the present stage began. Pods have their times in whole seconds, rounded down,
    /// and states rounded up. A state of an earlier version does not say when the stage began: then it was.
    pub fn is_older_than_stage(&self, created: Timestamp) -> bool {
        let present = self.stages.last().filter(|last| last.stage == self.stage);
        present.is_none_or(|present| created.saturating_add_millis(1_000) < present.began)
    }
}

/// Why a rollout has failed or waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// One word, as for a condition.
    pub code: String,
    pub message: String,
}

/// How many failed nodes do not fail the rollout although the policy says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accepted {
    #[default]
    None,
    Nodes(i64),
    All,
}

impl Accepted {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// What a revision's annotations say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub verdict: Option<Verdict>,
    pub state: Option<State>,
}

/// How the nodes of a DaemonSet with a policy are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The target's state is not written yet: every node stays with stable.
    Unstarted,
    /// The target's verdict is stable: every node is driven to it, without stages (R5.6).
    Direct,
    /// Admitted nodes are driven to the target, others to stable.
    Staged,
    /// Every node is driven to stable (R5.4).
    Back,
}

impl Record {
    /// What counts for a DaemonSet: of the state of another owner nothing but its verdict (R8.2).
    #[must_use]
    pub fn owned_by(&self, owner: &str) -> Self {
        let state = self.state.clone().filter(|state| state.owner == owner);
        Self {
            verdict: self.verdict,
            state,
        }
    }

    /// Whether both are in the same phase of the same stage. The cut may have moved.
    pub fn is_in_phase_of(&self, other: &Self) -> bool {
        let phase = |state: &State| (state.attempt, state.stage, state.phase, state.since);
        self.state.as_ref().map(phase) == other.state.as_ref().map(phase)
    }

    pub fn standing(&self) -> Standing {
        match (self.verdict, &self.state) {
            (Some(Verdict::Stable), _) => Standing::Direct,
            (Some(Verdict::Failed), _) => Standing::Back,
            (Some(Verdict::Progressing), Some(_)) => Standing::Staged,
            (Some(Verdict::Progressing), None) | (Some(Verdict::Superseded) | None, _) => {
                Standing::Unstarted
            }
        }
    }

    /// Reads the annotations of a revision. A text that cannot be read counts as absent: the controller wrote none such.
    pub fn parse(annotations: &BTreeMap<String, String>) -> Self {
        let verdict = annotations.get(VERDICT);
        let state = annotations.get(STATE);
        Self {
            verdict: verdict.and_then(|text| Verdict::parse(text)),
            state: state.and_then(|text| serde_json::from_str(text).ok()),
        }
    }

    /// The annotations to write.
    pub fn annotations(&self) -> BTreeMap<&'static str, String> {
        let verdict = self.verdict.map(|v| (VERDICT, v.as_str().to_owned()));
        let state = self.state.as_ref().map(|state| {
            let text = serde_json::to_string(state).expect("its keys are strings");
            (STATE, text)
        });
        verdict.into_iter().chain(state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(record: &Record) -> BTreeMap<&'static str, String> {
        let written = record.annotations();
        let own = |(key, value): (&&str, &String)| ((*key).to_owned(), value.clone());
        let read = Record::parse(&written.iter().map(own).collect());
        assert_eq!(read, *record);
        written
    }

    fn state(cut: Cut) -> State {
        State {
            owner: "u".into(),
            stable: Some("5d8b".into()),
            attempt: 1,
            stage: 2,
            cut,
            phase: Phase::Baking,
            since: Timestamp::from_secs(9),
            reason: None,
            accepted: Accepted::None,
            seen: BTreeMap::new(),
            stages: Vec::new(),
            failing: BTreeSet::new(),
        }
    }

    #[test]
    fn r9_4_a_state_has_the_times_of_its_stages() {
        let at = |seconds: i64| Timestamp::from_secs(seconds);
        let next = |before: &State, stage: usize, phase: Phase, seconds: i64| {
            let mut next = State {
                stage,
                phase,
                since: at(seconds),
                ..before.clone()
            };
            next.note_stages(Some(before));
            next
        };
        let mut first = State {
            stage: 1,
            phase: Phase::Updating,
            ..state(Cut::Nothing)
        };
        first.note_stages(None);
        let baking = next(&first, 1, Phase::Baking, 20);
        let second = next(&baking, 3, Phase::Updating, 30);
        let complete = next(&second, 3, Phase::Complete, 50);
        let again = next(&complete, 3, Phase::Complete, 90);
        let times = |all: &State| -> Vec<(usize, Timestamp, Option<Timestamp>)> {
            let all = all.stages.iter();
            all.map(|s| (s.stage, s.began, s.ended)).collect()
        };
        assert_eq!(times(&baking), [(1, at(9), None)]);
        assert_eq!(
            times(&second),
            [(1, at(9), Some(at(30))), (3, at(30), None)]
        );
        let ended = [(1, at(9), Some(at(30))), (3, at(30), Some(at(50)))];
        assert_eq!(times(&complete), ended);
        assert_eq!(times(&again), ended);
        // A retry begins anew.
        let mut retried = next(&complete, 1, Phase::Updating, 60);
        retried.attempt += 1;
        retried.note_stages(Some(&complete));
        assert_eq!(times(&retried), [(1, at(60), None)]);
        round_trip(&Record {
            verdict: Some(Verdict::Stable),
            state: Some(complete),
        });
    }

    #[test]
    fn r9_4_the_times_of_many_stages_are_bounded() {
        let mut last = state(Cut::Nothing);
        for stage in 1..=100 {
            let mut next = State {
                stage,
                ..last.clone()
            };
            next.note_stages(Some(&last));
            last = next;
        }
        assert_eq!(last.stages.len(), MAX_STAGES);
        assert_eq!(last.stages.last().map(|last| last.stage), Some(100));
    }

    #[test]
    fn r8_the_state_is_json_that_people_can_read() {
        let record = Record {
            verdict: Some(Verdict::Progressing),
            state: Some(state(Cut::Node("node-7".into()))),
        };
        let written = round_trip(&record);
        assert_eq!(written[VERDICT], "progressing");
        assert_eq!(
            written[STATE],
            r#"{"owner":"u","stable":"5d8b","attempt":1,"stage":2,"cut":"node-7","phase":"Baking","since":"1970-01-01T00:00:09Z"}"#
        );
    }

    #[test]
    fn r8_every_form_of_cut_and_of_acceptance_is_read_back() {
        let by_value = BTreeMap::from([("a".to_owned(), "n1".to_owned())]);
        for cut in [Cut::Nothing, Cut::All(AllNodes), Cut::ByValue(by_value)] {
            for accepted in [Accepted::None, Accepted::Nodes(3), Accepted::All] {
                let mut state = state(cut.clone());
                state.accepted = accepted;
                state.reason = Some(Reason {
                    code: "Restarts".into(),
                    message: "m".into(),
                });
                state.seen.insert("promote".into(), "5d8b/1".into());
                let verdict = Some(Verdict::Failed);
                round_trip(&Record {
                    verdict,
                    state: Some(state),
                });
            }
        }
        round_trip(&Record::default());
    }

    #[test]
    fn unreadable_annotations_count_as_absent() {
        let bad = [(VERDICT, "maybe"), (STATE, "{"), ("other", "x")];
        let bad = bad.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(Record::parse(&bad.into()), Record::default());
    }
}

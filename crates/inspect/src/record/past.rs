//! A rollout that is over, or waits, from what the API still shows: the state of its revision, and the times of the pods that
//! are there.

use std::collections::BTreeMap;

use kennel_core::daemonset::PodView;
use kennel_core::picture::CellState;
use kennel_core::rollout::outline::Outline;
use kennel_core::rollout::state::Standing;
use kennel_types::Timestamp;

use super::failures::text;
use super::order::order;
use super::recorder;
use super::{Change, Durations, Failure, PhaseNote, Recording, Source};
use crate::causes::PodCause;
use crate::live::{Set, View};

const NOTE: &str = "This is reconstructed from what the API still shows: the state of the ControllerRevision and the times of \
                    the pods that are there now. Pods that have been replaced since, failures that have healed, and when old \
                    pods stopped are not known. To record a rollout, run this while it is under way, or before it with --next.";
const NOTE_BACK: &str =
    "Of the nodes that had the failed revision only the return to stable is known.";

/// What is known of the latest rollout, and the causes of what fails now, by node.
pub fn past(
    view: &View,
    set: &Set,
    causes: &BTreeMap<String, PodCause>,
    now: Timestamp,
) -> Recording {
    let frame = set
        .picture()
        .without_nodes(now, |outline| Frame::of(outline, set, now));
    let mut recording = Recording {
        notes: vec![NOTE.to_owned()],
        ended: frame.began,
        phases: frame.phases.clone(),
        ..recorder::rollout(Source::Reconstructed, view, set, (frame.began, now))
    };
    if frame.goes_back {
        recording.notes.push(NOTE_BACK.to_owned());
    }
    frame.enter_nodes(&mut recording, view, set, now);
    for failure in &mut recording.failures {
        let cause = causes.get(&failure.node);
        failure.message = text(&failure.message, cause.map(|cause| &*cause.message));
    }
    recording
}

/// What is the same for all nodes.
struct Frame {
    began: Timestamp,
    ended: Timestamp,
    phases: Vec<PhaseNote>,
    target: Option<String>,
    goes_back: bool,
}

impl Frame {
    fn of(outline: &Outline<'_>, set: &Set, now: Timestamp) -> Self {
        let state = outline.state();
        let target = outline.target.map(|target| target.hash().to_owned());
        let first = state.and_then(|state| state.stages.first());
        let of_target = set
            .picture()
            .pods()
            .filter(|pod| is_of(pod, target.as_deref()));
        let created = of_target.map(|pod| pod.created).min();
        let began = first.map(|first| first.began).or(created).unwrap_or(now);
        let at = |time: Timestamp| u64::try_from(time.millis_since(began)).unwrap_or(0);
        let stages = state.map_or(&[][..], |state| state.stages.as_slice());
        let mut phases: Vec<PhaseNote> = stages
            .iter()
            .map(|stage| PhaseNote {
                at: at(stage.began),
                phase: "Updating".to_owned(),
                stage: Some(stage.stage),
            })
            .collect();
        phases.extend(state.map(|state| PhaseNote {
            at: at(state.since),
            phase: state.phase.to_string(),
            stage: None,
        }));
        Self {
            began,
            ended: state.map_or(began, |state| state.since),
            phases,
            target,
            goes_back: outline.standing == Standing::Back,
        }
    }

    fn enter_nodes(&self, recording: &mut Recording, view: &View, set: &Set, now: Timestamp) {
        let picture = set.picture();
        let mut times = Vec::new();
        for index in order(picture, view.nodes(), now) {
            let state = picture.state(index);
            let (Some(name), Some(state)) = (view.nodes().name(index), state) else {
                continue;
            };
            if state == CellState::NotEligible {
                continue;
            }
            let node = recording.nodes.len();
            recording.nodes.push(name.to_string());
            let pods = picture.pods_on(name).iter().filter(|pod| !pod.terminating);
            let wanted = |pod: &&PodView| self.goes_back || is_of(pod, self.target.as_deref());
            let pod = pods.filter(wanted).max_by_key(|pod| pod.created);
            let (initial, changes) = self.node(state, pod);
            recording.initial.push(char::from(initial));
            if let [(from, _), (to, _)] = changes[..]
                && state == CellState::New
            {
                times.push(to - from);
            }
            let changes = changes.into_iter();
            let changes = changes.map(|(at, letter)| Change { at, node, letter });
            recording.changes.extend(changes);
            if state == CellState::Failed {
                let reason = picture.reason(index).map(|reason| reason.to_string());
                recording.failures.push(Failure {
                    node: name.to_string(),
                    at: None,
                    until: None,
                    message: reason.unwrap_or_default(),
                });
            }
        }
        recording.durations = Durations::of(times);
        recording.counts = picture.counts();
        self.end(recording, set, now);
    }

    /// The first letter of a node and its changes: the pod is created, it becomes ready.
    fn node(&self, state: CellState, pod: Option<&PodView>) -> (u8, Vec<(u64, u8)>) {
        let present = state.letter();
        let Some(pod) = pod.filter(|pod| pod.created > self.began) else {
            return (present, Vec::new());
        };
        let before = match state {
            _ if self.goes_back => CellState::Old,
            CellState::Old => CellState::Old,
            _ => CellState::Waiting,
        };
        let mut changes = vec![(self.at(pod.created), CellState::Updating.letter())];
        let settled = matches!(state, CellState::New | CellState::Old);
        // Times of pods are in whole seconds.
        let ready = pod.ready_since.filter(|at| settled && *at >= pod.created);
        changes.extend(ready.map(|at| (self.at(at), present)));
        (before.letter(), changes)
    }

    /// The end of the recording, and the states that are known only as of now.
    fn end(&self, recording: &mut Recording, set: &Set, now: Timestamp) {
        recording.changes.sort_by_key(|change| change.at);
        let last = recording.changes.last().map_or(0, |change| change.at);
        let last = self
            .began
            .saturating_add_millis(i64::try_from(last).unwrap_or(i64::MAX));
        recording.ended = self.ended.max(last);
        let unsettled = [CellState::Failed, CellState::Down, CellState::Updating];
        let counts = set.picture().counts();
        if unsettled.iter().any(|state| counts.get(*state) > 0) {
            recording.ended = now;
        }
    }

    fn at(&self, time: Timestamp) -> u64 {
        u64::try_from(time.millis_since(self.began)).unwrap_or(0)
    }
}

fn is_of(pod: &PodView, hash: Option<&str>) -> bool {
    let label = pod.labels.get(kennel_core::daemonset::HASH_LABEL);
    label.map(String::as_str) == hash && hash.is_some()
}

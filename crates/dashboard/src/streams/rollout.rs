//! Where the rollout of one DaemonSet stands: what `kennel rollout status` says, and which verbs would do something.

use kennel_core::daemonset::DaemonSetView;
use kennel_core::rollout::command::Commands;
use kennel_core::rollout::history::{History, StageEntry};
use kennel_core::rollout::plan::{PlannedStage, StageState};
use kennel_core::rollout::state::Phase;
use kennel_core::rollout::status::{Status, Suggestion};
use kennel_inspect::live::{Set, View};
use kennel_inspect::snapshot;
use kennel_types::Timestamp;

use super::overview;
use super::picture::Stages;
use crate::protocol::{Event, Events, Rollout, Stage, Typed};
use crate::{actions, undo};

/// Events that are shown.
const EVENTS_MAX: usize = 50;

/// The reason that a person gave for pausing or freezing it.
pub(super) fn paused(set: &DaemonSetView) -> Option<String> {
    let commands = Commands::parse(&set.annotations);
    commands.freeze.or(commands.pause)
}

/// Reads all nodes: not for every change. Returns the stage of each node, too.
pub(super) fn rollout(view: &View, set: &Set) -> (Rollout, Stages) {
    let now = snapshot::now();
    let history = view.history(set, now);
    let picture = set.picture();
    let daemon_set = picture.daemon_set();
    let owned = picture.revisions().iter();
    let owned = owned.filter(|r| r.controller.as_ref() == Some(&daemon_set.uid) && !r.terminating);
    let undo = undo::plan(daemon_set, &owned.collect::<Vec<_>>());
    let (mut status, actions) = view.status_and(set, now, |outline| actions::all(outline, &undo));
    let stages = std::mem::take(&mut status.stages);
    let of_nodes = Stages::of(&stages, view.nodes());
    let times = times(&history);
    let rollout = Rollout {
        outcome: status.outcome,
        message: status.message.clone(),
        said: status.said.clone(),
        policy: status.policy,
        strategy: if daemon_set.strategy.is_on_delete() {
            "OnDelete".to_owned()
        } else {
            "RollingUpdate".to_owned()
        },
        target: status.target.clone(),
        stable: status.stable.clone(),
        attempt: status.attempt,
        stage: overview::stage_of(&status, &stages),
        since: status.since,
        earliest_end: status.earliest_end,
        reason: status.reason.clone(),
        paused: paused(daemon_set),
        nodes: status.nodes,
        stages: stages
            .iter()
            .map(|stage| shown(stage, &status, times))
            .collect(),
        next: status.next.into_iter().map(typed).collect(),
        phase: status.phase.to_string(),
        actions,
        now,
    };
    (rollout, of_nodes)
}

fn typed(next: Suggestion) -> Typed {
    let Suggestion {
        command,
        effect,
        said,
    } = next;
    Typed {
        command,
        effect,
        said,
    }
}

/// The stages of the target's last attempt.
fn times(history: &History) -> &[StageEntry] {
    let target = history.revisions.iter().find(|entry| entry.target);
    target.map_or(&[], |target| &target.stages)
}

fn shown(stage: &PlannedStage, status: &Status, times: &[StageEntry]) -> Stage {
    let time = times.iter().find(|time| time.stage == stage.stage);
    let bakes = stage.state == StageState::Present && status.phase == Phase::Baking.into();
    let bake_began = status.since.filter(|_| bakes);
    let bake_millis = i64::try_from(stage.bake_seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    Stage {
        stage: stage.stage,
        policy: stage.policy.clone(),
        state: stage.state,
        reaches: stage.reaches,
        nodes: stage.nodes.len(),
        bake_seconds: stage.bake_seconds,
        manual: stage.manual,
        began: time.map(|time| time.began),
        ended: time.and_then(|time| time.ended),
        bake_began,
        bake_ends: bake_began.map(|began| began.saturating_add_millis(bake_millis)),
    }
}

/// The newest events.
pub(super) fn events(set: &Set) -> Events {
    let events = set.events_with_uids().take(EVENTS_MAX);
    let events = events.map(|(uid, event)| Event {
        uid: uid.to_owned(),
        kind: event.r#type.clone(),
        reason: event.reason.clone(),
        message: event.message.clone(),
        count: u64::try_from(event.occurrences()).unwrap_or(1),
        last: Some(event.last_seen()).filter(|last| *last != Timestamp::default()),
    });
    Events {
        events: events.collect(),
    }
}

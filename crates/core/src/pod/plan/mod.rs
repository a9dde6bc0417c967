//! The next actions for a pod.
//!
//! A plan holds every action that is possible now; containers with an action under way are passed in as busy
//! and skipped.

mod containers;
mod termination;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use kennel_types::{Monotonic, PodSpec, ProbeKind};

use super::{Observed, Run, Tracker};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Desired {
    Run,
    /// With the deadline of the grace period.
    Terminate(Monotonic),
}

#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    pub spec: &'a PodSpec,
    pub observed: &'a Observed,
    /// Up to date with `observed`.
    pub tracker: &'a Tracker,
    pub desired: Desired,
    /// The containers that an action is under way for; an empty name is the sandbox.
    pub busy: &'a BTreeSet<String>,
    pub now: Monotonic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    StartSandbox {
        attempt: u32,
    },
    /// Only when no container runs in it.
    StopSandbox {
        id: String,
    },
    Start {
        name: String,
        attempt: u32,
    },
    Kill {
        name: String,
        /// The run's id.
        id: String,
        grace: Duration,
        reason: KillReason,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    PodTerminating,
    ProbeFailed(ProbeKind),
    PostStartHookFailed,
    ImageChanged,
    SandboxGone,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub actions: Vec<Action>,
    /// When to plan again if nothing happens before.
    pub wake: Option<Monotonic>,
    /// Nothing runs and nothing will be started.
    pub finished: bool,
}

impl Plan {
    fn wake_at(&mut self, time: Monotonic) {
        self.wake = Some(self.wake.map_or(time, |before| before.min(time)));
    }
}

/// How far a container that runs to completion has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Unfinished,
    Succeeded,
    /// It failed, and its restart policy does not restart it.
    Failed,
}

pub fn plan(input: &PlanInput<'_>) -> Plan {
    let mut plan = Plan::default();
    match input.desired {
        Desired::Terminate(deadline) => termination::plan(input, deadline, &mut plan),
        Desired::Run if containers::is_finished(input) => {
            let deadline = input.now + input.spec.termination_grace_period();
            termination::plan(input, deadline, &mut plan);
        }
        Desired::Run => run(input, &mut plan),
    }
    plan
}

fn kill(run: &Run, grace: Duration, reason: KillReason) -> Action {
    Action::Kill {
        name: run.name.clone(),
        id: run.id.clone(),
        grace,
        reason,
    }
}

fn run(input: &PlanInput<'_>, plan: &mut Plan) {
    let observed = input.observed;
    match observed.sandbox.as_ref().filter(|sandbox| sandbox.ready) {
        Some(sandbox) => {
            containers::plan_ephemeral(input, plan);
            containers::plan(input, &sandbox.id, plan);
        }
        None => new_sandbox(input, plan),
    }
}

/// Kills what still runs in a lost sandbox, then starts a new one.
fn new_sandbox(input: &PlanInput<'_>, plan: &mut Plan) {
    let PlanInput { observed, busy, .. } = input;
    let grace = input.spec.termination_grace_period();
    for run in observed.running().filter(|run| !busy.contains(&run.name)) {
        plan.actions.push(kill(run, grace, KillReason::SandboxGone));
    }
    if observed.running().next().is_some() || busy.contains("") {
        return;
    }
    let sandbox = input.tracker.container("");
    if let Some(time) = sandbox.and_then(|sandbox| sandbox.start_backoff.until(input.now)) {
        return plan.wake_at(time);
    }
    let attempt = observed.sandbox.as_ref().map_or(0, |old| old.attempt + 1);
    plan.actions.push(Action::StartSandbox { attempt });
}

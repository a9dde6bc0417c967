//! What to do next with a pod.
//!
//! Asked again after each change. It says everything that can be done now; what is already being done is told
//! to it as busy and left alone.

mod containers;
mod ending;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use super::probe::Kind;
use super::{Instant, Memory, Observed, Spec};

/// What is to become of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is to run.
    Run,
    /// It is to end, at the latest then.
    End(Instant),
}

/// All that the next step depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// What is wanted of the pod.
    pub spec: &'a Spec,
    /// What runs.
    pub observed: &'a Observed,
    /// What was, up to date with what runs.
    pub memory: &'a Memory,
    /// What is to become of it.
    pub wanted: Wanted,
    /// The containers that something is being done with; an empty name is the sandbox.
    pub busy: &'a BTreeSet<String>,
    /// The time.
    pub now: Instant,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make a sandbox.
    StartSandbox {
        /// How many there were before.
        attempt: u32,
    },
    /// Take the sandbox down: nothing runs in it.
    StopSandbox {
        /// What the runtime calls it.
        id: String,
    },
    /// Start a container.
    Start {
        /// Its name.
        name: String,
        /// How many runs there were before.
        attempt: u32,
    },
    /// Stop a run.
    Kill {
        /// The container's name.
        name: String,
        /// What the runtime calls the run.
        id: String,
        /// What it gets to end.
        grace: Duration,
        /// Why.
        why: Why,
    },
}

/// Why a container is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The pod ends.
    PodEnds,
    /// Its probe failed.
    Probe(Kind),
    /// Its hook after the start failed.
    PostStart,
    /// Its spec has changed.
    Changed,
    /// Its sandbox is gone.
    SandboxGone,
}

/// What to do, and when to ask again if nothing happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What to do now.
    pub actions: Vec<Action>,
    /// When to ask again.
    pub wake: Option<Instant>,
    /// Nothing runs and nothing ever will.
    pub over: bool,
}

impl Plan {
    fn wake_at(&mut self, time: Instant) {
        self.wake = Some(self.wake.map_or(time, |before| before.min(time)));
    }
}

/// Whether a container has done what it was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has yet to.
    Going,
    /// It has.
    Done,
    /// It failed and is not tried again.
    Failed,
}

/// What to do next.
pub fn plan(situation: &Situation<'_>) -> Plan {
    let mut plan = Plan::default();
    match situation.wanted {
        Wanted::End(deadline) => ending::plan(situation, deadline, &mut plan),
        Wanted::Run if containers::is_over(situation) => {
            let deadline = situation.now + situation.spec.grace();
            ending::plan(situation, deadline, &mut plan);
        }
        Wanted::Run => run(situation, &mut plan),
    }
    plan
}

fn run(situation: &Situation<'_>, plan: &mut Plan) {
    let observed = situation.observed;
    match observed.sandbox.as_ref().filter(|sandbox| sandbox.ready) {
        Some(sandbox) => containers::plan(situation, &sandbox.id, plan),
        None => new_sandbox(situation, plan),
    }
}

/// Without a sandbox nothing of the pod can live.
fn new_sandbox(situation: &Situation<'_>, plan: &mut Plan) {
    let Situation { observed, busy, .. } = situation;
    let grace = situation.spec.grace();
    for run in observed.alive().filter(|run| !busy.contains(&run.name)) {
        let (name, id) = (run.name.clone(), run.id.clone());
        let why = Why::SandboxGone;
        plan.actions.push(Action::Kill {
            name,
            id,
            grace,
            why,
        });
    }
    if observed.alive().next().is_some() || busy.contains("") {
        return;
    }
    let waits = situation.memory.of("").map(|sandbox| sandbox.tries);
    if let Some(time) = waits.and_then(|tries| tries.waits_until(situation.now)) {
        return plan.wake_at(time);
    }
    let attempt = observed.sandbox.as_ref().map_or(0, |old| old.attempt + 1);
    plan.actions.push(Action::StartSandbox { attempt });
}

//! What to do with the containers of a pod that is to run.

use super::{Action, Plan, Progress, Situation, Why};
use crate::pod::memory::Hook;
use crate::pod::{Container, RestartPolicy, Run, State};

/// Has every container done what it was to do, or has one failed for good that the others needed?
pub(super) fn is_over(situation: &Situation<'_>) -> bool {
    let spec = situation.spec;
    let mut first = spec.init_containers.iter().filter(|c| !c.is_sidecar());
    if first.any(|container| progress(situation, container, true) == Progress::Failed) {
        return true;
    }
    let mut mains = spec.containers.iter();
    mains.all(|container| progress(situation, container, false) != Progress::Going)
}

/// How far a container is that is not a sidecar.
fn progress(situation: &Situation<'_>, container: &Container, first: bool) -> Progress {
    let latest = situation.observed.latest(&container.name);
    let Some(exit) = latest.and_then(Run::exit) else {
        return Progress::Going;
    };
    match (situation.spec.restart_policy, exit.code) {
        (RestartPolicy::Always, 0) if first => Progress::Done,
        (RestartPolicy::Always, _) => Progress::Going,
        (_, 0) => Progress::Done,
        (RestartPolicy::OnFailure, _) => Progress::Going,
        (RestartPolicy::Never, _) => Progress::Failed,
    }
}

/// Starts, restarts and stops containers in this sandbox.
pub(super) fn plan(situation: &Situation<'_>, sandbox: &str, plan: &mut Plan) {
    let spec = situation.spec;
    let here = |container: &Container| {
        let latest = situation.observed.latest(&container.name);
        latest.filter(|run| run.sandbox == sandbox)
    };
    // Once a main container has run here, the first ones are through, even if nothing is left of them.
    let through = spec.containers.iter().any(|main| here(main).is_some());
    for container in &spec.init_containers {
        if container.is_sidecar() {
            tend(situation, container, sandbox, plan);
            if !through && !is_started(situation, container, sandbox) {
                return;
            }
            continue;
        }
        let done = here(container)
            .and_then(Run::exit)
            .is_some_and(|exit| exit.code == 0);
        if !through && !done {
            return tend(situation, container, sandbox, plan);
        }
    }
    for container in &spec.containers {
        if progress(situation, container, false) == Progress::Going {
            tend(situation, container, sandbox, plan);
        }
    }
}

fn is_started(situation: &Situation<'_>, container: &Container, sandbox: &str) -> bool {
    let latest = situation.observed.latest(&container.name);
    let run = latest.filter(|run| run.sandbox == sandbox);
    let remembered = situation.memory.of(&container.name);
    run.zip(remembered)
        .is_some_and(|(run, remembered)| remembered.is_started(run))
}

/// Sees to it that a container that is to run does.
fn tend(situation: &Situation<'_>, container: &Container, sandbox: &str, plan: &mut Plan) {
    let name = &container.name;
    if situation.busy.contains(name) {
        return;
    }
    match situation.observed.latest(name) {
        None => start(situation, name, 0, plan),
        Some(run) => match run.state {
            State::Created => start(situation, name, run.attempt, plan),
            State::Running { .. } => {
                if let Some(why) = must_stop(situation, container, run, sandbox) {
                    plan.actions.push(kill(situation, container, run, why));
                }
            }
            State::Exited(_) => start(situation, name, run.attempt + 1, plan),
        },
    }
}

fn must_stop(
    situation: &Situation<'_>,
    container: &Container,
    run: &Run,
    sandbox: &str,
) -> Option<Why> {
    if run.sandbox != sandbox {
        return Some(Why::SandboxGone);
    }
    if run.image != container.image {
        return Some(Why::Changed);
    }
    let remembered = situation.memory.of(&run.name)?;
    if remembered.hook(run) == Some(&Hook::Failed) {
        return Some(Why::PostStart);
    }
    remembered.failed(run).map(Why::Probe)
}

fn kill(situation: &Situation<'_>, container: &Container, run: &Run, why: Why) -> Action {
    let own = match why {
        Why::Probe(kind) => container
            .probe(kind)
            .and_then(|probe| probe.termination_grace_period_seconds),
        _ => None,
    };
    Action::Kill {
        name: run.name.clone(),
        id: run.id.clone(),
        grace: own.map_or(situation.spec.grace(), std::time::Duration::from_secs),
        why,
    }
}

/// Starts a container as soon as its waits are over.
fn start(situation: &Situation<'_>, name: &str, attempt: u32, plan: &mut Plan) {
    let remembered = situation.memory.of(name);
    let waits = remembered.and_then(|remembered| {
        let restart = remembered.restarts.waits_until(situation.now);
        restart.max(remembered.tries.waits_until(situation.now))
    });
    if let Some(time) = waits {
        return plan.wake_at(time);
    }
    let name = name.to_owned();
    plan.actions.push(Action::Start { name, attempt });
}

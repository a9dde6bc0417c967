//! Starts, restarts and kills the containers of a pod that should run.

use std::time::Duration;

use kennel_types::{Container, RestartPolicy};

use super::{Action, KillReason, Plan, PlanInput, Progress};
use crate::pod::tracker::HookState;
use crate::pod::{Run, State};

/// Whether every main container is done, or an init container has failed for good.
pub(super) fn is_finished(input: &PlanInput<'_>) -> bool {
    let spec = input.spec;
    let mut init = spec.init_containers.iter().filter(|c| !c.is_sidecar());
    if init.any(|container| progress(input, container, true) == Progress::Failed) {
        return true;
    }
    let mut mains = spec.containers.iter();
    mains.all(|container| progress(input, container, false) != Progress::Unfinished)
}

/// Not for sidecars, which never finish.
fn progress(input: &PlanInput<'_>, container: &Container, init: bool) -> Progress {
    let latest = input.observed.latest(&container.name);
    let Some(exit) = latest.and_then(Run::exit) else {
        return Progress::Unfinished;
    };
    match (input.spec.restart_policy, exit.code) {
        (RestartPolicy::Always, 0) if init => Progress::Succeeded,
        (RestartPolicy::Always, _) => Progress::Unfinished,
        (_, 0) => Progress::Succeeded,
        (RestartPolicy::OnFailure, _) => Progress::Unfinished,
        (RestartPolicy::Never, _) => Progress::Failed,
    }
}

/// Plans the containers of this sandbox.
pub(super) fn plan(input: &PlanInput<'_>, sandbox: &str, plan: &mut Plan) {
    let spec = input.spec;
    let latest_here = |container: &Container| {
        let latest = input.observed.latest(&container.name);
        latest.filter(|run| run.sandbox == sandbox)
    };
    // A main container has run in this sandbox, so the init containers are done, even if their runs are gone.
    let initialized = spec.containers.iter().any(|c| latest_here(c).is_some());
    for container in &spec.init_containers {
        let run = latest_here(container);
        if container.is_sidecar() {
            reconcile(input, container, sandbox, plan);
            if !initialized && !run.is_some_and(|run| input.tracker.is_started(run)) {
                return;
            }
            continue;
        }
        let succeeded = run.and_then(Run::exit).is_some_and(|exit| exit.code == 0);
        if !initialized && !succeeded {
            return reconcile(input, container, sandbox, plan);
        }
    }
    for container in &spec.containers {
        if progress(input, container, false) == Progress::Unfinished {
            reconcile(input, container, sandbox, plan);
        }
    }
}

/// Starts the ephemeral containers that have not run yet, whatever the others do. They run once.
pub(super) fn plan_ephemeral(input: &PlanInput<'_>, plan: &mut Plan) {
    for container in &input.spec.ephemeral_containers {
        let name = &container.name;
        if input.busy.contains(name) || input.tracker.has_run(name) {
            continue;
        }
        match input.observed.latest(name) {
            None => start(input, name, 0, plan),
            Some(run) if run.state == State::Created => start(input, name, run.attempt, plan),
            Some(_) => {}
        }
    }
}

/// Starts a container that does not run, and kills a run that must not go on.
fn reconcile(input: &PlanInput<'_>, container: &Container, sandbox: &str, plan: &mut Plan) {
    let name = &container.name;
    if input.busy.contains(name) {
        return;
    }
    match input.observed.latest(name) {
        None => start(input, name, 0, plan),
        Some(run) => match run.state {
            State::Created => start(input, name, run.attempt, plan),
            State::Running { .. } => {
                if let Some(reason) = kill_reason(input, container, run, sandbox) {
                    plan.actions.push(kill(input, container, run, reason));
                }
            }
            State::Exited(_) => start(input, name, run.attempt + 1, plan),
        },
    }
}

fn kill_reason(
    input: &PlanInput<'_>,
    container: &Container,
    run: &Run,
    sandbox: &str,
) -> Option<KillReason> {
    if run.sandbox != sandbox {
        return Some(KillReason::SandboxGone);
    }
    if run.image != container.image {
        return Some(KillReason::ImageChanged);
    }
    let tracker = input.tracker.container(&run.name)?;
    if tracker.hook(run) == Some(&HookState::Failed) {
        return Some(KillReason::PostStartHookFailed);
    }
    tracker.failed_probe(run).map(KillReason::ProbeFailed)
}

fn kill(input: &PlanInput<'_>, container: &Container, run: &Run, reason: KillReason) -> Action {
    let probe_grace = match reason {
        KillReason::ProbeFailed(kind) => container
            .probe(kind)
            .and_then(|probe| probe.termination_grace_period_seconds),
        _ => None,
    };
    let grace = probe_grace.map_or(input.spec.termination_grace_period(), Duration::from_secs);
    super::kill(run, grace, reason)
}

/// Starts a container, or wakes when its backoffs have passed.
fn start(input: &PlanInput<'_>, name: &str, attempt: u32, plan: &mut Plan) {
    let tracker = input.tracker.container(name);
    let backoff = tracker.and_then(|tracker| {
        let restart = tracker.restart_backoff.until(input.now);
        restart.max(tracker.start_backoff.until(input.now))
    });
    if let Some(time) = backoff {
        return plan.wake_at(time);
    }
    let name = name.to_owned();
    plan.actions.push(Action::Start { name, attempt });
}

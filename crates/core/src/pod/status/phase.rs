//! The phase of a pod.

use kennel_types::{Container, PodPhase, RestartPolicy};

use super::StatusInput;
use crate::pod::Run;

/// How far the init containers have got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initialization {
    Unfinished,
    Finished,
    Failed,
}

pub(super) fn phase(input: &StatusInput<'_>) -> PodPhase {
    let old = input.pod["status"]["phase"].as_str().map(PodPhase::from);
    match old {
        // A terminal phase never changes, whatever still runs.
        Some(old) if old.is_terminal() => return old,
        _ if input.failure.is_some() => return PodPhase::Failed,
        _ => {}
    }
    let never = input.spec.restart_policy == RestartPolicy::Never;
    match initialization(input) {
        Initialization::Failed if never => PodPhase::Failed,
        Initialization::Finished => phase_of_containers(input),
        // A pod that has been running does not go back to Pending for a new sandbox.
        _ if old == Some(PodPhase::Running) => PodPhase::Running,
        _ => PodPhase::Pending,
    }
}

pub(super) fn initialization(input: &StatusInput<'_>) -> Initialization {
    let mut mains = input.spec.containers.iter();
    if mains.any(|main| input.observed.latest(&main.name).is_some()) {
        return Initialization::Finished;
    }
    for container in &input.spec.init_containers {
        let run = input.observed.latest(&container.name);
        if container.is_sidecar() {
            if !run.is_some_and(|run| input.tracker.is_started(run)) {
                return Initialization::Unfinished;
            }
            continue;
        }
        match run.and_then(Run::exit) {
            Some(exit) if exit.code == 0 => {}
            Some(_) => return Initialization::Failed,
            None => return Initialization::Unfinished,
        }
    }
    Initialization::Finished
}

fn phase_of_containers(input: &StatusInput<'_>) -> PodPhase {
    let run = |container: &Container| input.observed.latest(&container.name);
    let mains = &input.spec.containers;
    let never_ran = |main: &Container| {
        let never = |run: &Run| !run.is_running() && run.exit().is_none() && run.attempt == 0;
        run(main).is_none_or(never)
    };
    if mains.iter().any(never_ran) {
        return PodPhase::Pending;
    }
    let exits: Vec<i32> = mains
        .iter()
        .filter_map(|main| run(main).and_then(Run::exit))
        .map(|exit| exit.code)
        .collect();
    let succeeded = exits.iter().all(|code| *code == 0);
    match input.spec.restart_policy {
        _ if exits.len() < mains.len() => PodPhase::Running,
        RestartPolicy::Always => PodPhase::Running,
        _ if succeeded => PodPhase::Succeeded,
        RestartPolicy::Never => PodPhase::Failed,
        RestartPolicy::OnFailure => PodPhase::Running,
    }
}

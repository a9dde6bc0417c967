//! A pod's phase: the one word that says how it is.

use super::Story;
use crate::pod::{Container, RestartPolicy, Run};

/// A pod's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have been started yet.
    Pending,
    /// All were started, and some run or will again.
    Running,
    /// All ended well and none is started again.
    Succeeded,
    /// All ended, one of them badly, and none is started again.
    Failed,
}

impl Phase {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Will it never change?
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A pod whose phase is final keeps it, whatever runs.
pub(super) fn of(story: &Story<'_>) -> Phase {
    match story.pod["status"]["phase"].as_str() {
        Some("Succeeded") => return Phase::Succeeded,
        Some("Failed") => return Phase::Failed,
        _ if story.verdict.is_some() => return Phase::Failed,
        _ => {}
    }
    let never = story.spec.restart_policy == RestartPolicy::Never;
    match initialization(story) {
        Some(false) if never => Phase::Failed,
        Some(true) => of_mains(story),
        // What has been running once does not go back to pending for a new sandbox.
        _ if story.pod["status"]["phase"] == "Running" => Phase::Running,
        _ => Phase::Pending,
    }
}

/// Have all first containers done their part? `Some(false)`: one has failed.
pub(super) fn initialization(story: &Story<'_>) -> Option<bool> {
    let mains = &story.spec.containers;
    if mains
        .iter()
        .any(|main| story.observed.latest(&main.name).is_some())
    {
        return Some(true);
    }
    let mut failed = false;
    for container in &story.spec.init_containers {
        let run = story.observed.latest(&container.name);
        if container.is_sidecar() {
            let remembered = story.memory.of(&container.name);
            let up = run
                .zip(remembered)
                .is_some_and(|(run, r)| r.is_started(run));
            if !up {
                return None;
            }
            continue;
        }
        match run.and_then(Run::exit) {
            Some(exit) if exit.code == 0 => {}
            Some(_) => failed = true,
            None => return None,
        }
        if failed {
            return Some(false);
        }
    }
    Some(true)
}

fn of_mains(story: &Story<'_>) -> Phase {
    let run = |container: &Container| story.observed.latest(&container.name);
    let mains = &story.spec.containers;
    let waiting = mains.iter().filter(|main| {
        let never_ran = |run: &Run| !run.is_running() && run.exit().is_none() && run.attempt == 0;
        run(main).is_none_or(never_ran)
    });
    if waiting.count() > 0 {
        return Phase::Pending;
    }
    let exits: Vec<i32> = mains
        .iter()
        .filter_map(|main| run(main).and_then(Run::exit))
        .map(|exit| exit.code)
        .collect();
    let well = exits.iter().all(|code| *code == 0);
    match story.spec.restart_policy {
        _ if exits.len() < mains.len() => Phase::Running,
        RestartPolicy::Always => Phase::Running,
        _ if well => Phase::Succeeded,
        RestartPolicy::Never => Phase::Failed,
        RestartPolicy::OnFailure => Phase::Running,
    }
}

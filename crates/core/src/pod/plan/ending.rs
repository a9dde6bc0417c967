//! How a pod ends: its containers at once, then its sidecars one by one, the last first, then its sandbox.

use std::time::Duration;

use super::{Action, Plan, Situation, Why};
use crate::pod::{Instant, Run};

/// Even those who are late get a moment to end well.
const LEAST: Duration = Duration::from_secs(2);

pub(super) fn plan(situation: &Situation<'_>, deadline: Instant, plan: &mut Plan) {
    let observed = situation.observed;
    let grace = deadline.saturating_sub(situation.now).max(LEAST);
    let others: Vec<&Run> = observed
        .alive()
        .filter(|run| !stays(situation, run))
        .collect();
    if !others.is_empty() {
        return kill(situation, &others, grace, plan);
    }
    let sidecars = situation.spec.init_containers.iter().rev();
    let mut alive = sidecars.filter_map(|c| observed.alive().find(|run| run.name == c.name));
    if let Some(last) = alive.next() {
        return kill(situation, &[last], grace, plan);
    }
    if !situation.busy.is_empty() {
        return;
    }
    match observed.sandbox.as_ref().filter(|sandbox| sandbox.ready) {
        Some(sandbox) => plan.actions.push(Action::StopSandbox {
            id: sandbox.id.clone(),
        }),
        None => plan.over = true,
    }
}

/// Sidecars outlive the containers they serve.
fn stays(situation: &Situation<'_>, run: &Run) -> bool {
    let mut sidecars = situation.spec.init_containers.iter();
    sidecars.any(|container| container.is_sidecar() && container.name == run.name)
}

fn kill(situation: &Situation<'_>, runs: &[&Run], grace: Duration, plan: &mut Plan) {
    for run in runs {
        if !situation.busy.contains(&run.name) {
            plan.actions.push(Action::Kill {
                name: run.name.clone(),
                id: run.id.clone(),
                grace,
                why: Why::PodEnds,
            });
        }
    }
}

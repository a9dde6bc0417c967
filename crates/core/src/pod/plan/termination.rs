//! Terminates a pod: its containers at once, then its sidecars one by one in reverse order, then its sandbox.

use std::time::Duration;

use kennel_types::Monotonic;

use super::{Action, KillReason, Plan, PlanInput};
use crate::pod::Run;

/// A container gets at least this grace period, even after the deadline, as upstream gives it.
const MIN_GRACE: Duration = Duration::from_secs(2);

pub(super) fn plan(input: &PlanInput<'_>, deadline: Monotonic, plan: &mut Plan) {
    let observed = input.observed;
    let grace = deadline.saturating_since(input.now).max(MIN_GRACE);
    let others: Vec<&Run> = observed
        .running()
        .filter(|run| !is_sidecar(input, run))
        .collect();
    if !others.is_empty() {
        return kill(input, &others, grace, plan);
    }
    let sidecars = input.spec.init_containers.iter().rev();
    let mut running = sidecars.filter_map(|c| observed.running().find(|run| run.name == c.name));
    if let Some(last) = running.next() {
        return kill(input, &[last], grace, plan);
    }
    if !input.busy.is_empty() {
        return;
    }
    match observed.sandbox.as_ref().filter(|sandbox| sandbox.ready) {
        Some(sandbox) => plan.actions.push(Action::StopSandbox {
            id: sandbox.id.clone(),
        }),
        None => plan.finished = true,
    }
}

fn is_sidecar(input: &PlanInput<'_>, run: &Run) -> bool {
    let mut sidecars = input.spec.init_containers.iter();
    sidecars.any(|container| container.is_sidecar() && container.name == run.name)
}

fn kill(input: &PlanInput<'_>, runs: &[&Run], grace: Duration, plan: &mut Plan) {
    for run in runs {
        if !input.busy.contains(&run.name) {
            let reason = KillReason::PodTerminating;
            plan.actions.push(super::kill(run, grace, reason));
        }
    }
}

//! Pods that are not scheduled: explained by the scheduler's own filters where the pods on the node are known, else
//! by the scheduler's message.

use kennel_types::{Condition, ConditionType};

use super::Case;
use super::answer::Cause;
use super::finding::Finding;
use super::snapshot::PodSnapshot;
use crate::schedule::{NodeInfo, Obstacle, PodRequirements, obstacles};

/// A node, the pods on it, and the pod that does not fit.
#[derive(Clone, Debug)]
pub struct NodeOccupancy {
    pub machine: NodeInfo,
    pub pods: Vec<OccupyingPod>,
    /// Of the pod that does not fit.
    pub demand: PodRequirements,
}

#[derive(Clone, Debug)]
pub struct OccupyingPod {
    /// Namespace and name.
    pub name: String,
    pub demand: PodRequirements,
}

pub(super) fn find(case: &Case<'_>, pod: &PodSnapshot) -> Finding {
    let (spec, status) = (&pod.object.spec, &pod.object.status);
    if !spec.scheduling_gates.is_empty() {
        let gates = spec.scheduling_gates.iter();
        let gates: Vec<&str> = gates.map(|gate| gate.name.as_str()).collect();
        let message = format!("its pod is held by scheduling gates: {}", gates.join(", "));
        return Finding::missing(Cause::Gated, message).since(Some(pod.created()));
    }
    let Some(condition) = status.condition(&ConditionType::PodScheduled) else {
        let scheduler = match spec.scheduler_name.as_deref() {
            None | Some("") => "default-scheduler",
            Some(name) => name,
        };
        let message = format!("no scheduler has considered its pod yet: is {scheduler} running?");
        return Finding::missing(Cause::NotScheduled, message).since(Some(pod.created()));
    };
    let message = format!("its pod cannot be scheduled: {}", reasons(case, condition));
    Finding::missing(Cause::Unschedulable, message)
        .since(condition.last_transition_time.or(Some(pod.created())))
        .remedy(pod.describe())
}

fn reasons(case: &Case<'_>, condition: &Condition) -> String {
    let mut occupancies = case.snapshot.occupancies.iter();
    let occupancy = occupancies.find(|node| &*node.machine.view.name == case.name);
    let found = occupancy.map(filter_results).unwrap_or_default();
    if found.is_empty() {
        return shortened(&condition.message);
    }
    found.join("; ")
}

fn filter_results(occupancy: &NodeOccupancy) -> Vec<String> {
    let pods = occupancy.pods.iter();
    let pods = pods.map(|pod| (pod.name.as_str(), &pod.demand));
    obstacles(&occupancy.machine, pods, &occupancy.demand)
        .iter()
        .map(text)
        .collect()
}

fn text(obstacle: &Obstacle) -> String {
    let reason = &obstacle.reason;
    match &obstacle.detail {
        Some(detail) => format!("{reason} ({detail})"),
        None => reason.clone(),
    }
}

/// The scheduler's message without nodes that the pod is not pinned to and without the outcome of preemption.
fn shortened(message: &str) -> String {
    let message = message.split(" preemption: ").next().unwrap_or(message);
    let Some((_, reasons)) = message.split_once(" nodes are available: ") else {
        return message.trim_end_matches('.').to_owned();
    };
    let about_others = |reason: &&str| {
        reason.contains("didn't satisfy plugin(s) [NodeAffinity]")
            || reason.contains("didn't match Pod's node affinity/selector")
    };
    let all: Vec<&str> = reasons.trim_end_matches('.').split(", ").collect();
    let own: Vec<&str> = all.iter().copied().filter(|r| !about_others(r)).collect();
    let kept = if own.is_empty() { all } else { own };
    let without_count = |reason: &str| match reason.split_once(' ') {
        Some((count, rest)) if count.parse::<u64>().is_ok() => rest.to_owned(),
        _ => reason.to_owned(),
    };
    let texts: Vec<String> = kept.into_iter().map(without_count).collect();
    texts.join("; ")
}

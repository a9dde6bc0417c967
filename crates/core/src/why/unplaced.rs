//! A pod that no scheduler has placed: why, by the scheduler's own filters where it is known who is on the
//! node, else by what the scheduler has said.

use super::Case;
use super::answer::{Cause, Finding};
use super::seen::{Condition, Pod};
use crate::schedule::{Demand, Machine, Obstacle, obstacles};

/// Who is on one node.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// The node, with what it has to give.
    pub machine: Machine,
    /// The pods that take room there.
    pub there: Vec<Neighbour>,
    /// What the pod asks for that finds no room.
    pub demand: Demand,
}

/// A pod that takes room.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Namespace and name.
    pub name: String,
    /// What it takes.
    pub demand: Demand,
}

/// Why a pod has no node yet.
pub(super) fn find(case: &Case<'_>, pod: &Pod) -> Finding {
    let facts = &pod.facts;
    if !facts.spec.scheduling_gates.is_empty() {
        let gates: Vec<&str> = facts
            .spec
            .scheduling_gates
            .iter()
            .map(|g| &*g.name)
            .collect();
        let message = format!("its pod is held by scheduling gates: {}", gates.join(", "));
        return Finding::missing(Cause::Gated, message);
    }
    let Some(condition) = facts.status.condition("PodScheduled") else {
        let scheduler = match facts.spec.scheduler_name.as_str() {
            "" => "default-scheduler",
            name => name,
        };
        let message = format!("no scheduler has looked at its pod yet: does {scheduler} run?");
        return Finding::missing(Cause::NotScheduled, message).since(Some(pod.view.created));
    };
    let message = format!("its pod finds no room: {}", told(case, condition));
    let (namespace, name) = (&pod.view.namespace, &pod.view.name);
    Finding::missing(Cause::Unschedulable, message)
        .since(condition.since())
        .remedy(format!("kubectl describe pod -n {namespace} {name}"))
}

fn told(case: &Case<'_>, condition: &Condition) -> String {
    let mut crowds = case.snapshot.crowds.iter();
    let crowd = crowds.find(|crowd| &*crowd.machine.view.name == case.name);
    let found = crowd.map(computed).unwrap_or_default();
    if found.is_empty() {
        return shortened(&condition.message);
    }
    found.join("; ")
}

fn computed(crowd: &Crowd) -> Vec<String> {
    let there = crowd.there.iter().map(|n| (n.name.as_str(), &n.demand));
    obstacles(&crowd.machine, there, &crowd.demand)
        .iter()
        .map(text)
        .collect()
}

fn text(obstacle: &Obstacle) -> String {
    let said = &obstacle.reason;
    match &obstacle.detail {
        Some(detail) => format!("{said} ({detail})"),
        None => said.clone(),
    }
}

/// What the scheduler said, without the nodes that the pod is not for, and without what evicting others
/// would bring.
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
    let plain = |reason: &str| match reason.split_once(' ') {
        Some((count, rest)) if count.parse::<u64>().is_ok() => rest.to_owned(),
        _ => reason.to_owned(),
    };
    let texts: Vec<String> = kept.into_iter().map(plain).collect();
    texts.join("; ")
}

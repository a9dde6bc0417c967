//! Nodes whose network is missing: the agent, or a network plugin, sets the condition `NetworkUnavailable`, and the node gets a
//! taint that only daemons in the node's own network tolerate by themselves.

use kennel_types::condition::find as find_condition;
use kennel_types::{Condition, ConditionType};

use super::answer::{Cause, Verdict};
use super::finding::Finding;
use super::{Case, NodeSnapshot, pod};

pub(super) const TAINT: &str = "node.kubernetes.io/network-unavailable";

/// The condition, if it says that the network is missing.
fn unavailable(node: &NodeSnapshot) -> Option<&Condition> {
    let condition = find_condition(&node.conditions, &ConditionType::NetworkUnavailable);
    condition.filter(|condition| condition.is_true())
}

/// The taint alone keeps the daemon away: nothing need be changed in the template.
pub(super) fn find(case: &Case<'_>) -> Finding {
    let condition = case.node().and_then(unavailable);
    let why = condition.map_or_else(|| "by its taint".to_owned(), pod::reason);
    let (verdict, then) = match case.decisive() {
        None => (Verdict::Missing, "its pod is created when it has one"),
        Some(pod) if pod.available => (
            Verdict::Runs,
            "its pod runs, and others are not placed here",
        ),
        Some(_) => (Verdict::Missing, "its pod was placed here before"),
    };
    let message = format!("the node has no pod network ({why}): {then}");
    let pod = case
        .decisive()
        .map(|standing| standing.pod.name.to_string());
    let finding = Finding::new(verdict, Cause::NetworkUnavailable, message)
        .since(condition.and_then(|condition| condition.last_transition_time))
        .remedy(format!(
            "kubectl describe node {}\n# on the node, as root:\nkennel doctor network",
            case.name
        ));
    Finding { pod, ..finding }
}

/// Said of every daemon on such a node: even one that runs there may be in trouble because of it.
pub(super) fn remark(node: &NodeSnapshot) -> Option<String> {
    let why = pod::reason(unavailable(node)?);
    Some(format!("the node has no pod network ({why})"))
}

//! Nodes that are not ready and would be eligible if they were.

use super::answer::{Cause, Verdict};
use super::finding::Finding;
use super::{Case, NodeSnapshot, container, pod};

/// Whether the daemon runs there is not known if its pod did when the kubelet last reported.
pub(super) fn find(case: &Case<'_>) -> Finding {
    let unready = case.node().and_then(NodeSnapshot::unready);
    let since = unready.as_ref().and_then(|c| c.last_transition_time);
    let why = unready.map_or_else(|| "by its taint".to_owned(), |c| pod::reason(&c));
    let (verdict, then) = match case.decisive() {
        None => (Verdict::Missing, "its pod is created when it is ready"),
        Some(pod) if pod.pod.bound_to.is_none() => {
            (Verdict::Missing, "its pod is scheduled when it is ready")
        }
        Some(pod) if pod.terminating() => (
            Verdict::Unknown,
            "its pod is being deleted, which the node has not confirmed",
        ),
        Some(pod) if container::find(case, case.pod(pod)).is_some() => (
            Verdict::Missing,
            "its pod did not work when the node last reported",
        ),
        Some(_) => (Verdict::Unknown, "its pod may still run"),
    };
    let message = format!("the node is not ready ({why}): {then}");
    let pod = case
        .decisive()
        .map(|standing| standing.pod.name.to_string());
    let finding = Finding::new(verdict, Cause::NodeNotReady, message)
        .since(since)
        .remedy(format!("kubectl describe node {}", case.name));
    Finding { pod, ..finding }
}

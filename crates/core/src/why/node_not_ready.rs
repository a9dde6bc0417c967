//! Nodes that are not ready and would be eligible if they were.

use super::answer::{Cause, Verdict};
use super::finding::Finding;
use super::{Case, NodeSnapshot, pod};

/// Whether the daemon runs there is not known if the node has a pod of it: the kubelet does not report.
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

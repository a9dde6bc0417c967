//! Eligible nodes without a pod, and nodes that no longer exist.

use std::time::Duration;

use kennel_types::Timestamp;
use kennel_types::event::{Event, EventReason};

use super::Case;
use super::answer::{Cause, Note};
use super::finding::Finding;
use super::snapshot::Snapshot;

/// A failed creation explains a missing pod for this long: longer than the retry backoff of any controller.
const RECENT: Duration = Duration::from_mins(30);

/// A node that does not exist, though a pod names it.
pub(super) fn node_gone(case: &Case<'_>) -> Finding {
    let Some(standing) = case.decisive() else {
        let message = "the node is gone; a pod without owner names it";
        return Finding::missing(Cause::NodeGone, message);
    };
    let message = if standing.pod.bound_to.is_some() {
        "the node is gone; the pod garbage collector deletes its pod"
    } else {
        "the node was deleted before its pod was scheduled; the controller deletes the pod"
    };
    let mut finding = Finding::missing(Cause::NodeGone, message);
    finding.pod = Some(standing.pod.name.to_string());
    finding
}

pub(super) fn find(case: &Case<'_>) -> Finding {
    if let Some((cause, message)) = inactive(case.snapshot) {
        return Finding::missing(cause, message);
    }
    if !case.place.orphans.is_empty() {
        let message =
            "a pod without owner is here and matches the selector: the controller adopts it";
        return Finding::missing(Cause::Adopting, message);
    }
    if let Some((event, since)) = recent_failure(case.snapshot) {
        let (cause, message) = creation_failure(event);
        return Finding::missing(cause, message)
            .since(Some(since))
            .remedy(advice(cause, case.snapshot));
    }
    if let Some((cause, message)) = unobserved(case.snapshot) {
        return Finding::missing(cause, message);
    }
    let namespace = &case.snapshot.daemon_set.namespace;
    let name = &case.snapshot.daemon_set.name;
    Finding::missing(
        Cause::NoPod,
        "no pod yet: the controller has not created one. If this persists, no DaemonSet controller is running",
    )
    .remedy(format!("kubectl describe daemonset -n {namespace} {name}"))
}

/// Why the controller does nothing for the DaemonSet.
fn inactive(snapshot: &Snapshot) -> Option<(Cause, &'static str)> {
    let set = &snapshot.daemon_set;
    if set.terminating {
        let message = "the DaemonSet is being deleted: no more pods are created for it";
        return Some((Cause::DaemonSetDeleted, message));
    }
    let message =
        "the DaemonSet's selector is empty and would select all pods: the controller ignores it";
    let everything = set.selector.is_everything();
    everything.then_some((Cause::SelectsEverything, message))
}

/// Whether the controller has not observed the current generation.
fn unobserved(snapshot: &Snapshot) -> Option<(Cause, String)> {
    let set = &snapshot.daemon_set;
    let (current, observed) = (set.generation, set.status.observed_generation);
    (observed < current).then(|| {
        let message = match observed {
            0 => "no controller has observed this DaemonSet yet: is one running?".to_owned(),
            observed => format!(
                "the controller has observed generation {observed} of the DaemonSet and not yet {current}: is it running?"
            ),
        };
        (Cause::NotObserved, message)
    })
}

/// The last failed creation, if it is recent, and when the first one happened. Messages contain the name that the pod
/// would have had, so every failure can be an event of its own.
fn recent_failure(snapshot: &Snapshot) -> Option<(&Event, Timestamp)> {
    let events = snapshot.events_of(&snapshot.daemon_set.uid);
    let mut failures = events
        .into_iter()
        .filter(|e| e.reason() == EventReason::FailedCreate);
    let last = failures.next()?;
    let follows = |at: Timestamp, event: &Event| at.saturating_since(event.last_seen()) <= RECENT;
    if !follows(snapshot.now, last) {
        return None;
    }
    let (cause, _) = creation_failure(last);
    let mut since = last.first_seen();
    for event in failures.filter(|event| creation_failure(event).0 == cause) {
        if !follows(since, event) {
            break;
        }
        since = since.min(event.first_seen());
    }
    Some((last, since))
}

/// Classifies the API server's message.
fn creation_failure(event: &Event) -> (Cause, String) {
    let text = event.message.trim();
    let text = text.strip_prefix("Error creating: ").unwrap_or(text);
    let has = |part: &str| text.contains(part);
    if has("exceeded quota") || has("failed quota") {
        return (Cause::Quota, format!("a quota rejects the pod: {text}"));
    }
    let admission = [
        "violates PodSecurity",
        "admission webhook",
        "is forbidden",
        "ValidatingAdmissionPolicy",
        "denied the request",
    ];
    if admission.into_iter().any(has) {
        return (
            Cause::Admission,
            format!("the API server rejects the pod: {text}"),
        );
    }
    (
        Cause::CreateFailed,
        format!("the pod cannot be created: {text}"),
    )
}

fn advice(cause: Cause, snapshot: &Snapshot) -> String {
    let (namespace, name) = (&snapshot.daemon_set.namespace, &snapshot.daemon_set.name);
    match cause {
        Cause::Quota => format!("kubectl describe resourcequota -n {namespace}"),
        _ => format!("kubectl describe daemonset -n {namespace} {name}"),
    }
}

pub(super) fn notes(snapshot: &Snapshot) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some((cause, message)) = inactive(snapshot) {
        notes.push(Note::new(&cause.name(), message));
    } else if let Some((cause, message)) = unobserved(snapshot) {
        notes.push(Note::new(&cause.name(), message));
    }
    notes
}

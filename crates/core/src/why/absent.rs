//! Nodes that should have a pod and have none, and nodes that are gone.

use super::Case;
use super::answer::{Cause, Finding, Note};
use super::seen::{Event, Snapshot};

/// How long a failed creation explains a missing pod: longer than any controller waits before it tries again.
const RECENT_SECONDS: i64 = 30 * 60;

/// A node that does not exist, though pods or people speak of it.
pub(super) fn node_gone(case: &Case<'_>) -> Finding {
    let Some(standing) = case.foremost() else {
        return Finding::missing(Cause::NodeGone, "there is no node of this name")
            .remedy("kubectl get nodes");
    };
    let message = if standing.pod.bound_to.is_some() {
        "the node is gone; what is left of its pod is cleared away when the pod collector comes by"
    } else {
        "the node is gone before its pod got there; the controller deletes the pod"
    };
    let mut finding = Finding::missing(Cause::NodeGone, message);
    finding.pod = Some(standing.pod.name.to_string());
    finding
}

/// A node that should have a pod and has none.
pub(super) fn find(case: &Case<'_>) -> Finding {
    if let Some((cause, message)) = at_rest(case.snapshot) {
        return Finding::missing(cause, message);
    }
    if !case.place.orphans.is_empty() {
        let message =
            "a pod without owner is here and matches the selector: the controller adopts it";
        return Finding::missing(Cause::Adopting, message);
    }
    if let Some(event) = refusal(case.snapshot) {
        let (cause, message) = refused(event);
        return Finding::missing(cause, message)
            .since(Some(event.last()))
            .remedy(advice(cause, case.snapshot));
    }
    if let Some((cause, message)) = unobserved(case.snapshot) {
        return Finding::missing(cause, message);
    }
    let namespace = &case.snapshot.daemon_set.namespace;
    let name = &case.snapshot.daemon_set.name;
    Finding::missing(
        Cause::NoPod,
        "no pod yet: the controller has not made one. If this stays, no DaemonSet controller is at work",
    )
    .remedy(format!("kubectl describe daemonset -n {namespace} {name}"))
}

/// Why nothing is done for the DaemonSet at all.
fn at_rest(snapshot: &Snapshot) -> Option<(Cause, &'static str)> {
    let set = &snapshot.daemon_set;
    if set.terminating {
        let message = "the DaemonSet is being deleted: no pods are made for it any more";
        return Some((Cause::DaemonSetDeleted, message));
    }
    let message =
        "the DaemonSet's selector is empty, which would be all pods: nothing is done for it";
    let everything = set.selector.is_everything();
    everything.then_some((Cause::SelectsEverything, message))
}

/// Whether the controller has yet to see the DaemonSet as it is now.
fn unobserved(snapshot: &Snapshot) -> Option<(Cause, String)> {
    let set = &snapshot.daemon_set;
    let (now, seen) = (set.generation, set.status.observed_generation);
    (seen < now).then(|| {
        let message = match seen {
            0 => "no controller has looked at this DaemonSet yet: does one run?".to_owned(),
            seen => format!(
                "the controller has seen generation {seen} of the DaemonSet and not yet {now}: does it run?"
            ),
        };
        (Cause::NotObserved, message)
    })
}

/// The last creation that failed, if that is not long ago.
fn refusal(snapshot: &Snapshot) -> Option<&Event> {
    let events = snapshot.events_of(&snapshot.daemon_set.uid);
    let recent = |event: &&Event| snapshot.now - event.last() <= RECENT_SECONDS;
    let failed = |event: &&Event| event.reason == "FailedCreate";
    events.into_iter().filter(recent).find(failed)
}

/// Who refused it, from the API's own words.
fn refused(event: &Event) -> (Cause, String) {
    let text = event.message.trim();
    let text = text.strip_prefix("Error creating: ").unwrap_or(text);
    let has = |part: &str| text.contains(part);
    if has("exceeded quota") || has("failed quota") {
        return (Cause::Quota, format!("a quota refuses the pod: {text}"));
    }
    let admission = [
        "violates PodSecurity",
        "admission webhook",
        "is forbidden",
        "ValidatingAdmissionPolicy",
        "denied the request",
    ];
    if admission.into_iter().any(has) {
        return (Cause::Admission, format!("the API refuses the pod: {text}"));
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

/// What concerns all nodes.
pub(super) fn notes(snapshot: &Snapshot) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some((cause, message)) = at_rest(snapshot) {
        notes.push(Note::new(&cause.word(), message));
    } else if let Some((cause, message)) = unobserved(snapshot) {
        notes.push(Note::new(&cause.word(), message));
    }
    notes
}

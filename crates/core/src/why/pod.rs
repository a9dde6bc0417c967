//! A pod that is there and does not work: the first cause, from the outside in.
//!
//! Going away, without a node, ended, on a node that is silent, not taken up, then its containers
//! ([`container`]), and at last what is asked beyond them.

use super::answer::{Cause, ContainerAnswer, Finding, PodAnswer, Time};
use super::seen::{Condition, ContainerStatus, Pod, State};
use super::span::{seconds, span};
use super::{Case, Standing, container, unplaced};

/// Why this pod does not count as running.
pub(super) fn find(case: &Case<'_>, standing: &Standing<'_>) -> Finding {
    let pod = case.pod(standing);
    let mut finding = first(case, standing, pod);
    finding.pod = Some(standing.pod.name.to_string());
    finding
}

fn first(case: &Case<'_>, standing: &Standing<'_>, pod: &Pod) -> Finding {
    if standing.leaves() {
        return leaving(case, pod);
    }
    if pod.view.terminal() {
        return ended(pod);
    }
    if pod.view.bound_to.is_none() {
        return unplaced::find(case, pod);
    }
    if let Some(unready) = case.node().and_then(super::Node::unready) {
        let why = reason(&unready);
        let message = format!("the node is not ready ({why})");
        return Finding::missing(Cause::NodeNotReady, message)
            .since(unready.since())
            .remedy(format!("kubectl describe node {}", case.name));
    }
    if let Some(finding) = container::find(case, pod) {
        return finding;
    }
    beyond(case, standing, pod)
}

/// A condition's word and text, as far as it has them.
pub(super) fn reason(condition: &Condition) -> String {
    match (condition.reason.as_str(), condition.message.as_str()) {
        ("", "") => "no reason is given".to_owned(),
        (word, "") => word.to_owned(),
        ("", text) => text.trim_end_matches('.').to_owned(),
        (word, text) => format!("{word}: {}", text.trim_end_matches('.')),
    }
}

fn leaving(case: &Case<'_>, pod: &Pod) -> Finding {
    let meta = &pod.facts.metadata;
    let until = meta.deletion_timestamp.as_deref().and_then(seconds);
    let late = until.is_some_and(|until| case.snapshot.now - until > 30);
    let held = &meta.finalizers;
    let message = if late && !held.is_empty() {
        format!(
            "its pod is being deleted, held by finalizers {}",
            held.join(", ")
        )
    } else if late && case.node().is_some_and(|n| n.unready().is_some()) {
        "its pod is being deleted, and the node is not ready to confirm that".to_owned()
    } else if late {
        "its pod is being deleted and should be gone by now: the node has not confirmed it"
            .to_owned()
    } else {
        "its pod is being deleted; the next one comes when it is gone".to_owned()
    };
    let finding = Finding::missing(Cause::Terminating, message).since(until);
    if late {
        let (namespace, name) = (&pod.view.namespace, &pod.view.name);
        return finding.remedy(format!("kubectl describe pod -n {namespace} {name}"));
    }
    finding
}

fn ended(pod: &Pod) -> Finding {
    let status = &pod.facts.status;
    if pod.view.phase == crate::daemonset::view::Phase::Succeeded {
        let message = "its pod ended by itself, with success: a daemon should not end. \
                       The controller replaces it";
        return Finding::missing(Cause::PodSucceeded, message);
    }
    let why = reason(&Condition {
        reason: status.reason.clone(),
        message: status.message.clone(),
        ..Condition::default()
    });
    let message = format!("its pod failed ({why}): the controller replaces it, later each time");
    let (namespace, name) = (&pod.view.namespace, &pod.view.name);
    Finding::missing(Cause::PodFailed, message)
        .remedy(format!("kubectl describe pod -n {namespace} {name}"))
}

/// All containers are ready, or nothing is known against them.
fn beyond(case: &Case<'_>, standing: &Standing<'_>, pod: &Pod) -> Finding {
    let set = &case.snapshot.daemon_set;
    if let Some(since) = standing.pod.ready_since {
        let message = format!(
            "it is ready and counts as available once it has been for minReadySeconds ({}s)",
            set.min_ready_seconds
        );
        return Finding::missing(Cause::MinReadySeconds, message).since(Some(since));
    }
    let status = &pod.facts.status;
    let gates = pod.facts.spec.readiness_gates.iter();
    let closed = gates.map(|gate| gate.condition_type.as_str()).find(|kind| {
        let open = status.condition(kind).is_some_and(|c| c.status == "True");
        !open
    });
    if let Some(gate) = closed {
        let message = format!("its readiness gate {gate} is not True: somebody else must set it");
        return Finding::missing(Cause::ReadinessGate, message);
    }
    let ready = status.condition("Ready");
    let why = ready.map_or_else(|| "no reason is given".to_owned(), reason);
    Finding::missing(Cause::NotReady, format!("its pod is not ready ({why})"))
        .since(ready.and_then(Condition::since))
}

/// A pod in a few words.
pub(super) fn describe(case: &Case<'_>, standing: &Standing<'_>) -> PodAnswer {
    let pod = case.pod(standing);
    let status = &pod.facts.status;
    let one = |init: bool| {
        move |s: &ContainerStatus| ContainerAnswer {
            name: s.name.clone(),
            init,
            state: state_text(&s.state, &s.last_state, case.snapshot.now),
            ready: s.ready,
            restarts: s.restart_count,
        }
    };
    let first = status.init_container_statuses.iter().map(one(true));
    let containers = first.chain(status.container_statuses.iter().map(one(false)));
    PodAnswer {
        name: pod.view.name.to_string(),
        phase: status.phase.clone(),
        ready: pod.view.ready_since.is_some(),
        available: standing.available,
        updated: standing.updated,
        terminating: standing.leaves(),
        created: Time(pod.view.created),
        containers: containers.collect(),
    }
}

fn state_text(state: &State, last: &State, now: i64) -> String {
    let text = if let Some(waiting) = &state.waiting {
        format!("waiting ({})", waiting.reason)
    } else if let Some(running) = &state.running {
        let since = running.started_at.as_deref().and_then(seconds);
        let since = since.map(|at| format!(" for {}", span(now - at)));
        format!("running{}", since.unwrap_or_default())
    } else if let Some(ended) = &state.terminated {
        container::exit_text(ended)
    } else {
        "not started".to_owned()
    };
    let Some(ended) = &last.terminated else {
        return text;
    };
    let at = ended.finished_at.as_deref().and_then(seconds);
    let ago = at.map(|at| format!(" {} ago", span(now - at)));
    let before = container::exit_text(ended);
    format!("{text}; before that {before}{}", ago.unwrap_or_default())
}

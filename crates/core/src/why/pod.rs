//! Why an existing pod is not available.
//!
//! Checks in this order: being deleted, finished, unscheduled, node not ready, containers ([`container`]),
//! `minReadySeconds`, readiness gates.

use kennel_types::pod::ContainerState;
use kennel_types::{Condition, ConditionType, ContainerStatus, Timestamp};

use super::answer::{Cause, ContainerAnswer, PodAnswer};
use super::duration::human_duration;
use super::finding::Finding;
use super::{Case, PodSnapshot, SurveyedPod, container, node_not_ready, since, unscheduled};
use crate::daemonset::view::Phase;

/// A deletion takes too long when the grace period ended this many milliseconds ago.
const OVERDUE_MILLIS: i64 = 30_000;

/// Restarts of a container that is not taken for a stable one if the last was recently.
const RESTARTS_MIN: u32 = 3;

pub(super) fn find(case: &Case<'_>, standing: &SurveyedPod<'_>) -> Finding {
    let pod = case.pod(standing);
    let mut finding = first_cause(case, standing, pod);
    finding.pod = Some(standing.pod.name.to_string());
    finding
}

fn first_cause(case: &Case<'_>, standing: &SurveyedPod<'_>, pod: &PodSnapshot) -> Finding {
    if standing.terminating() {
        return terminating(case, pod);
    }
    if pod.view.terminal() {
        return finished(pod);
    }
    if pod.view.bound_to.is_none() {
        return unscheduled::find(case, pod);
    }
    if case.node().is_some_and(|node| node.unready().is_some()) {
        return node_not_ready::find(case);
    }
    if let Some(finding) = container::find(case, pod) {
        return finding;
    }
    after_containers(case, standing, pod)
}

/// `Reason: message`, as far as the condition has them.
pub(super) fn reason(condition: &Condition) -> String {
    match (condition.reason.as_str(), condition.message.as_str()) {
        ("", "") => "no reason is given".to_owned(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.trim_end_matches('.').to_owned(),
        (reason, message) => format!("{reason}: {}", message.trim_end_matches('.')),
    }
}

fn terminating(case: &Case<'_>, pod: &PodSnapshot) -> Finding {
    let metadata = &pod.object.metadata;
    let deadline = metadata.deletion_timestamp.as_ref().map(Timestamp::from);
    let late =
        deadline.is_some_and(|deadline| case.snapshot.now.millis_since(deadline) > OVERDUE_MILLIS);
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let message = if late && !finalizers.is_empty() {
        format!(
            "its pod is being deleted, held by finalizers {}",
            finalizers.join(", ")
        )
    } else if late && case.node().is_some_and(|n| n.unready().is_some()) {
        "its pod is being deleted, and the node is not ready to confirm that".to_owned()
    } else if late {
        "its pod is being deleted and should be gone by now: the node has not confirmed it"
            .to_owned()
    } else {
        "its pod is being deleted; a new one is created when it is gone".to_owned()
    };
    let finding = Finding::missing(Cause::Terminating, message).since(since::deletion(pod));
    if late {
        return finding.remedy(pod.describe());
    }
    finding
}

pub(super) fn finished(pod: &PodSnapshot) -> Finding {
    let status = &pod.object.status;
    if pod.view.phase == Phase::Succeeded {
        let message = "its pod succeeded, but a daemon should not exit: the controller replaces it";
        return Finding::missing(Cause::PodSucceeded, message).since(since::end(pod));
    }
    let why = reason(&Condition {
        reason: status.reason.clone(),
        message: status.message.clone(),
        ..Condition::default()
    });
    let message =
        format!("its pod failed ({why}): the controller replaces it with increasing backoff");
    Finding::missing(Cause::PodFailed, message)
        .since(since::end(pod))
        .remedy(pod.describe())
}

/// The cause when no container explains it.
fn after_containers(case: &Case<'_>, standing: &SurveyedPod<'_>, pod: &PodSnapshot) -> Finding {
    let set = &case.snapshot.daemon_set;
    if let Some(since) = standing.pod.ready_since {
        let message = format!(
            "it is ready and becomes available after minReadySeconds ({}s)",
            set.min_ready_seconds
        );
        let since = Some(since).filter(|since| *since != Timestamp::MAX);
        return Finding::missing(Cause::MinReadySeconds, message).since(since);
    }
    let status = &pod.object.status;
    let mut gates = pod.object.spec.readiness_gates.iter();
    let closed = gates.find(|gate| {
        let condition = status.condition(&gate.condition_type);
        !condition.is_some_and(Condition::is_true)
    });
    if let Some(gate) = closed.map(|gate| &gate.condition_type) {
        let message =
            format!("its readiness gate {gate} is not True: another controller must set it");
        let since = since::gate(pod, status.condition(gate));
        return Finding::missing(Cause::ReadinessGate, message).since(since);
    }
    let ready = status.condition(&ConditionType::Ready);
    let why = ready.map_or_else(|| "no reason is given".to_owned(), reason);
    Finding::missing(Cause::NotReady, format!("its pod is not ready ({why})"))
        .since(ready.and_then(|ready| ready.last_transition_time))
}

/// A container of an available pod that keeps restarting, as of its last exit.
pub(super) fn restarts(case: &Case<'_>, standing: &SurveyedPod<'_>) -> Option<String> {
    let statuses = case.pod(standing).object.status.container_statuses.iter();
    let mut often = statuses.filter(|status| status.restart_count >= RESTARTS_MIN);
    often.find_map(|status| {
        let ended = status.last_state.terminated.as_ref()?;
        let ago = case.snapshot.now.saturating_since(ended.finished_at?);
        let exit = container::exit_text(ended);
        let remark = format!("container {} keeps restarting: it {exit}", status.name);
        (ago < since::BACKOFF_RESET).then_some(remark)
    })
}

pub(super) fn describe(case: &Case<'_>, standing: &SurveyedPod<'_>) -> PodAnswer {
    let pod = case.pod(standing);
    let status = &pod.object.status;
    let one = |init: bool| {
        move |s: &ContainerStatus| ContainerAnswer {
            name: s.name.clone(),
            init,
            state: state_text(&s.state, &s.last_state, case.snapshot.now),
            ready: s.ready,
            restarts: s.restart_count.into(),
        }
    };
    let first = status.init_container_statuses.iter().map(one(true));
    let containers = first.chain(status.container_statuses.iter().map(one(false)));
    PodAnswer {
        name: pod.view.name.to_string(),
        phase: status.phase.as_str(),
        ready: pod.view.ready_since.is_some(),
        available: standing.available,
        updated: standing.updated,
        terminating: standing.terminating(),
        created: pod.created(),
        containers: containers.collect(),
    }
}

fn state_text(state: &ContainerState, last: &ContainerState, now: Timestamp) -> String {
    let text = if let Some(waiting) = &state.waiting {
        format!("waiting ({})", waiting.reason)
    } else if let Some(running) = &state.running {
        let age = running.started_at.map(|at| now.saturating_since(at));
        let age = age.map(|age| format!(" for {}", human_duration(age)));
        format!("running{}", age.unwrap_or_default())
    } else if let Some(ended) = &state.terminated {
        container::exit_text(ended)
    } else {
        "not started".to_owned()
    };
    let Some(ended) = &last.terminated else {
        return text;
    };
    let ago = ended.finished_at.map(|at| now.saturating_since(at));
    let ago = ago.map(|ago| format!(" {} ago", human_duration(ago)));
    let before = container::exit_text(ended);
    format!("{text}; before that {before}{}", ago.unwrap_or_default())
}

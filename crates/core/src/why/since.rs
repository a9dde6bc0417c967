//! When the trouble with a pod began.
//!
//! What the API shows last is rarely that: a crash loop has a last exit, a last event and a last change of readiness
//! every few minutes. Times of events count only within the life of the pod, since event recorders carry the first time
//! of a repeated event along.

use std::time::Duration;

use kennel_types::event::{Event, EventReason};
use kennel_types::pod::ContainerStateTerminated;
use kennel_types::{Condition, ConditionType, ContainerStatus, Timestamp};

use super::container::ContainerCase;
use super::snapshot::PodSnapshot;

/// Uptime after which the kubelet's restart backoff resets: an exit after that begins another crash loop.
pub(super) const BACKOFF_RESET: Duration = Duration::from_mins(10);
/// The most that passes between an exit and the next start: the kubelet's longest backoff, and its time to notice.
const RESTART_MAX: Duration = Duration::from_secs(5 * 60 + 20);

/// The last change of a condition that has this status.
fn changed(pod: &PodSnapshot, r#type: &ConditionType, is_true: bool) -> Option<Timestamp> {
    let condition = pod.object.status.condition(r#type);
    let condition = condition.filter(|condition| condition.is_true() == is_true);
    condition.and_then(|condition| condition.last_transition_time)
}

/// When the pod was bound to its node.
pub(super) fn bound(pod: &PodSnapshot) -> Timestamp {
    changed(pod, &ConditionType::PodScheduled, true)
        .or(pod.object.status.start_time)
        .unwrap_or(pod.created())
}

/// When the pod's deletion was requested. The deletion timestamp is later, by the grace period.
pub(super) fn deletion(pod: &PodSnapshot) -> Option<Timestamp> {
    let metadata = &pod.object.metadata;
    let deadline = metadata.deletion_timestamp.as_ref().map(Timestamp::from)?;
    let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
    Some(deadline.saturating_add_millis(grace.saturating_mul(-1000)))
}

/// When a pod that has ended did so.
pub(super) fn end(pod: &PodSnapshot) -> Option<Timestamp> {
    let status = &pod.object.status;
    let ended = status.container_statuses.iter();
    let ended = ended.filter_map(|status| status.state.terminated.as_ref()?.finished_at);
    ended
        .max()
        .or_else(|| changed(pod, &ConditionType::Ready, false))
}

/// When the turn of a container came that has not been started yet: after the init containers before it.
pub(super) fn turn(pod: &PodSnapshot, container: &ContainerCase<'_>) -> Timestamp {
    let bound = bound(pod);
    if !container.init {
        return changed(pod, &ConditionType::Initialized, true).map_or(bound, |at| at.max(bound));
    }
    let statuses = pod.object.status.init_container_statuses.iter();
    let earlier = statuses.take_while(|status| status.name != container.spec.name);
    let ended = earlier.filter_map(|status| status.state.terminated.as_ref()?.finished_at);
    ended.fold(bound, Timestamp::max)
}

/// Since when a container waits, or exits again and again.
pub(super) fn container_failure(
    pod: &PodSnapshot,
    container: &ContainerCase<'_>,
    status: &ContainerStatus,
    events: &[&Event],
    now: Timestamp,
) -> Timestamp {
    let turn = turn(pod, container);
    let ended = status.state.terminated.as_ref();
    let Some(ended) = ended.or(status.last_state.terminated.as_ref()) else {
        return turn;
    };
    let Some(last_exit) = ended.finished_at else {
        return turn;
    };
    let uptime = uptime(ended, last_exit);
    if uptime >= BACKOFF_RESET || status.restart_count == 0 {
        return last_exit;
    }
    // A loop of so many restarts can last so long. What is older belongs to an earlier one.
    let restarts = status.restart_count.saturating_add(1);
    let loop_max = (uptime + RESTART_MAX).saturating_mul(restarts);
    let plausible = |at: &Timestamp| now.saturating_since(*at) <= loop_max;
    let not_ready = changed(pod, &ConditionType::ContainersReady, false);
    first_restart(container, events)
        .map(|at| at.max(turn))
        .filter(plausible)
        .or(Some(turn + uptime).filter(plausible))
        .unwrap_or_else(|| not_ready.map_or(last_exit, |at| at.min(last_exit).max(turn)))
}

fn uptime(ended: &ContainerStateTerminated, finished_at: Timestamp) -> Duration {
    let started_at = ended.started_at.unwrap_or(finished_at);
    finished_at.saturating_since(started_at)
}

/// The first event about a restart of the container.
fn first_restart(container: &ContainerCase<'_>, events: &[&Event]) -> Option<Timestamp> {
    let restarts = events.iter().filter(|event| {
        let is_restart = matches!(event.reason(), EventReason::BackOff | EventReason::Killing);
        is_restart && container.is_subject_of(event)
    });
    restarts.map(|event| event.first_seen()).min()
}

/// Since when a container that runs is not ready.
pub(super) fn unready(
    pod: &PodSnapshot,
    status: &ContainerStatus,
    started_at: Option<Timestamp>,
) -> Option<Timestamp> {
    let changed = changed(pod, &ConditionType::ContainersReady, false)
        .or_else(|| changed(pod, &ConditionType::Ready, false));
    if status.restart_count > 0 {
        return changed.or(started_at);
    }
    // The pod was not ready before its first start, either.
    started_at.max(changed)
}

/// Since when only a readiness gate keeps the pod from being ready.
pub(super) fn gate(pod: &PodSnapshot, gate: Option<&Condition>) -> Option<Timestamp> {
    let closed = gate.and_then(|gate| gate.last_transition_time);
    closed.max(changed(pod, &ConditionType::ContainersReady, true))
}

/// When the first of these events was seen, within the life of the pod.
pub(super) fn first_event<'a>(
    pod: &PodSnapshot,
    events: impl Iterator<Item = &'a Event>,
) -> Option<Timestamp> {
    let first = events.map(Event::first_seen).min();
    first.map(|at| at.max(bound(pod)))
}

//! Containers that are not ready, or were killed, because of a probe.

use kennel_types::ContainerStatus;
use kennel_types::event::{Event, EventReason};

use super::answer::Cause;
use super::container::{ContainerCase, line};
use super::finding::Finding;

pub(super) fn find(
    container: &ContainerCase<'_>,
    status: &ContainerStatus,
    events: &[&Event],
) -> Finding {
    let spec = container.spec;
    let starting = spec.startup_probe.is_some() && status.started != Some(true);
    let (probe, present) = if starting {
        ("startup", true)
    } else {
        ("readiness", spec.readiness_probe.is_some())
    };
    let title = container.title();
    if let Some(event) = unhealthy_event(container, events, probe) {
        let message = format!(
            "{title} runs and its {probe} probe fails: {}",
            outcome(event)
        );
        return Finding::missing(Cause::Probe, message);
    }
    let message = if present {
        format!("{title} runs and its {probe} probe has not succeeded yet")
    } else {
        format!("{title} runs and is not ready yet")
    };
    let cause = if present {
        Cause::Probe
    } else {
        Cause::NotReady
    };
    Finding::missing(cause, message)
}

/// A container that the kubelet killed because a probe failed, by its events.
pub(super) fn killed(container: &ContainerCase<'_>, events: &[&Event]) -> Option<Finding> {
    let spec = container.spec;
    let killing = |event: &&&Event| {
        let message = &event.message;
        container.is_subject_of(event)
            && event.reason() == EventReason::Killing
            && message.contains("failed")
            && message.contains("probe")
    };
    let killing = events.iter().find(killing)?;
    let probe = if killing.message.contains("startup") && spec.startup_probe.is_some() {
        "startup"
    } else if spec.liveness_probe.is_some() {
        "liveness"
    } else {
        return None;
    };
    let why =
        unhealthy_event(container, events, probe).map(|event| format!(": {}", outcome(event)));
    let title = container.title();
    let message = format!(
        "{title} is killed repeatedly because its {probe} probe fails{}",
        why.unwrap_or_default()
    );
    Some(Finding::missing(Cause::Probe, message))
}

/// The last event about a failure of this probe.
fn unhealthy_event<'a>(
    container: &ContainerCase<'_>,
    events: &[&'a Event],
    probe: &str,
) -> Option<&'a Event> {
    let of = |event: &&&Event| {
        let text = event.message.to_ascii_lowercase();
        let is_unhealthy = event.reason() == EventReason::Unhealthy;
        container.is_subject_of(event) && is_unhealthy && text.starts_with(probe)
    };
    events.iter().find(of).copied()
}

/// The message without the prefix that names the probe.
fn outcome(event: &Event) -> String {
    let text = event.message.as_str();
    line(text.split_once(": ").map_or(text, |(_, outcome)| outcome))
}

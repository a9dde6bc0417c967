//! Containers that run and are not ready, or were ended for it: which probe says so.

use super::answer::{Cause, Finding};
use super::container::{Vessel, line};
use super::seen::{ContainerStatus, Event};

/// A container that runs and is not ready.
pub(super) fn find(vessel: &Vessel<'_>, status: &ContainerStatus, events: &[&Event]) -> Finding {
    let asked = vessel.asked;
    let starting = asked.startup_probe.is_some() && status.started != Some(true);
    let (probe, present) = if starting {
        ("startup", true)
    } else {
        ("readiness", asked.readiness_probe.is_some())
    };
    let title = vessel.title();
    if let Some(event) = said(vessel, events, probe) {
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

/// A container that was ended because a probe failed, by what its node told.
pub(super) fn killed(vessel: &Vessel<'_>, events: &[&Event]) -> Option<Finding> {
    let asked = vessel.asked;
    let killing = |event: &&&Event| {
        let message = &event.message;
        about(vessel, event)
            && event.reason == "Killing"
            && message.contains("failed")
            && message.contains("probe")
    };
    let killing = events.iter().find(killing)?;
    let probe = if killing.message.contains("startup") && asked.startup_probe.is_some() {
        "startup"
    } else if asked.liveness_probe.is_some() {
        "liveness"
    } else {
        return None;
    };
    let why = said(vessel, events, probe).map(|event| format!(": {}", outcome(event)));
    let title = vessel.title();
    let message = format!(
        "{title} is ended again and again because its {probe} probe fails{}",
        why.unwrap_or_default()
    );
    Some(Finding::missing(Cause::Probe, message))
}

fn about(vessel: &Vessel<'_>, event: &Event) -> bool {
    let path = &event.involved_object.field_path;
    path.is_empty() || path.contains(&format!("{{{}}}", vessel.asked.name))
}

/// The last time that this probe was said to fail.
fn said<'a>(vessel: &Vessel<'_>, events: &[&'a Event], probe: &str) -> Option<&'a Event> {
    let of = |event: &&&Event| {
        let text = event.message.to_ascii_lowercase();
        about(vessel, event) && event.reason == "Unhealthy" && text.starts_with(probe)
    };
    events.iter().find(of).copied()
}

/// What came of it, without the words that say which probe it was.
fn outcome(event: &Event) -> String {
    let text = event.message.as_str();
    line(text.split_once(": ").map_or(text, |(_, outcome)| outcome))
}

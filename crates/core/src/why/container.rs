//! The containers of a pod: which of them holds it up, and by what.
//!
//! Init containers come first, in their order; then the others. The first that is not as it should be is
//! the cause.

use super::Case;
use super::answer::{Cause, Finding};
use super::probe;
use super::seen::{Container, ContainerStatus, Event, Pod, Terminated, Waiting};
use super::span::seconds;

/// A container as it is asked for and as it is.
pub(super) struct Vessel<'a> {
    pub(super) asked: &'a Container,
    pub(super) status: Option<&'a ContainerStatus>,
    pub(super) init: bool,
}

impl Vessel<'_> {
    /// How it is called in a sentence.
    pub(super) fn title(&self) -> String {
        let kind = if self.init {
            "init container"
        } else {
            "container"
        };
        format!("{kind} {}", self.asked.name)
    }

    fn sidecar(&self) -> bool {
        self.init && self.asked.restart_policy == "Always"
    }

    /// Does it hold nothing up?
    fn done(&self) -> bool {
        let Some(status) = self.status else {
            return false;
        };
        if self.init && !self.sidecar() {
            let ended = status.state.terminated.as_ref();
            return ended.is_some_and(|ended| ended.exit_code == 0);
        }
        status.ready
    }
}

/// Looks at what the node says about a bound pod. Nothing, if it says nothing bad.
pub(super) fn find(case: &Case<'_>, pod: &Pod) -> Option<Finding> {
    let status = &pod.facts.status;
    let events = case.snapshot.events_of(&pod.view.uid);
    if status.container_statuses.is_empty() && status.init_container_statuses.is_empty() {
        return Some(preparing(&events).unwrap_or_else(|| {
            Finding::missing(Cause::NotStarted, "the node has not begun with the pod yet")
                .since(Some(pod.view.created))
        }));
    }
    let vessel = vessels(pod).find(|vessel| !vessel.done())?;
    let finding = match vessel.status {
        None => None,
        Some(status) => judge(pod, &vessel, status, &events),
    };
    finding.or_else(|| preparing(&events)).or_else(|| {
        let message = format!("{} has not been started yet", vessel.title());
        Some(Finding::missing(Cause::Starting, message))
    })
}

fn vessels(pod: &Pod) -> impl Iterator<Item = Vessel<'_>> {
    let (spec, status) = (&pod.facts.spec, &pod.facts.status);
    let init = spec.init_containers.iter().map(move |asked| Vessel {
        asked,
        status: named(&status.init_container_statuses, &asked.name),
        init: true,
    });
    let main = spec.containers.iter().map(move |asked| Vessel {
        asked,
        status: named(&status.container_statuses, &asked.name),
        init: false,
    });
    init.chain(main)
}

fn named<'a>(statuses: &'a [ContainerStatus], name: &str) -> Option<&'a ContainerStatus> {
    statuses.iter().find(|status| status.name == name)
}

fn judge(
    pod: &Pod,
    vessel: &Vessel<'_>,
    status: &ContainerStatus,
    events: &[&Event],
) -> Option<Finding> {
    if let Some(waiting) = &status.state.waiting {
        return waits(pod, vessel, status, waiting, events);
    }
    if let Some(ended) = &status.state.terminated {
        return Some(crashed(pod, vessel, ended, events));
    }
    let running = status.state.running.as_ref()?;
    let since = running.started_at.as_deref().and_then(seconds);
    if vessel.init && !vessel.sidecar() {
        let message = format!(
            "{} still runs, and the others wait for its end",
            vessel.title()
        );
        let finding = Finding::missing(Cause::InitContainer, message).since(since);
        return Some(finding.remedy(logs(pod, vessel, false)));
    }
    Some(probe::find(vessel, status, events).since(since))
}

fn waits(
    pod: &Pod,
    vessel: &Vessel<'_>,
    status: &ContainerStatus,
    waiting: &Waiting,
    events: &[&Event],
) -> Option<Finding> {
    let title = vessel.title();
    let text = |what: &str| match waiting.message.as_str() {
        "" => format!("{title} {what}: {}", waiting.reason),
        message => format!("{title} {what}: {}: {}", waiting.reason, line(message)),
    };
    let describe = || {
        let (namespace, name) = (&pod.view.namespace, &pod.view.name);
        format!("kubectl describe pod -n {namespace} {name}")
    };
    let finding = match waiting.reason.as_str() {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "RegistryUnavailable"
        | "ImageInspectError"
        | "SignatureValidationFailed" => {
            let what = format!("does not get its image {}", vessel.asked.image);
            Finding::missing(Cause::Image, text(&what)).remedy(describe())
        }
        "CreateContainerConfigError" => {
            Finding::missing(Cause::ContainerConfig, text("cannot be set up")).remedy(describe())
        }
        "CreateContainerError"
        | "RunContainerError"
        | "PreStartHookError"
        | "PostStartHookError"
        | "PreCreateHookError" => {
            Finding::missing(Cause::ContainerStart, text("cannot be started")).remedy(describe())
        }
        "CrashLoopBackOff" => {
            let ended = status.last_state.terminated.clone().unwrap_or_default();
            crashed(pod, vessel, &ended, events)
        }
        "ContainerCreating" | "PodInitializing" | "" => return None,
        _ => Finding::missing(Cause::Starting, text("waits")).remedy(describe()),
    };
    Some(finding)
}

/// It ended, and is or will be started again.
fn crashed(pod: &Pod, vessel: &Vessel<'_>, ended: &Terminated, events: &[&Event]) -> Finding {
    if let Some(finding) = probe::killed(vessel, events) {
        return finding.remedy(logs(pod, vessel, true));
    }
    let mut message = format!("{} does not stay up: {}", vessel.title(), exit_text(ended));
    if !ended.message.is_empty() {
        message.push_str(": ");
        message.push_str(&line(&ended.message));
    }
    Finding::missing(Cause::CrashLoop, message).remedy(logs(pod, vessel, true))
}

/// `exited with code 137 (OOMKilled)`.
pub(super) fn exit_text(ended: &Terminated) -> String {
    let text = match (ended.exit_code, ended.signal) {
        (0, 0) => "ended with success".to_owned(),
        (code, 0) => format!("exited with code {code}"),
        (_, signal) => format!("was ended by signal {signal}"),
    };
    match ended.reason.as_str() {
        "" | "Error" | "Completed" => text,
        reason => format!("{text} ({reason})"),
    }
}

fn logs(pod: &Pod, vessel: &Vessel<'_>, previous: bool) -> String {
    let (namespace, name, container) = (&pod.view.namespace, &pod.view.name, &vessel.asked.name);
    let previous = if previous { " --previous" } else { "" };
    format!("kubectl logs -n {namespace} {name} -c {container}{previous}")
}

/// What keeps a node from starting any container: volumes, or the network.
fn preparing(events: &[&Event]) -> Option<Finding> {
    let (cause, title, event) = events.iter().find_map(|event| {
        let (cause, title) = match event.reason.as_str() {
            "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => {
                (Cause::Volume, "a volume cannot be mounted")
            }
            "FailedCreatePodSandBox" | "NetworkNotReady" | "FailedPodSandBoxStatus" => {
                (Cause::Sandbox, "the node cannot set the pod up")
            }
            _ => return None,
        };
        Some((cause, title, event))
    })?;
    let message = format!("{title}: {}", line(&event.message));
    Some(Finding::missing(cause, message).since(Some(event.last())))
}

/// A text in one line that is not too long.
pub(super) fn line(text: &str) -> String {
    const LONGEST: usize = 300;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

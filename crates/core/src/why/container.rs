//! The first container that keeps a pod from being ready, and why. Init containers come first, in their order.

use kennel_types::event::{Event, EventReason};
use kennel_types::pod::{ContainerStateTerminated, ContainerStateWaiting, WaitingReason};
use kennel_types::{Container, ContainerStatus};

use super::Case;
use super::answer::Cause;
use super::finding::Finding;
use super::log::LogSource;
use super::snapshot::PodSnapshot;
use super::{probe, since};
use crate::daemonset::view::Phase;

/// A container's spec and status.
pub(super) struct ContainerCase<'a> {
    pub(super) spec: &'a Container,
    pub(super) status: Option<&'a ContainerStatus>,
    pub(super) init: bool,
}

impl ContainerCase<'_> {
    pub(super) fn title(&self) -> String {
        let kind = if self.init {
            "init container"
        } else {
            "container"
        };
        format!("{kind} {}", self.spec.name)
    }

    fn is_sidecar(&self) -> bool {
        self.init && self.spec.is_sidecar()
    }

    /// Whether an event about its pod is about this container, or does not say.
    pub(super) fn is_subject_of(&self, event: &Event) -> bool {
        let path = &event.involved_object.field_path;
        path.is_empty() || path.contains(&format!("{{{}}}", self.spec.name))
    }

    /// Whether it is ready, or has succeeded if it is an init container.
    fn is_done(&self) -> bool {
        let Some(status) = self.status else {
            return false;
        };
        if self.init && !self.is_sidecar() {
            let ended = status.state.terminated.as_ref();
            return ended.is_some_and(|ended| ended.exit_code == 0);
        }
        status.ready
    }
}

/// The cause that a bound pod's container statuses and events show, if any.
pub(super) fn find(case: &Case<'_>, pod: &PodSnapshot) -> Option<Finding> {
    let status = &pod.object.status;
    let events = case.snapshot.events_of(&pod.view.uid);
    if status.container_statuses.is_empty() && status.init_container_statuses.is_empty() {
        return Some(preparation_failure(pod, &events).unwrap_or_else(|| {
            Finding::missing(Cause::NotStarted, "the kubelet has not started the pod yet")
                .since(Some(since::bound(pod)))
        }));
    }
    let container = container_cases(pod).find(|container| !container.is_done())?;
    let finding = match container.status {
        None => None,
        Some(status) => unready_cause(case, pod, &container, status, &events),
    };
    finding
        .or_else(|| preparation_failure(pod, &events))
        .or_else(|| {
            let message = format!("{} has not been started yet", container.title());
            let since = since::turn(pod, &container);
            Some(Finding::missing(Cause::Starting, message).since(Some(since)))
        })
}

/// Why a pod failed, from its status alone: for callers that keep the status of a pod that is deleted by now.
pub fn shown_failure(pod: &PodSnapshot) -> Option<String> {
    let of_container = container_cases(pod).find_map(|container| {
        let (state, last) = (&container.status?.state, &container.status?.last_state);
        let failed = |ended: &&ContainerStateTerminated| ended.exit_code != 0 || !container.init;
        if let Some(waiting) = &state.waiting
            && let Some(finding) = waiting_cause(pod, &container, container.status?, waiting, &[])
        {
            return Some(finding);
        }
        let ended = state.terminated.as_ref().filter(failed);
        let ended = ended.or_else(|| last.terminated.as_ref().filter(failed))?;
        Some(crashed(pod, &container, ended, false, &[]))
    });
    let finished = || (pod.view.phase == Phase::Failed).then(|| super::pod::finished(pod));
    of_container
        .or_else(finished)
        .map(|finding| finding.message)
}

fn container_cases(pod: &PodSnapshot) -> impl Iterator<Item = ContainerCase<'_>> {
    let (pod_spec, status) = (&pod.object.spec, &pod.object.status);
    let init = pod_spec
        .init_containers
        .iter()
        .map(move |spec| ContainerCase {
            spec,
            status: status_of(&status.init_container_statuses, &spec.name),
            init: true,
        });
    let main = pod_spec.containers.iter().map(move |spec| ContainerCase {
        spec,
        status: status_of(&status.container_statuses, &spec.name),
        init: false,
    });
    init.chain(main)
}

fn status_of<'a>(statuses: &'a [ContainerStatus], name: &str) -> Option<&'a ContainerStatus> {
    statuses.iter().find(|status| status.name == name)
}

fn unready_cause(
    case: &Case<'_>,
    pod: &PodSnapshot,
    container: &ContainerCase<'_>,
    status: &ContainerStatus,
    events: &[&Event],
) -> Option<Finding> {
    let failing_since = since::container_failure(pod, container, status, events, case.snapshot.now);
    if let Some(waiting) = &status.state.waiting {
        let finding = waiting_cause(pod, container, status, waiting, events)?;
        return Some(finding.since(Some(failing_since)));
    }
    if let Some(ended) = &status.state.terminated {
        let finding = crashed(pod, container, ended, false, events);
        return Some(finding.since(Some(failing_since)));
    }
    let running = status.state.running.as_ref()?;
    let started_at = running.started_at;
    if container.init && !container.is_sidecar() {
        let since = if status.restart_count > 0 {
            Some(failing_since)
        } else {
            started_at
        };
        let message = format!(
            "{} is still running, and the other containers wait for it",
            container.title()
        );
        let finding = Finding::missing(Cause::InitContainer, message).since(since);
        return Some(finding.remedy(logs(pod, container, false)));
    }
    let since = since::unready(pod, status, started_at);
    Some(probe::find(container, status, events).since(since))
}

fn waiting_cause(
    pod: &PodSnapshot,
    container: &ContainerCase<'_>,
    status: &ContainerStatus,
    waiting: &ContainerStateWaiting,
    events: &[&Event],
) -> Option<Finding> {
    let title = container.title();
    let text = |what: &str| match waiting.message.as_str() {
        "" => format!("{title} {what}: {}", waiting.reason),
        message => format!("{title} {what}: {}: {}", waiting.reason, line(message)),
    };
    let finding = match waiting.reason() {
        WaitingReason::ErrImagePull
        | WaitingReason::ImagePullBackOff
        | WaitingReason::InvalidImageName
        | WaitingReason::ErrImageNeverPull
        | WaitingReason::RegistryUnavailable
        | WaitingReason::ImageInspectError
        | WaitingReason::SignatureValidationFailed => {
            let what = format!("cannot pull its image {}", container.spec.image);
            Finding::missing(Cause::Image, text(&what)).remedy(pod.describe())
        }
        WaitingReason::CreateContainerConfigError => {
            Finding::missing(Cause::ContainerConfig, text("cannot be configured"))
                .remedy(pod.describe())
        }
        WaitingReason::CreateContainerError
        | WaitingReason::RunContainerError
        | WaitingReason::PreStartHookError
        | WaitingReason::PostStartHookError
        | WaitingReason::PreCreateHookError => {
            Finding::missing(Cause::ContainerStart, text("cannot be started"))
                .remedy(pod.describe())
        }
        WaitingReason::CrashLoopBackOff => {
            let ended = status.last_state.terminated.clone().unwrap_or_default();
            crashed(pod, container, &ended, true, events)
        }
        WaitingReason::ContainerCreating
        | WaitingReason::PodInitializing
        | WaitingReason::Other("") => return None,
        WaitingReason::Other(_) => {
            Finding::missing(Cause::Starting, text("waits")).remedy(pod.describe())
        }
    };
    Some(finding)
}

/// The container exited and is restarted. `previous`: the kubelet counts the run that ended as the previous one.
fn crashed(
    pod: &PodSnapshot,
    container: &ContainerCase<'_>,
    ended: &ContainerStateTerminated,
    previous: bool,
    events: &[&Event],
) -> Finding {
    let log = LogSource {
        pod: pod.view.name.to_string(),
        container: container.spec.name.clone(),
        previous,
    };
    let remedy = logs(pod, container, previous);
    if let Some(finding) = probe::killed(container, events) {
        return finding.remedy(remedy).log(log);
    }
    let mut message = format!(
        "{} does not stay up: {}",
        container.title(),
        exit_text(ended)
    );
    if !ended.message.is_empty() {
        message.push_str(": ");
        message.push_str(&line(&ended.message));
    }
    Finding::missing(Cause::CrashLoop, message)
        .remedy(remedy)
        .log(log)
}

/// `exited with code 137 (OOMKilled)`.
pub(super) fn exit_text(ended: &ContainerStateTerminated) -> String {
    let text = match (ended.exit_code, ended.signal) {
        (0, 0) => "exited with code 0".to_owned(),
        (code, 0) => format!("exited with code {code}"),
        (_, signal) => format!("was killed by signal {signal}"),
    };
    match ended.reason.as_str() {
        "" | "Error" | "Completed" => text,
        reason => format!("{text} ({reason})"),
    }
}

fn logs(pod: &PodSnapshot, container: &ContainerCase<'_>, previous: bool) -> String {
    let (namespace, name, container) = (&pod.view.namespace, &pod.view.name, &container.spec.name);
    let previous = if previous { " --previous" } else { "" };
    format!("kubectl logs -n {namespace} {name} -c {container}{previous}")
}

/// An event about volumes or the sandbox, without which no container starts.
fn preparation_failure(pod: &PodSnapshot, events: &[&Event]) -> Option<Finding> {
    let (cause, event) = events
        .iter()
        .find_map(|event| Some((preparation(event)?, event)))?;
    let title = match cause {
        Cause::Volume => "a volume cannot be mounted",
        _ => "the node cannot create the pod sandbox",
    };
    let message = format!("{title}: {}", line(&event.message));
    let same = events.iter().copied();
    let same = same.filter(|event| preparation(event) == Some(cause));
    Some(Finding::missing(cause, message).since(since::first_event(pod, same)))
}

/// The cause that an event about the preparation of a pod shows.
fn preparation(event: &Event) -> Option<Cause> {
    match event.reason() {
        EventReason::FailedMount
        | EventReason::FailedAttachVolume
        | EventReason::FailedMapVolume => Some(Cause::Volume),
        EventReason::FailedCreatePodSandBox
        | EventReason::NetworkNotReady
        | EventReason::FailedPodSandBoxStatus => Some(Cause::Sandbox),
        _ => None,
    }
}

/// Joins lines and truncates.
pub(super) fn line(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

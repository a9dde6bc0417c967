//! The state of a simulated pod, and how it is read from the API.
//!
//! What the node knows (`stage`, `restarts`) and what the API has (`api_status`) are kept apart: where they differ,
//! the node has something to write. [`pod_status`](crate::pod_status) computes that patch.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_client::feed::Identity;
use kennel_types::pod::ContainerState;
use kennel_types::{
    Condition, ConditionType, Container, ContainerStatus, Pod, PodPhase, PodSpec, RestartPolicy,
    Timestamp,
};

use crate::scenario::AppliedRule;
use crate::stages::Stage;

/// The prefix of container ids.
const ID_SCHEME: &str = "simulated://";

/// The conditions that nodes write, in the order of [`StatusSummary::conditions`].
pub(super) const CONDITIONS: [ConditionType; 4] = [
    ConditionType::PodReadyToStartContainers,
    ConditionType::Initialized,
    ConditionType::ContainersReady,
    ConditionType::Ready,
];

#[derive(Debug)]
pub(super) struct SimulatedPod {
    pub(super) id: Identity,
    /// Index of its node in the fleet.
    pub(super) node: usize,
    pub(super) template: Arc<PodTemplate>,
    pub(super) rule: AppliedRule,
    /// Counts the pods of its owner on this node.
    pub(super) ordinal: u32,
    pub(super) generation: i64,
    pub(super) address: Option<Ipv4Addr>,
    /// All readiness gates are `True`.
    pub(super) gates_open: bool,
    pub(super) stage: Stage,
    pub(super) restarts: u32,
    /// When its containers last started.
    pub(super) started_at: Option<Timestamp>,
    pub(super) last_termination: Option<Termination>,
    /// Grows with each stage, so that timers of earlier stages are recognised as stale.
    pub(super) stage_epoch: u32,
    pub(super) api_status: StatusSummary,
    /// The resource version of our last write: older events are ignored.
    pub(super) written_version: u64,
    pub(super) write_in_flight: bool,
    /// Resource version and status of the newest event that arrived during the write in flight.
    pub(super) deferred: Option<(u64, StatusSummary)>,
    /// Its token is not there yet.
    pub(super) needs_token: bool,
}

impl SimulatedPod {
    /// Takes over what an event shows, except for the containers, of which the node knows more than the API.
    pub(super) fn set_api_status(&mut self, status: StatusSummary) {
        let containers = self.api_status.containers;
        self.api_status = StatusSummary {
            containers,
            ..status
        };
    }

    /// Whether a deletion or a terminal phase that was set through the API changes the stage. A second deletion
    /// does if its grace period is shorter.
    pub(super) fn accepts(&self, imposed: Stage) -> bool {
        match (self.stage, imposed) {
            (Stage::Stopped, _) => false,
            (Stage::Stopping(before), Stage::Stopping(now)) => now < before,
            (_, Stage::Stopping(_)) => true,
            (Stage::Finished(_) | Stage::Stopping(_), _) => false,
            _ => true,
        }
    }

    pub(super) fn terminate_containers(&mut self, exit_code: i32) {
        self.last_termination = Some(Termination {
            exit_code,
            started_at: self.started_at.take(),
            finished_at: Some(clock::now()),
        });
    }

    /// The containers terminated because the node went down, and will be restarted.
    pub(super) fn lose_containers(&mut self) {
        const EXIT_CODE_UNKNOWN: i32 = 255;
        self.terminate_containers(EXIT_CODE_UNKNOWN);
        self.restarts += 1;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Termination {
    pub(super) exit_code: i32,
    /// Unknown to a node that was not running when the containers started.
    pub(super) started_at: Option<Timestamp>,
    pub(super) finished_at: Option<Timestamp>,
}

/// What pods of the same template have in common; shared between them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PodTemplate {
    pub(super) containers: Vec<ContainerTemplate>,
    pub(super) init_containers: Vec<ContainerTemplate>,
    pub(super) host_network: bool,
    pub(super) restart_policy: RestartPolicy,
    /// The service account whose token it mounts.
    pub(super) token_account: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ContainerTemplate {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) is_sidecar: bool,
}

impl From<Container> for ContainerTemplate {
    fn from(container: Container) -> Self {
        Self {
            is_sidecar: container.is_sidecar(),
            name: container.name,
            image: container.image,
        }
    }
}

impl From<PodSpec> for PodTemplate {
    fn from(spec: PodSpec) -> Self {
        let templates = |containers: Vec<Container>| {
            let containers = containers.into_iter();
            containers.map(ContainerTemplate::from).collect()
        };
        Self {
            containers: templates(spec.containers),
            init_containers: templates(spec.init_containers),
            host_network: spec.host_network,
            restart_policy: spec.restart_policy,
            token_account: spec
                .service_account_name
                .filter(|_| spec.automount_service_account_token != Some(false)),
        }
    }
}

impl PodTemplate {
    pub(super) fn images(&self) -> Vec<&str> {
        let all = self.containers.iter().chain(&self.init_containers);
        all.map(|container| container.image.as_str()).collect()
    }
}

/// The part of a pod's status that the node writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusSummary {
    pub(super) phase: PodPhase,
    pub(super) conditions: [Option<bool>; 4],
    /// The stage and restarts that the container statuses show.
    pub(super) containers: Option<(Stage, u32)>,
    pub(super) has_address: bool,
    pub(super) has_start_time: bool,
}

impl From<&Pod> for StatusSummary {
    fn from(pod: &Pod) -> Self {
        let status = &pod.status;
        Self {
            phase: status.phase,
            conditions: CONDITIONS.map(|r#type| status.condition(&r#type).map(Condition::is_true)),
            containers: containers_stage(&status.container_statuses),
            has_address: status.pod_ip.as_deref().is_some_and(|ip| !ip.is_empty()),
            has_start_time: status.start_time.is_some(),
        }
    }
}

/// The stage that container statuses show, and the number of restarts.
fn containers_stage(containers: &[ContainerStatus]) -> Option<(Stage, u32)> {
    let restarts = containers.iter().map(|c| c.restart_count).max()?;
    let waiting = |reason: &str| {
        let mut states = containers.iter().filter_map(|c| c.state.waiting.as_ref());
        states.any(|waiting| waiting.reason == reason)
    };
    let exit_code = |state: &ContainerState| state.terminated.as_ref().map(|end| end.exit_code);
    let stage = if waiting("CrashLoopBackOff") {
        let code = containers.iter().find_map(|c| exit_code(&c.last_state));
        Stage::CrashLoop(code.unwrap_or(1))
    } else if waiting("ErrImagePull") {
        Stage::PullFailed(1)
    } else if waiting("ImagePullBackOff") {
        Stage::PullBackOff(1)
    } else if containers.iter().all(|c| c.state.running.is_some()) {
        if containers.iter().all(|c| c.ready) {
            Stage::Ready
        } else {
            Stage::Started
        }
    } else if let Some(code) = containers.iter().find_map(|c| exit_code(&c.state)) {
        Stage::CrashLoop(code)
    } else {
        Stage::Creating
    };
    Some((stage, restarts))
}

/// What the container statuses of a pod record about its past, for a simulation that takes it over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RecordedHistory {
    pub(super) ordinal: Option<u32>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) last_termination: Option<Termination>,
}

impl From<&Pod> for RecordedHistory {
    fn from(pod: &Pod) -> Self {
        let Some(container) = pod.status.container_statuses.first() else {
            return Self::default();
        };
        let running = container.state.running.as_ref();
        let terminated = container.last_state.terminated.as_ref();
        Self {
            ordinal: ordinal(&container.container_id),
            started_at: running.and_then(|running| running.started_at),
            last_termination: terminated.map(|terminated| Termination {
                exit_code: terminated.exit_code,
                started_at: terminated.started_at,
                finished_at: terminated.finished_at,
            }),
        }
    }
}

/// The id of a container. It carries the pod's ordinal to a later simulation.
pub(super) fn container_id(pod: &SimulatedPod, container: &str, restarts: u32) -> String {
    let (uid, ordinal) = (&pod.id.uid, pod.ordinal);
    format!("{ID_SCHEME}{uid}/{container}/{ordinal}/{restarts}")
}

fn ordinal(container_id: &str) -> Option<u32> {
    let mut parts = container_id.strip_prefix(ID_SCHEME)?.rsplit('/');
    parts.nth(1)?.parse().ok()
}

/// The stage of a pod as the API shows it. A deletion or a terminal phase takes precedence over the containers.
pub(super) fn stage(pod: &Pod, status: &StatusSummary) -> Stage {
    if let Some(imposed) = imposed_stage(pod, status) {
        return imposed;
    }
    status.containers.map_or(Stage::Bound, |(stage, _)| stage)
}

/// The stage that others have set through the API, by a deletion or a terminal phase.
pub(super) fn imposed_stage(pod: &Pod, status: &StatusSummary) -> Option<Stage> {
    if pod.metadata.deletion_timestamp.is_some() {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let grace = Duration::from_secs(grace.try_into().unwrap_or(0));
        return Some(Stage::Stopping(grace));
    }
    match status.phase {
        PodPhase::Failed => Some(Stage::Finished(1)),
        PodPhase::Succeeded => Some(Stage::Finished(0)),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => None,
    }
}

/// Whether the conditions of all readiness gates are `True`.
pub(super) fn gates_open(pod: &Pod) -> bool {
    let mut gates = pod.spec.readiness_gates.iter();
    gates.all(|gate| {
        let condition = pod.status.condition(&gate.condition_type);
        condition.is_some_and(Condition::is_true)
    })
}

#[cfg(test)]
mod tests;

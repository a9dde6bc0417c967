//! Pods.
//!
//! [`Pod`] is generic over what is decoded of a container's status: controllers use [`ContainerHealth`], and readers of none
//! of it [`serde::de::IgnoredAny`], so that the pod events of a rollout allocate little for it.

pub mod references;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::condition::{self, Condition, ConditionType};
use crate::meta::null_as_default;
use crate::text_enum::text_enum;
use crate::time::Timestamp;

pub use waiting::WaitingReason;

/// On the pod of the API that mirrors a static pod; its value is a hash of the static pod.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "C: Default + Deserialize<'de>"))]
pub struct Pod<C = ContainerStatus> {
    #[serde(deserialize_with = "crate::meta::metadata")]
    pub metadata: ObjectMeta,
    pub spec: PodSpec,
    pub status: PodStatus<C>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node it is bound to.
    pub node_name: Option<String>,
    pub scheduler_name: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub scheduling_gates: Vec<SchedulingGate>,
    pub node_selector: Value,
    pub affinity: Value,
    pub tolerations: Value,
    #[serde(deserialize_with = "null_as_default")]
    pub host_network: bool,
    pub service_account_name: Option<String>,
    /// Absent: as the service account says.
    pub automount_service_account_token: Option<bool>,
    pub hostname: Option<String>,
    /// The headless Service that gives the pod its DNS name.
    pub subdomain: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub ephemeral_containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub readiness_gates: Vec<ReadinessGate>,
    #[serde(deserialize_with = "null_as_default")]
    pub restart_policy: RestartPolicy,
    /// Quantities by resource name, unparsed.
    #[serde(deserialize_with = "null_as_default")]
    pub overhead: BTreeMap<String, Value>,
    /// Requests of the pod as a whole.
    #[serde(deserialize_with = "null_as_default")]
    pub resources: ResourceRequirements,
    #[serde(deserialize_with = "null_as_default")]
    pub priority: i32,
    /// `Never`, or `PreemptLowerPriority` when absent.
    pub preemption_policy: Option<String>,
    /// [`PodSpec::termination_grace_period`] has the default.
    pub termination_grace_period_seconds: Option<u64>,
    pub active_deadline_seconds: Option<u64>,
    /// The operating system that the pod is written for.
    pub os: Option<PodOs>,
}

impl PodSpec {
    pub fn termination_grace_period(&self) -> Duration {
        Duration::from_secs(self.termination_grace_period_seconds.unwrap_or(30))
    }

    /// A container, init container or ephemeral container by name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        let all = self.init_containers.iter().chain(&self.containers);
        let mut all = all.chain(&self.ephemeral_containers);
        all.find(|container| container.name == name)
    }
}

/// What tells how healthy a container is, without allocating.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerHealth {
    #[serde(deserialize_with = "null_as_default")]
    pub restart_count: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub state: ContainerHealthState,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerHealthState {
    #[serde(deserialize_with = "null_as_default")]
    pub waiting: ContainerHealthWaiting,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerHealthWaiting {
    #[serde(deserialize_with = "null_as_default")]
    pub reason: Waiting,
}

/// Why a container waits, as far as waiting does not heal it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiting {
    /// It does not wait, or for another reason.
    #[default]
    No,
    InvalidImageName,
    CreateContainerConfigError,
    CreateContainerError,
    RunContainerError,
    /// `ErrImagePull` or `ImagePullBackOff`.
    ImagePull,
}

impl From<&str> for Waiting {
    fn from(reason: &str) -> Self {
        match WaitingReason::from(reason) {
            WaitingReason::InvalidImageName => Self::InvalidImageName,
            WaitingReason::CreateContainerConfigError => Self::CreateContainerConfigError,
            WaitingReason::CreateContainerError => Self::CreateContainerError,
            WaitingReason::RunContainerError => Self::RunContainerError,
            WaitingReason::ErrImagePull | WaitingReason::ImagePullBackOff => Self::ImagePull,
            _ => Self::No,
        }
    }
}

crate::meta::deserialize_from_str!(Waiting);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodOs {
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReadinessGate {
    pub condition_type: ConditionType,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// Quantities by resource name, unparsed.
    #[serde(deserialize_with = "null_as_default")]
    pub requests: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub image: String,
    /// Of init containers: `Always` makes a sidecar.
    pub restart_policy: Option<RestartPolicy>,
    #[serde(deserialize_with = "null_as_default")]
    pub resources: ResourceRequirements,
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<ContainerPort>,
    #[serde(deserialize_with = "null_as_default")]
    pub lifecycle: Lifecycle,
    /// Boxed, since most containers have no probes.
    pub startup_probe: Option<Box<Probe>>,
    pub liveness_probe: Option<Box<Probe>>,
    pub readiness_probe: Option<Box<Probe>>,
}

impl Container {
    /// Of init containers: starts before the main containers and keeps running.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }

    pub fn probe(&self, kind: ProbeKind) -> Option<&Probe> {
        let probe = match kind {
            ProbeKind::Startup => &self.startup_probe,
            ProbeKind::Liveness => &self.liveness_probe,
            ProbeKind::Readiness => &self.readiness_probe,
        };
        probe.as_deref()
    }

    /// The number of a port that a probe or hook gives by number or by name.
    pub fn resolve_port(&self, port: &Value) -> Option<u16> {
        match port {
            Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
            Value::String(name) => {
                let mut ports = self.ports.iter();
                let named = ports.find(|port| port.name.as_ref() == Some(name));
                named
                    .map(|port| port.container_port)
                    .or_else(|| name.parse().ok())
            }
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Lifecycle {
    pub post_start: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    pub name: Option<String>,
    pub container_port: u16,
    /// `TCP` when absent.
    pub protocol: Option<String>,
    /// 0 for none.
    pub host_port: u16,
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

/// A probe. Exactly one of its four actions is set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Probe {
    pub exec: Option<Value>,
    pub http_get: Option<Value>,
    pub tcp_socket: Option<Value>,
    pub grpc: Option<Value>,
    pub initial_delay_seconds: u64,
    pub period_seconds: u64,
    pub timeout_seconds: u64,
    pub success_threshold: u32,
    pub failure_threshold: u32,
    /// Replaces the pod's grace period when the container is killed for failing this probe.
    pub termination_grace_period_seconds: Option<u64>,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            exec: None,
            http_get: None,
            tcp_socket: None,
            grpc: None,
            initial_delay_seconds: 0,
            period_seconds: 10,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 3,
            termination_grace_period_seconds: None,
        }
    }
}

impl Probe {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.max(1))
    }

    pub fn period(&self) -> Duration {
        Duration::from_secs(self.period_seconds.max(1))
    }

    pub fn initial_delay(&self) -> Duration {
        Duration::from_secs(self.initial_delay_seconds)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum RestartPolicy {
    /// The empty string is the absent field of Go clients.
    #[serde(alias = "")]
    #[default]
    Always,
    OnFailure,
    Never,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(
    default,
    rename_all = "camelCase",
    bound(deserialize = "C: Default + Deserialize<'de>")
)]
pub struct PodStatus<C = ContainerStatus> {
    pub phase: PodPhase,
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<Condition>,
    /// The node where lower-priority pods were preempted for this one.
    pub nominated_node_name: Option<String>,
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// One per address family.
    #[serde(rename = "podIPs", deserialize_with = "null_as_default")]
    pub pod_ips: Vec<PodIp>,
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    pub start_time: Option<Timestamp>,
    #[serde(deserialize_with = "null_as_default")]
    pub container_statuses: Vec<C>,
    #[serde(deserialize_with = "null_as_default")]
    pub init_container_statuses: Vec<C>,
}

impl<C> PodStatus<C> {
    pub fn condition(&self, r#type: &ConditionType) -> Option<&Condition> {
        condition::find(&self.conditions, r#type)
    }

    /// Whether the condition `Ready` is `True`.
    pub fn is_ready(&self) -> bool {
        self.condition(&ConditionType::Ready)
            .is_some_and(Condition::is_true)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodIp {
    pub ip: String,
}

text_enum! {
    pub enum PodPhase, else Unknown {
        /// Also when the status has no phase yet.
        #[default]
        Pending = "Pending",
        Running = "Running",
        Succeeded = "Succeeded",
        Failed = "Failed",
        /// Also for phases that Kubernetes does not define.
        Unknown = "Unknown",
    }
}

impl PodPhase {
    /// Whether all containers have terminated and none will restart.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

crate::meta::deserialize_from_str!(PodPhase);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    pub name: String,
    pub ready: bool,
    pub started: Option<bool>,
    pub restart_count: u32,
    #[serde(rename = "containerID", deserialize_with = "null_as_default")]
    pub container_id: String,
    #[serde(deserialize_with = "null_as_default")]
    pub state: ContainerState,
    #[serde(deserialize_with = "null_as_default")]
    pub last_state: ContainerState,
}

impl From<&ContainerStatus> for ContainerHealth {
    fn from(status: &ContainerStatus) -> Self {
        let waiting = status.state.waiting.as_ref();
        let reason = waiting.map_or(Waiting::No, |waiting| waiting.reason.as_str().into());
        Self {
            restart_count: status.restart_count,
            state: ContainerHealthState {
                waiting: ContainerHealthWaiting { reason },
            },
        }
    }
}

impl From<&Self> for ContainerHealth {
    fn from(health: &Self) -> Self {
        *health
    }
}

/// At most one member is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    pub waiting: Option<ContainerStateWaiting>,
    pub running: Option<ContainerStateRunning>,
    pub terminated: Option<ContainerStateTerminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerStateWaiting {
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
}

impl ContainerStateWaiting {
    pub fn reason(&self) -> WaitingReason<'_> {
        WaitingReason::from(&*self.reason)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStateRunning {
    pub started_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStateTerminated {
    pub exit_code: i32,
    pub signal: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_pod_decodes_and_unread_fields_are_skipped() {
        let pod: Pod<IgnoredAny> = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"},
                "creationTimestamp": "1970-01-01T00:00:07Z", "managedFields": [{"manager": "m"}],
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d",
                                     "uid": "du", "controller": true}]},
            "spec": {"nodeName": "x", "containers": [{"name": "c"}], "nodeSelector": {"k": "v"}},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"name": "c"}],
                "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null}]}}))
        .unwrap();
        assert_eq!(pod.metadata.uid.as_deref(), Some("u"));
        assert!(pod.metadata.managed_fields.is_none());
        assert_eq!(crate::meta::controller(&pod.metadata).unwrap().uid, "du");
        assert_eq!(pod.spec.node_name.as_deref(), Some("x"));
        assert_eq!(pod.status.phase, PodPhase::Running);
        assert!(pod.status.is_ready());
        assert_eq!(pod.status.pod_ip.as_deref(), Some("10.0.0.1"));
        assert_eq!(pod.status.container_statuses.len(), 1);
    }

    #[test]
    fn null_reads_like_an_absent_field() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"creationTimestamp": null},
            "spec": {"containers": null, "tolerations": null},
            "status": {"conditions": null, "message": null}}))
        .unwrap();
        assert!(pod.spec.containers.is_empty());
        assert_eq!(pod.status.phase, PodPhase::Pending);
    }

    #[test]
    fn absent_fields_have_the_api_s_defaults() {
        let spec: PodSpec = serde_json::from_value(json!({"containers": [{"name": "c"}]})).unwrap();
        assert_eq!(spec.termination_grace_period(), Duration::from_secs(30));
        assert_eq!(spec.restart_policy, RestartPolicy::Always);
        assert!(!spec.containers[0].is_sidecar());
    }

    #[test]
    fn ports_are_found_by_number_and_name() {
        let container = json!({"name": "c", "ports": [{"name": "web", "containerPort": 80}]});
        let container: Container = serde_json::from_value(container).unwrap();
        let check = |port: Value, expected| {
            assert_eq!(container.resolve_port(&port), expected, "{port}");
        };
        check(json!(8080), Some(8080));
        check(json!("web"), Some(80));
        check(json!("9090"), Some(9090));
        check(json!("other"), None);
        check(json!(70_000), None);
    }
}

//! A pod on a simulated node: what is kept of it, and how it is read from the API.
//!
//! What the node knows to be true (`stage`, `restarts`) and what the API shows (`shown`) are kept
//! apart: where they differ, the node has something to write. How that looks is for
//! [`status`](super::status).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_client::feed::Identity;

use super::shape::{self, Container, ContainerStatus};
use crate::scenario::Fate;
use crate::stages::{Restart, Stage};

/// What begins the id of a container.
const SCHEME: &str = "simulated://";

/// The conditions that nodes write, in the order of [`Shown::conditions`].
pub(super) const CONDITIONS: [&str; 4] = [
    "PodReadyToStartContainers",
    "Initialized",
    "ContainersReady",
    "Ready",
];

/// What is kept of a pod.
#[derive(Debug)]
pub(super) struct SimulatedPod {
    pub(super) id: Identity,
    /// The place of its node.
    pub(super) node: usize,
    pub(super) make: Arc<Make>,
    pub(super) fate: Fate,
    /// Which of its owner's pods on this node it is.
    pub(super) ordinal: u32,
    pub(super) generation: i64,
    pub(super) address: Option<Ipv4Addr>,
    /// Other parties' conditions on its being ready hold.
    pub(super) gates_open: bool,
    pub(super) stage: Stage,
    pub(super) restarts: u32,
    /// When its containers last started, and how they last ended.
    pub(super) started: String,
    pub(super) ended: Option<Ended>,
    /// Grows with each stage, so that what was planned for an earlier one is recognised.
    pub(super) turn: u32,
    pub(super) shown: Shown,
    /// The version that our last write made: what is older is not news.
    pub(super) version: u64,
    /// A write is under way.
    pub(super) busy: bool,
    /// What was seen while a write was under way.
    pub(super) late: Option<(u64, Shown)>,
}

impl SimulatedPod {
    /// The API shows this now. Of the containers we know more than it shows.
    pub(super) fn see(&mut self, shown: Shown) {
        let containers = self.shown.containers;
        self.shown = Shown {
            containers,
            ..shown
        };
    }

    /// Whether a decision of others is news: the first, or a deletion with less time.
    pub(super) fn turns_to(&self, stage: Stage) -> bool {
        match (self.stage, stage) {
            (Stage::Stopped, _) => false,
            (Stage::Stopping(before), Stage::Stopping(now)) => now < before,
            (_, Stage::Stopping(_)) => true,
            (Stage::Finished(_) | Stage::Stopping(_), _) => false,
            _ => true,
        }
    }

    /// Its containers have ended.
    pub(super) fn end(&mut self, code: i32) {
        self.ended = Some(Ended {
            code,
            started: std::mem::take(&mut self.started),
            finished: clock::now_rfc3339(),
        });
    }

    /// Its containers have gone down with the node, and are to be started again.
    pub(super) fn lost(&mut self) {
        const UNKNOWN: i32 = 255;
        self.end(UNKNOWN);
        self.restarts += 1;
    }
}

/// How containers ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) started: String,
    pub(super) finished: String,
}

/// What pods of one making have in common; shared by them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Make {
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
    pub(super) host_network: bool,
    pub(super) restart: Restart,
}

impl Make {
    pub(super) fn of(spec: &mut shape::PodSpec) -> Self {
        Self {
            containers: std::mem::take(&mut spec.containers),
            init_containers: std::mem::take(&mut spec.init_containers),
            host_network: spec.host_network,
            restart: Restart::of(&spec.restart_policy),
        }
    }

    pub(super) fn images(&self) -> Vec<&str> {
        let all = self.containers.iter().chain(&self.init_containers);
        all.map(|container| container.image.as_str()).collect()
    }
}

/// What the API shows of a pod, as far as the node writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) phase: Phase,
    pub(super) conditions: [Option<bool>; 4],
    /// The stage and restarts that its containers look like.
    pub(super) containers: Option<(Stage, u32)>,
    pub(super) has_address: bool,
    pub(super) has_start: bool,
}

/// A pod's phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    fn of(text: &str) -> Self {
        match text {
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Pending,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

impl Shown {
    pub(super) fn of(pod: &shape::Pod) -> Self {
        let status = &pod.status;
        let condition = |kind: &str| {
            let found = status.conditions.iter().find(|c| c.r#type == kind)?;
            Some(found.status == "True")
        };
        Self {
            phase: Phase::of(&status.phase),
            conditions: CONDITIONS.map(condition),
            containers: lived(&status.container_statuses),
            has_address: !status.pod_ip.is_empty(),
            has_start: status.start_time.is_some(),
        }
    }
}

/// The stage that containers of a node show, and how often they were restarted.
fn lived(containers: &[ContainerStatus]) -> Option<(Stage, u32)> {
    let restarts = containers.iter().map(|c| c.restart_count).max()?;
    let waiting = |reason: &str| {
        let mut states = containers.iter().filter_map(|c| c.state.waiting.as_ref());
        states.any(|waiting| waiting.reason == reason)
    };
    let code = |state: &shape::State| state.terminated.as_ref().map(|ended| ended.exit_code);
    let stage = if waiting("CrashLoopBackOff") {
        let code = containers.iter().find_map(|c| code(&c.last_state));
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
    } else if let Some(code) = containers.iter().find_map(|c| code(&c.state)) {
        Stage::CrashLoop(code)
    } else {
        Stage::Creating
    };
    Some((stage, restarts))
}

/// What a pod's containers tell about the past, for a node that begins to play it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) ordinal: Option<u32>,
    pub(super) started: String,
    pub(super) ended: Option<Ended>,
}

impl Past {
    pub(super) fn of(pod: &shape::Pod) -> Self {
        let Some(container) = pod.status.container_statuses.first() else {
            return Self::default();
        };
        let running = container.state.running.as_ref();
        let ended = container.last_state.terminated.as_ref();
        Self {
            ordinal: ordinal(&container.container_id),
            started: running.map(|r| r.started_at.clone()).unwrap_or_default(),
            ended: ended.map(|ended| Ended {
                code: ended.exit_code,
                started: ended.started_at.clone(),
                finished: ended.finished_at.clone(),
            }),
        }
    }
}

/// The id of a container. It tells the pod's ordinal to those who play it after us.
pub(super) fn container_id(pod: &SimulatedPod, container: &str, restarts: u32) -> String {
    let (uid, ordinal) = (&pod.id.uid, pod.ordinal);
    format!("{SCHEME}{uid}/{container}/{ordinal}/{restarts}")
}

fn ordinal(container_id: &str) -> Option<u32> {
    let mut parts = container_id.strip_prefix(SCHEME)?.rsplit('/');
    parts.nth(1)?.parse().ok()
}

/// The stage of a pod as the API alone tells it. What others have decided comes before what the
/// containers look like: a deletion, or the end of the pod.
pub(super) fn stage(pod: &shape::Pod, shown: &Shown) -> Stage {
    if let Some(decided) = decided(pod, shown) {
        return decided;
    }
    shown.containers.map_or(Stage::Bound, |(stage, _)| stage)
}

/// What others have decided about a pod.
pub(super) fn decided(pod: &shape::Pod, shown: &Shown) -> Option<Stage> {
    if pod.metadata.deletion_timestamp.is_some() {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        let grace = Duration::from_secs(grace.try_into().unwrap_or(0));
        return Some(Stage::Stopping(grace));
    }
    match shown.phase {
        Phase::Failed => Some(Stage::Finished(1)),
        Phase::Succeeded => Some(Stage::Finished(0)),
        Phase::Pending | Phase::Running => None,
    }
}

/// Whether all conditions that others set on its being ready hold.
pub(super) fn gates_open(pod: &shape::Pod) -> bool {
    let holds = |kind: &str| {
        let mut conditions = pod.status.conditions.iter();
        conditions.any(|c| c.r#type == kind && c.status == "True")
    };
    let mut gates = pod.spec.readiness_gates.iter();
    gates.all(|gate| holds(&gate.condition_type))
}

#[cfg(test)]
mod tests;

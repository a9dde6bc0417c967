//! The state of all simulated nodes and their pods. It handles one watch event, task result or timer at a time.
//!
//! The loop that feeds it is in the crate's root; [`stages`](crate::stages) says which stage of a pod comes next, and
//! the [`scenario`](crate::scenario) which pods and nodes fail. Nodes are handled in [`nodes`], pods in [`pods`], their
//! tokens in [`mounts`].

mod mounts;
mod nodes;
mod ordinals;
mod pods;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Backoff, Policy};
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::Writer;
use kennel_types::{Node, Pod};
use kube::Client;
use tokio::time::Instant;

use super::address::PodAddresses;
use super::pod::{PodTemplate, SimulatedPod, StatusSummary};
use super::{Beside, Clients, Counts, Simulation, Watcher};
use crate::scenario::OutageKind;
use crate::seeded_random::SeededRandom;
use crate::stages::Stage;

/// Before a failed write is tried again. One backoff for the whole fleet: its writes fail together.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));

struct SimulatedNode {
    number: u32,
    /// Uid of its Node object, while there is one.
    uid: Option<Arc<str>>,
    /// A registration is in flight: until it ends, a missing Node object means nothing.
    registering: bool,
    /// Whether it has been registered at least once.
    known: bool,
    /// A lease renewal is in flight; the next one is skipped instead of queueing behind it.
    renewing: bool,
    /// A status report is in flight.
    reporting: bool,
    /// A condition changed during the status report in flight.
    report_again: bool,
    /// The current outage: the node writes nothing.
    outage: Option<OutageKind>,
    /// The current boot id; empty if unknown.
    boot_id: Box<str>,
    addresses: PodAddresses,
    /// Uids of its pods.
    pods: Vec<Arc<str>>,
    /// By owner, the next ordinal of a pod.
    ordinals: Vec<(u64, u32)>,
    /// What its pods mount, by namespace.
    mounts: Vec<mounts::Mount>,
}

impl SimulatedNode {
    fn new(number: u32) -> Self {
        Self {
            number,
            uid: None,
            registering: false,
            known: false,
            renewing: false,
            reporting: false,
            report_again: false,
            outage: None,
            boot_id: Box::default(),
            addresses: PodAddresses::new(number),
            pods: Vec::new(),
            ordinals: Vec::new(),
            mounts: Vec::new(),
        }
    }
}

/// The result of a write, or a timer that expired. Nodes are given by their index.
pub(super) enum TaskResult {
    Registered {
        node: usize,
        booted: bool,
        /// `None` if the registration failed.
        uid: Option<String>,
    },
    RetryRegister {
        node: usize,
        booted: bool,
    },
    /// A renewal ended, successfully or not.
    LeaseRenewed(usize),
    StatusReported(usize, WriteResult),
    RetryStatusReport(usize),
    /// A pod's next stage is due, unless the pod has left the stage of this epoch.
    StageDue {
        pod: Arc<str>,
        epoch: u32,
        stage: Stage,
    },
    PodWritten {
        pod: Arc<str>,
        result: WriteResult,
        /// The status that was written; `None` for a deletion.
        status: Option<StatusSummary>,
    },
    RetryPodWrite(Arc<str>),
    /// The token of a pod has arrived, or not.
    TokenIssued(Arc<str>, bool),
    /// With the time since the start at which it ends.
    OutageBegins(usize, OutageKind, Duration),
    OutageEnds(usize, Duration),
}

#[derive(Clone, Copy)]
pub(super) enum WriteResult {
    /// With the new resource version.
    Written(u64),
    NotFound,
    Failed,
}

/// See the [module](self).
pub(super) struct Fleet {
    /// Makes the client of a node.
    client_of: Box<dyn Fn(&str) -> Client + Send>,
    fence: Fence,
    simulation: Simulation,
    counts: Counts,
    /// Pods mount the tokens of their service accounts.
    mounts_tokens: bool,
    started: Instant,
    /// By their number, beginning with the first.
    nodes: Vec<SimulatedNode>,
    /// By uid.
    pods: BTreeMap<Arc<str>, SimulatedPod>,
    templates: HashSet<Arc<PodTemplate>>,
    /// The initial list of pods is complete: all addresses in use are known.
    synced: bool,
    pub(super) work: Work<TaskResult>,
    /// Index of the next node to renew its lease, and to report its status.
    next_renewal: usize,
    next_report: usize,
    retry: Backoff,
}

impl Fleet {
    pub(super) fn new(clients: Clients, simulation: Simulation, counts: Counts) -> Self {
        let nodes: Vec<_> = simulation.numbers().map(SimulatedNode::new).collect();
        let mounts_tokens = matches!(clients.watcher, Watcher::EachNode(Beside::Mounts));
        let mut fleet = Self {
            client_of: clients.node,
            fence: Fence::open(),
            simulation,
            counts,
            mounts_tokens,
            started: Instant::now(),
            nodes,
            pods: BTreeMap::new(),
            templates: HashSet::new(),
            synced: false,
            work: Work::new(WRITES_AT_ONCE),
            next_renewal: 0,
            next_report: 0,
            retry: Backoff::new(RETRY),
        };
        for node in 0..fleet.nodes.len() {
            fleet.register(node, false);
            fleet.schedule_outage(node, Duration::ZERO);
        }
        fleet
    }

    pub(super) fn on_pod_event(&mut self, change: Change<Pod>) {
        match change {
            Change::Applied(object) => self.pod_applied(object),
            Change::Gone(id) => self.pod_deleted(&id.uid),
            Change::Synced => {
                let first = !std::mem::replace(&mut self.synced, true);
                let all: Vec<_> = self.pods.keys().cloned().collect();
                for uid in all {
                    if first {
                        self.resume(&uid);
                    } else {
                        self.write(&uid);
                    }
                }
            }
        }
    }

    pub(super) fn on_node_event(&mut self, change: Change<Node>) {
        match change {
            Change::Applied(object) => self.node_applied(&object),
            Change::Gone(id) => self.node_deleted(&id.name, &id.uid),
            Change::Synced => {}
        }
    }

    pub(super) fn on_task_result(&mut self, result: TaskResult) {
        match result {
            TaskResult::Registered { node, booted, uid } => {
                if let Some(uid) = uid {
                    self.retry.reset();
                    self.on_registered(node, &uid);
                } else {
                    let retry = TaskResult::RetryRegister { node, booted };
                    self.work.later(self.retry.next_delay(), retry);
                }
            }
            TaskResult::RetryRegister { node, booted } => self.register(node, booted),
            TaskResult::LeaseRenewed(node) => self.nodes[node].renewing = false,
            TaskResult::StatusReported(node, result) => self.on_status_reported(node, result),
            TaskResult::RetryStatusReport(node) => self.retry_status_report(node),
            TaskResult::StageDue { pod, epoch, stage } => self.on_stage_due(&pod, epoch, stage),
            TaskResult::PodWritten {
                pod,
                result,
                status,
            } => self.on_pod_written(&pod, result, status),
            TaskResult::RetryPodWrite(uid) => {
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.write_in_flight = false;
                }
                self.write(&uid);
            }
            TaskResult::TokenIssued(pod, issued) => self.on_token_issued(&pod, issued),
            TaskResult::OutageBegins(node, kind, until) => self.begin_outage(node, kind, until),
            TaskResult::OutageEnds(node, since) => self.end_outage(node, since),
        }
    }

    /// The index of the node of this name, if it belongs to this simulation.
    fn index(&self, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(&*self.simulation.prefix)?;
        let number: u32 = digits.parse().ok()?;
        let index = number.checked_sub(self.simulation.first)? as usize;
        let ours = index < self.nodes.len() && self.simulation.node_name(number) == name;
        ours.then_some(index)
    }

    fn name(&self, node: usize) -> Arc<str> {
        self.simulation.node_name(self.nodes[node].number).into()
    }

    fn writer(&self, name: &str) -> Writer {
        Writer::new((self.client_of)(name), self.fence.clone())
    }

    fn random(&self) -> SeededRandom {
        SeededRandom::new(self.simulation.seed)
    }
}

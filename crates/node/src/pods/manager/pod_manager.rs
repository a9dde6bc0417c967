//! The pods that have a worker, and those that wait for admission.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kennel_client::backoff::Backoff;
use kennel_client::pulse;
use kennel_core::pod::admit::{Admission, AdmissionNode, AdmissionPod, admit};
use kennel_core::pod::eviction;
use kennel_core::pod::status::PodFailure;
use kennel_types::PodPhase;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::orphans::list_runtime_pods;
use super::{Command, RUNTIME_RETRY};
use crate::pods::worker::{Mailbox, Shared, Worker, WorkerStart};
use crate::pods::{Origin, Pod, PodUpdate};
use crate::runtime::PodId;
use crate::sync::sleep_until;

/// Delay before the manager restarts a worker that panicked.
const WORKER_RESTART_DELAY: Duration = Duration::from_secs(10);

/// The message of a preempted pod's condition `DisruptionTarget`.
const PREEMPTED: &str = "Pod was preempted by Kubelet to accommodate a critical pod.";

/// A pod that has a worker.
pub(super) struct ManagedPod {
    pod: Arc<Pod>,
    requests: AdmissionPod,
    mailbox: Arc<Mailbox>,
    /// The worker sets it once the pod needs no resources of the node any more.
    released: Arc<AtomicBool>,
    /// Whether the pod counts against the node's resources until it is released.
    holds_resources: bool,
    /// Why admission rejected it.
    rejection: Option<PodFailure>,
    /// Its source does not have it any more.
    removed: bool,
    preempted: bool,
}

pub(super) struct PodManager {
    pub(super) shared: Arc<Shared>,
    pub(super) pods: BTreeMap<String, ManagedPod>,
    workers: JoinSet<()>,
    worker_uids: HashMap<Id, String>,
    /// Pods that wait for admission.
    pub(super) pending: Vec<Arc<Pod>>,
    pub(super) unsynced_sources: Vec<Origin>,
    /// Uids that the runtime had when the manager started.
    found_at_start: BTreeSet<String>,
    /// When to look for orphans.
    pub(super) orphan_check_at: Option<Instant>,
    pub(super) runtime_retry: Backoff,
}

impl PodManager {
    /// Waits until the runtime lists its pods.
    pub(super) async fn start(shared: Arc<Shared>) -> Self {
        let mut logged = None;
        let mut retry = Backoff::new(RUNTIME_RETRY);
        let found = loop {
            pulse::beat();
            let error = match list_runtime_pods(&shared).await {
                Ok(found) => break found,
                Err(error) => error,
            };
            if logged.as_ref() != Some(&error) {
                tracing::warn!("waiting for the runtime to list its pods: {error}");
                logged = Some(error);
            }
            retry.sleep().await;
        };
        Self {
            unsynced_sources: shared.dependencies.sources.clone(),
            shared,
            pods: BTreeMap::new(),
            workers: JoinSet::new(),
            worker_uids: HashMap::new(),
            pending: Vec::new(),
            found_at_start: found.into_iter().map(|found| found.pod.uid).collect(),
            orphan_check_at: None,
            runtime_retry: Backoff::new(RUNTIME_RETRY),
        }
    }

    pub(super) fn on_update(&mut self, update: PodUpdate) {
        match update {
            PodUpdate::Set(pod) => self.set(pod),
            PodUpdate::Removed(id) => self.removed(&id),
            PodUpdate::Synced(origin) => {
                let was_syncing = !self.unsynced_sources.is_empty();
                self.unsynced_sources.retain(|source| *source != origin);
                self.admit_pending();
                self.schedule_orphan_check();
                if was_syncing && self.unsynced_sources.is_empty() {
                    tracing::info!("all pod sources synced: managing {} pods", self.pods.len());
                }
            }
        }
    }

    fn set(&mut self, pod: Arc<Pod>) {
        let uid = &pod.id.uid;
        if let Some(managed) = self.pods.get_mut(uid).filter(|managed| !managed.removed) {
            managed.pod = Arc::clone(&pod);
            managed.mailbox.set_pod(pod);
            return;
        }
        self.pending.retain(|other| other.id.uid != *uid);
        self.pending.push(pod);
        self.admit_pending();
    }

    fn removed(&mut self, id: &PodId) {
        self.pending.retain(|other| other.id.uid != id.uid);
        if let Some(managed) = self.pods.get_mut(&id.uid) {
            managed.removed = true;
            managed.mailbox.remove();
        }
    }

    /// `uid` is empty when the runtime may have missed events, for example after it reconnected.
    pub(super) fn on_runtime_event(&mut self, uid: &str) {
        if uid.is_empty() {
            for managed in self.pods.values() {
                managed.mailbox.observe();
            }
        } else if let Some(managed) = self.pods.get(uid) {
            managed.mailbox.observe();
            return;
        }
        self.schedule_orphan_check();
    }

    pub(super) fn on_command(&mut self, command: Command) {
        match command {
            Command::Evict {
                uid,
                failure,
                grace,
            } => {
                if let Some(managed) = self.pods.get(&uid) {
                    managed.mailbox.evict(failure, grace);
                }
            }
            Command::SetMirror { uid, mirror } => self.shared.status.set_mirror(&uid, mirror),
        }
    }

    /// Waits for the next internal event (a worker ends, resources are released, the orphan check is due) and
    /// handles it.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            Some(ended) = self.workers.join_next_with_id() => self.on_worker_ended(ended),
            () = self.shared.resources_released.notified() => self.admit_pending(),
            () = sleep_until(self.orphan_check_at) => self.check_orphans().await,
        }
    }

    fn on_worker_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let Some(uid) = self.worker_uids.remove(&id) else {
            return;
        };
        let Some(managed) = self.pods.remove(&uid) else {
            return;
        };
        if let Err(error) = ended {
            tracing::error!(pod = %managed.pod.id.name, "restarting the pod's worker, which panicked: {error}");
            self.start_worker(
                managed.pod,
                managed.rejection,
                managed.removed,
                WORKER_RESTART_DELAY,
            );
        }
        self.admit_pending();
    }

    /// Admits or rejects every pending pod that can be decided now: pods that skip admission first, then the oldest.
    fn admit_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_cached_key(|pod| {
            let created = pod.metadata()["creationTimestamp"].as_str();
            let created = created.unwrap_or_default().to_owned();
            (!self.skips_admission(pod), created, pod.id.name.clone())
        });
        for pod in pending {
            match self.decide_admission(&pod) {
                Some(Admission::Admit) => self.start_worker(pod, None, false, Duration::ZERO),
                Some(Admission::Reject(failure)) => {
                    self.start_worker(pod, Some(failure), false, Duration::ZERO);
                }
                Some(Admission::Preempt(victims)) => {
                    self.preempt(&victims);
                    self.pending.push(pod);
                }
                None => self.pending.push(pod),
            }
        }
    }

    /// None while the pod has to wait.
    fn decide_admission(&self, pod: &Pod) -> Option<Admission> {
        if self.pods.contains_key(&pod.id.uid) || self.waits_for_predecessor(pod) {
            return None;
        }
        if self.skips_admission(pod) {
            return Some(Admission::Admit);
        }
        if self.unsynced_sources.contains(&pod.origin) {
            return None;
        }
        let is_static = pod.origin == Origin::File;
        let pressures = *self.shared.dependencies.pressures.borrow();
        if let Some(failure) = eviction::reject_under_pressure(&pod.object, is_static, pressures) {
            return Some(Admission::Reject(failure));
        }
        let requests = requests(pod);
        let host = AdmissionNode::read(&self.shared.dependencies.node.borrow());
        let holds_resources = |managed: &&ManagedPod| {
            managed.holds_resources && !managed.released.load(Ordering::SeqCst)
        };
        let all = self.pods.values().filter(holds_resources);
        let (leaving, staying): (Vec<&ManagedPod>, Vec<&ManagedPod>) =
            all.partition(|managed| managed.preempted);
        let others: Vec<&AdmissionPod> = staying.iter().map(|managed| &managed.requests).collect();
        let admission = admit(&requests, &host, &others);
        if leaving.is_empty() || admission != Admission::Admit {
            return Some(admission);
        }
        // The pod fits once the preempted pods have ended. Admit it before that only if it fits beside them.
        let leaving = leaving.iter().map(|managed| &managed.requests);
        let others: Vec<&AdmissionPod> = leaving.chain(others).collect();
        match admit(&requests, &host, &others) {
            Admission::Preempt(_) => None,
            other => Some(other),
        }
    }

    /// Whether an earlier version of the same static pod still runs: both would use the same names and ports.
    fn waits_for_predecessor(&self, pod: &Pod) -> bool {
        let is_predecessor = |other: &ManagedPod| {
            let (a, b) = (&other.pod.id, &pod.id);
            a.namespace == b.namespace && a.name == b.name && a.uid != b.uid
        };
        pod.origin == Origin::File && self.pods.values().any(is_predecessor)
    }

    /// Pods that already ran were admitted before; pods that will not run need no admission.
    fn skips_admission(&self, pod: &Pod) -> bool {
        pod.is_deleted()
            || self.found_at_start.contains(&pod.id.uid)
            || matches!(
                pod.phase(),
                PodPhase::Running | PodPhase::Succeeded | PodPhase::Failed
            )
    }

    fn preempt(&mut self, victims: &[String]) {
        for uid in victims {
            let Some(managed) = self.pods.get_mut(uid) else {
                continue;
            };
            managed.preempted = true;
            let failure = PodFailure {
                reason: "Preempting".to_owned(),
                message: "Preempted in order to admit critical pod".to_owned(),
                disruption: Some(PREEMPTED.to_owned()),
            };
            let grace = managed.pod.spec.termination_grace_period();
            managed.mailbox.evict(failure, grace);
        }
    }

    pub(super) fn start_worker(
        &mut self,
        pod: Arc<Pod>,
        rejection: Option<PodFailure>,
        removed: bool,
        delay: Duration,
    ) {
        let mailbox = Arc::new(Mailbox::default());
        let released = Arc::new(AtomicBool::new(false));
        let uid = pod.id.uid.clone();
        let managed = ManagedPod {
            requests: requests(&pod),
            mailbox: Arc::clone(&mailbox),
            released: Arc::clone(&released),
            holds_resources: rejection.is_none() && !pod.phase().is_terminal(),
            rejection: rejection.clone(),
            removed,
            preempted: false,
            pod: Arc::clone(&pod),
        };
        let start = WorkerStart {
            pod,
            mailbox,
            released,
            rejection,
            removed,
        };
        let shared = Arc::clone(&self.shared);
        let task = self.workers.spawn(async move {
            tokio::time::sleep(delay).await;
            Worker::new(shared, start).run().await;
        });
        self.worker_uids.insert(task.id(), uid.clone());
        self.pods.insert(uid, managed);
    }
}

fn requests(pod: &Pod) -> AdmissionPod {
    AdmissionPod::read(&pod.object, pod.origin == Origin::File)
}

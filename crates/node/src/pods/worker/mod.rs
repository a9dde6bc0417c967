//! Runs one pod: observes it in the runtime, asks [`mod@kennel_core::pod::plan`] what to do, starts tasks that do it, and
//! reports the pod's status.
//!
//! ```text
//!   mailbox (pod, runtime events, eviction) ─▶ worker ─▶ plan ─▶ tasks (start, kill, probe, cleanup) ─┐
//!                                                ▲                                                    │
//!                                                └───────────────────── outcomes ─────────────────────┘
//! ```
//!
//! A worker never plans on stale observations: whenever a task ends it observes the runtime again before the next
//! step. State that must survive the agent is in the runtime and in the API, so a worker can be dropped at any moment.

mod cleanup;
mod failure_log;
mod image;
mod kill;
mod mailbox;
mod observe;
mod outcome;
mod probe;
mod shared;
mod start;
mod status;
mod termination;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kennel_core::pod::failure::FailureLog;
use kennel_core::pod::plan::{Desired, PlanInput, plan};
use kennel_core::pod::status::PodFailure;
use kennel_core::pod::{Action, Observed, Tracker};
use kennel_types::{Monotonic, ProbeKind};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::Pod;
use super::events::PodEvents;
use crate::sync::sleep_until;
pub(super) use mailbox::Mailbox;
use mailbox::Pending;
use outcome::Outcome;
pub(super) use shared::Shared;
use termination::Termination;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Containers run, or will.
    Active,
    /// All containers have terminated for good; the pod stays in the API and in the runtime.
    Finished,
    /// Containers, sandboxes, volumes and logs are being removed.
    Removing,
    /// Nothing is left on this node.
    Removed,
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    mailbox: Arc<Mailbox>,
    /// Set once the pod needs no resources of the node any more.
    released: Arc<AtomicBool>,
    events: PodEvents,
    tracker: Tracker,
    observed: Observed,
    /// Ids of sandboxes that were replaced.
    stale_sandboxes: Vec<String>,
    /// When to observe the runtime, and how often that failed. None when the observation is current.
    observation_due: Option<(Monotonic, u32)>,
    stage: Stage,
    termination: Option<Termination>,
    /// The pod's source does not have it any more.
    removed: bool,
    tasks: JoinSet<Outcome>,
    /// The containers that a task works on; an empty name is the sandbox.
    busy: BTreeSet<String>,
    kills: BTreeMap<String, AbortHandle>,
    /// How often killing or removing failed, by container or by [`kill::PRUNE`] and [`kill::REMOVE`].
    kill_failures: BTreeMap<String, u32>,
    probing: BTreeSet<(String, ProbeKind)>,
    /// The containers whose `postStart` hook runs, by id.
    running_hooks: BTreeSet<String>,
    /// The runs whose logs are linked, by id.
    linked_logs: BTreeSet<String>,
    /// The runs and sandboxes that a task removes, by id.
    pruning: BTreeSet<String>,
    /// Cancelled when the pod terminates: starts that still wait for something give up.
    terminating: CancellationToken,
    status: status::StatusTracker,
    failure_log: FailureLog,
}

/// What a worker starts with.
pub(super) struct WorkerStart {
    pub(super) pod: Arc<Pod>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) released: Arc<AtomicBool>,
    /// Why admission rejected the pod.
    pub(super) rejection: Option<PodFailure>,
    /// The pod's source does not have it any more.
    pub(super) removed: bool,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, start: WorkerStart) -> Self {
        let WorkerStart {
            pod,
            mailbox,
            released,
            rejection,
            removed,
        } = start;
        let mut worker = Self {
            tracker: Tracker::from_status(pod.api_status()),
            status: status::StatusTracker::new(&pod),
            events: PodEvents::new(&shared.recorder, &pod),
            shared,
            mailbox,
            released,
            observed: Observed::default(),
            stale_sandboxes: Vec::new(),
            observation_due: Some((Monotonic::START, 0)),
            stage: Stage::Active,
            termination: None,
            removed: false,
            tasks: JoinSet::new(),
            busy: BTreeSet::new(),
            kills: BTreeMap::new(),
            kill_failures: BTreeMap::new(),
            probing: BTreeSet::new(),
            running_hooks: BTreeSet::new(),
            linked_logs: BTreeSet::new(),
            pruning: BTreeSet::new(),
            terminating: CancellationToken::new(),
            failure_log: FailureLog::default(),
            pod,
        };
        worker.apply_initial_state(rejection, removed);
        worker
    }

    /// Runs until the pod's source has removed it and nothing is left of it.
    pub(super) async fn run(mut self) {
        let mailbox = Arc::clone(&self.mailbox);
        loop {
            self.observe_if_due().await;
            let wake = match self.observation_due {
                None => self.step(),
                Some((due, _)) => Some(due),
            };
            if self.removed && self.stage == Stage::Removed {
                self.shared.status.forget(&self.pod.id.uid);
                self.shared.dependencies.cache.remove(&self.pod.id.uid);
                return;
            }
            let wake = wake.map(|wake| self.shared.started + wake.elapsed());
            tokio::select! {
                pending = mailbox.receive() => self.handle(pending),
                Some(ended) = self.tasks.join_next() => self.on_task_ended(ended),
                () = sleep_until(wake) => {}
            }
        }
    }

    fn handle(&mut self, pending: Pending) {
        if let Some(pod) = pending.pod {
            self.on_pod_changed(pod);
        }
        if let Some((failure, grace)) = pending.eviction {
            self.evict(failure, grace);
        }
        if pending.removed {
            self.on_source_removed();
        }
        if pending.observe {
            self.observe_now();
        }
    }

    /// Starts what is due. Returns when to step again if nothing happens before.
    fn step(&mut self) -> Option<Monotonic> {
        let now = self.shared.now();
        self.log_failures(now);
        let mut wake = self.check_active_deadline(now);
        if matches!(self.stage, Stage::Active | Stage::Finished) {
            let situation = PlanInput {
                spec: &self.pod.spec,
                observed: &self.observed,
                tracker: &self.tracker,
                desired: match &self.termination {
                    None => Desired::Run,
                    Some(termination) => Desired::Terminate(termination.deadline),
                },
                busy: &self.busy,
                now,
            };
            let plan = plan(&situation);
            for action in plan.actions {
                self.execute(action);
            }
            if plan.finished && self.busy.is_empty() {
                self.on_finished(now);
            }
            wake = earliest(wake, plan.wake);
        }
        if self.stage == Stage::Active {
            wake = earliest(wake, self.run_due_probes(now));
            self.prune();
        }
        self.update_status();
        wake
    }

    fn execute(&mut self, action: Action) {
        match action {
            Action::StartSandbox { attempt } => self.start_sandbox(attempt),
            Action::Start { name, attempt } => self.start(name, attempt),
            Action::Kill {
                name,
                id,
                grace,
                reason,
            } => self.kill(name, id, grace, reason),
            Action::StopSandbox { id } => self.stop_sandbox(id),
        }
    }

    fn release_resources(&self) {
        if !self.released.swap(true, Ordering::SeqCst) {
            self.shared.resources_released.notify_one();
        }
    }

    fn raw_container(&self, name: &str) -> &Value {
        self.pod.raw_container(name).unwrap_or(&Value::Null)
    }

    fn container_events(&self, name: &str) -> PodEvents {
        self.events.for_container(&self.pod, name)
    }
}

fn earliest(a: Option<Monotonic>, b: Option<Monotonic>) -> Option<Monotonic> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

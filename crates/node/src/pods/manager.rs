//! The pod manager: admits pods, runs one worker task per pod, forwards updates to it, and terminates orphans.
//!
//! Pods outlive the agent: a manager that starts adopts the pods that the runtime already runs. It terminates pods
//! that no source names, but only once every source has synced.

mod orphans;
mod pod_manager;

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::Policy;
use kennel_client::events::Recorder;
use kennel_client::pulse;
use kennel_client::write::Writer;
use kennel_core::pod::eviction::Pressures;
use kennel_core::pod::status::PodFailure;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::status::StatusManager;
use super::traits::{PodInputs, ProbeRunner};
use super::worker::Shared;
use super::{Origin, PodCache, PodUpdate};
use crate::agent::Settings;
use crate::runtime::Runtime;
use pod_manager::PodManager;

/// The source that events name. Tools that look for a kubelet's events expect this one.
const EVENT_SOURCE: &str = "kubelet";
/// Before the manager asks an unavailable runtime again.
const RUNTIME_RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));
/// The manager completes an iteration at least this often, for health checks.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Commands that may wait for the manager. Senders wait when it is full; the manager never waits for a sender.
const COMMAND_QUEUE_CAPACITY: usize = 64;

/// What the pod manager and its workers use.
#[derive(Clone)]
pub struct Dependencies {
    pub runtime: Arc<dyn Runtime>,
    pub inputs: Arc<dyn PodInputs>,
    pub probes: Arc<dyn ProbeRunner>,
    pub settings: Arc<Settings>,
    /// Writes statuses, deletions and events, while the agent speaks for its node.
    pub writer: Writer,
    pub cache: Arc<PodCache>,
    /// The node's own object. Admission needs its labels, taints and `status.allocatable` from the first value on.
    pub node: watch::Receiver<Arc<Value>>,
    pub pressures: watch::Receiver<Pressures>,
    /// The sources that must sync before unknown pods count as orphans.
    pub sources: Vec<Origin>,
}

/// A request from another part of the agent about one pod.
#[derive(Clone, Debug)]
pub enum Command {
    /// Terminate the pod; its status gets this failure.
    Evict {
        uid: String,
        failure: PodFailure,
        grace: Duration,
    },
    /// The static pod `uid` has this mirror pod in the API from now on, or none: its status goes there.
    SetMirror { uid: String, mirror: Option<String> },
}

#[derive(Clone, Debug)]
pub struct CommandSender(mpsc::Sender<Command>);

impl CommandSender {
    pub fn channel() -> (Self, mpsc::Receiver<Command>) {
        let (sender, receiver) = mpsc::channel(COMMAND_QUEUE_CAPACITY);
        (Self(sender), receiver)
    }

    /// Does nothing once the pod manager has stopped.
    pub async fn send(&self, command: Command) {
        let _stopped = self.0.send(command).await;
    }
}

/// Manages pods until `stop`; their containers go on running. The future may be dropped at any await.
pub async fn run(
    dependencies: Dependencies,
    mut updates: mpsc::Receiver<PodUpdate>,
    mut commands: mpsc::Receiver<Command>,
    stop: CancellationToken,
) {
    let writer = dependencies.writer.clone();
    let (status, write_statuses) = StatusManager::new(writer.clone(), stop.clone());
    let node = &dependencies.settings.node_name;
    let (recorder, write_events) = Recorder::on_node(writer, EVENT_SOURCE, node, stop.clone());
    let mut runtime_events = dependencies.runtime.changes();
    let shared = Arc::new(Shared::new(dependencies, status, recorder));
    let manage = async {
        let mut manager = PodManager::start(Arc::clone(&shared)).await;
        loop {
            pulse::beat();
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => {}
                Some(update) = updates.recv() => manager.on_update(update),
                Some(uid) = runtime_events.recv() => manager.on_runtime_event(&uid),
                Some(command) = commands.recv() => manager.on_command(command),
                () = manager.next() => {}
            }
        }
    };
    let manage_until_stopped = stop.run_until_cancelled(manage);
    tokio::join!(manage_until_stopped, write_statuses, write_events);
}

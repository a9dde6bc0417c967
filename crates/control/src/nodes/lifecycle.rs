//! The node lifecycle controller: sets conditions and taints of nodes that stop renewing their lease, and marks their
//! pods not ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kennel_client::Error;
use kennel_client::backoff::Failures;
use kennel_client::clock::Clock;
use kennel_client::events::{Note, Recorder};
use kennel_client::write::{Failure, Writer, Written};
use kennel_core::lifecycle::NodeFacts;
use kennel_core::lifecycle::conditions::UnknownCondition;
use kennel_core::lifecycle::monitor::{Action, Monitor, NodeVersion};
use kennel_core::lifecycle::pods_by_node::NodePod;
use kennel_types::{Identity, Lease, Monotonic, Timestamp};
use kube::Client;

use super::{RETRY, view, writes};
use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use crate::informers::{Informers, Pod};

pub use kennel_core::lifecycle::monitor::Settings;
pub use kennel_core::lifecycle::zones::Rates;

/// A pod's uid; and the pod, with whether it is ready, if it is bound to a node.
type ObservedPod = (Arc<str>, Option<NodePod<bool>>);

enum Event {
    Node(Update<NodeFacts>),
    /// The node's name, and the renew time in microseconds by the node's clock.
    Lease(Update<(String, Option<i64>)>),
    Pod(Update<ObservedPod>),
}

/// A node's name and uid.
type NodeKey = (Arc<str>, Arc<str>);

enum Outcome {
    /// The node was written, and has this version now.
    Written(NodeKey, Arc<str>),
    Failed(NodeKey),
    RetryDue(NodeKey),
    /// The API was unavailable for a while, in which no node could renew its lease.
    ApiWasUnavailable(NodeKey),
    PodMarked(Arc<str>),
    PodNotMarked(Arc<str>),
    PodRetryDue(Arc<str>),
}

struct NodeLifecycle {
    writer: Writer,
    recorder: Recorder,
    monitor: Monitor,
    /// How often the API was unavailable for a while.
    outages: Arc<AtomicU64>,
    /// By uid.
    node_failures: Failures<Arc<str>>,
    pod_failures: Failures<Arc<str>>,
}

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    settings: Settings,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut watches = Watches::default();
    watches.add("nodes", informers.nodes.subscribe(), |update| {
        Event::Node(update.map(|node| view::node(&node)))
    });
    watches.add("node leases", informers.node_leases.subscribe(), |update| {
        Event::Lease(update.map(|lease| renewed(&lease)))
    });
    watches.add("pods", informers.pods.subscribe(), |update| {
        Event::Pod(update.map(|pod| observed(&pod)))
    });
    let (writer, recorder, recording) = setup.recording_writer(client, "node-controller");
    let controller = NodeLifecycle {
        writer,
        recorder,
        monitor: Monitor::new(settings),
        outages: Arc::default(),
        node_failures: Failures::new(RETRY),
        pod_failures: Failures::new(RETRY),
    };
    frame::run_with(controller, watches, recording, setup)
}

fn renewed(lease: &Lease) -> (String, Option<i64>) {
    let name = lease.metadata.name.clone().unwrap_or_default();
    let time = lease.spec.renew_time.as_ref();
    (name, time.map(|time| time.0.as_microsecond()))
}

fn observed(pod: &Pod) -> ObservedPod {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default().into();
    (uid, view::node_pod(pod, pod.status.is_ready()))
}

impl Controller for NodeLifecycle {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "node lifecycle controller"
    }

    fn handle(&mut self, event: Event, cx: &mut Context<Self>) {
        let now = cx.now();
        match event {
            Event::Node(Update::Applied(node)) => self.monitor.on_node(now, node),
            Event::Node(Update::Gone(id)) => {
                self.monitor.on_node_deleted(&id.name);
                self.node_failures.reset(&id.uid);
            }
            Event::Lease(Update::Applied((name, renewed))) => {
                self.monitor.on_lease(now, &name, renewed);
            }
            Event::Lease(Update::Gone(_)) => {}
            Event::Pod(Update::Applied((_, Some(pod)))) => self.monitor.on_pod(pod),
            Event::Pod(Update::Applied((uid, None))) => self.monitor.on_pod_deleted(&uid),
            Event::Pod(Update::Gone(id)) => {
                self.monitor.on_pod_deleted(&id.uid);
                self.pod_failures.reset(&id.uid);
            }
        }
    }

    fn synced(&mut self, cx: &mut Context<Self>) {
        self.monitor.on_synced(cx.now());
    }

    /// Nodes get a full grace period, as from a controller that starts: what kept this process from leading, such as a full
    /// store, may have kept them from renewing their leases.
    fn elected(&mut self, cx: &mut Context<Self>) {
        self.outages.fetch_add(1, Ordering::SeqCst);
        self.monitor.restart_grace_periods(cx.now());
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        for action in self.monitor.take_actions(cx.now()) {
            self.start_action(action, cx);
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Written((name, uid), version) => {
                self.node_failures.reset(&uid);
                self.monitor.on_written(&name, &uid, &version);
            }
            Outcome::Failed(node) => {
                let delay = self.node_failures.next_delay(node.1.clone());
                cx.after(delay, Outcome::RetryDue(node));
            }
            Outcome::RetryDue((name, uid)) => self.monitor.retry_node(&name, &uid),
            Outcome::ApiWasUnavailable((name, uid)) => {
                self.monitor.restart_grace_periods(cx.now());
                self.monitor.retry_node(&name, &uid);
            }
            Outcome::PodMarked(uid) => self.pod_failures.reset(&uid),
            Outcome::PodNotMarked(uid) => {
                let delay = self.pod_failures.next_delay(uid.clone());
                cx.after(delay, Outcome::PodRetryDue(uid));
            }
            Outcome::PodRetryDue(uid) => self.monitor.retry_pod(&uid),
        }
    }

    fn next_deadline(&self, _: &Clock) -> Option<Monotonic> {
        self.monitor.next_deadline()
    }
}

impl NodeLifecycle {
    fn start_action(&self, action: Action, cx: &mut Context<Self>) {
        let writer = self.writer.clone();
        match action {
            Action::SetUnknown {
                node,
                created,
                conditions,
            } => {
                let outages = self.outages.clone();
                let known = outages.load(Ordering::SeqCst);
                cx.spawn(async move {
                    let key = (node.name.clone(), node.uid.clone());
                    if outages.load(Ordering::SeqCst) != known {
                        // Decided before it was known that no node could renew its lease.
                        return Outcome::Failed(key);
                    }
                    let written = set_unknown(&writer, &node, created, &conditions).await;
                    let Some(written) = written else {
                        let (next, order) = (known + 1, Ordering::SeqCst);
                        let first = outages.compare_exchange(known, next, order, order);
                        return match first {
                            Ok(_) => Outcome::ApiWasUnavailable(key),
                            Err(_) => Outcome::Failed(key),
                        };
                    };
                    written_outcome(key, written)
                });
            }
            Action::SetTaints { node, change } => cx.spawn(async move {
                let written = writes::set_taints(&writer, &node, &change).await;
                written_outcome((node.name, node.uid), written)
            }),
            Action::MarkNotReady(pod) => {
                let recorder = self.recorder.clone();
                cx.spawn(async move { mark_not_ready(&writer, &recorder, pod).await });
            }
            Action::RecordEvent { name, uid, event } => {
                writes::record_on_node(&self.recorder, &name, &uid, event);
            }
        }
    }
}

/// Sets the conditions of a node to `Unknown`. If the API is unavailable, waits until it answers again, and returns
/// nothing.
async fn set_unknown(
    writer: &Writer,
    node: &NodeVersion,
    created: Option<Timestamp>,
    conditions: &[UnknownCondition],
) -> Option<Result<Written, Failure>> {
    tracing::info!("node {} has not renewed its lease in time", node.name);
    match writes::set_unknown(writer, node, created, conditions).await {
        Err(failure) if writes::is_outage(writer, &failure).await => {
            tracing::warn!("the API is unavailable, so no node is marked Unknown: {failure}");
            writes::until_available(writer, &node.name).await;
            None
        }
        written => Some(written),
    }
}

fn written_outcome(node: NodeKey, written: Result<Written, Failure>) -> Outcome {
    match written {
        Ok(written) => Outcome::Written(node, written.resource_version.into()),
        Err(failure) => {
            if !failure.is(404) && !failure.is(409) {
                tracing::warn!("writing node {} failed: {failure}", node.0);
            }
            Outcome::Failed(node)
        }
    }
}

async fn mark_not_ready(writer: &Writer, recorder: &Recorder, pod: Identity) -> Outcome {
    match writes::mark_not_ready(writer, &pod).await {
        Ok(marked) => {
            if marked {
                let note = Note::new(true, "NodeNotReady", "Node is not ready");
                writes::record_on_pod(recorder, &pod, note);
            }
            Outcome::PodMarked(pod.uid)
        }
        Err(failure) => {
            if !failure.is(409) {
                tracing::warn!("marking pod {pod} not ready failed: {failure}");
            }
            Outcome::PodNotMarked(pod.uid)
        }
    }
}

#[cfg(test)]
mod tests;

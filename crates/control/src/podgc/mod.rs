//! The pod garbage collector: deletes the pods that [`kennel_core::garbage::pods`] finds orphaned, unbound while being
//! deleted, on a node out of service, or terminated in too great a number.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Failures, Policy};
use kennel_client::clock::Clock;
use kennel_client::write::{Call, Content, Writer};
use kennel_client::{Error, api, clock};
use kennel_core::garbage::pods::{Deletion, DeletionReason, PodFacts, Pods, TERMINATED_MAX};
use kennel_core::lifecycle::taints::OUT_OF_SERVICE;
use kennel_types::{Condition, ConditionType, Identity, Monotonic, Node, Timestamp};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use crate::informers::{Informers, Pod};
use crate::nodes;

/// Before a pod whose deletion failed is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_mins(1));

enum Event {
    Pod(Update<PodFacts>),
    /// The node's name, and whether it is out of service.
    Node(Update<(Arc<str>, bool)>),
}

enum Outcome {
    /// The result of a GET: whether the node is gone, or nothing if the API gave no clear answer.
    NodeChecked(Arc<str>, Option<bool>),
    Deleted,
    Failed(Deletion),
    RetryDue(Deletion),
}

struct PodGc {
    writer: Writer,
    pods: Pods,
    /// By uid.
    failures: Failures<Arc<str>>,
}

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut watches = Watches::default();
    watches.add("pods", informers.pods.subscribe(), |update| {
        Event::Pod(update.map(|pod| facts(&pod)))
    });
    watches.add("nodes", informers.nodes.subscribe(), |update| {
        Event::Node(update.map(|node| (node.name_any().into(), is_out_of_service(&node))))
    });
    let controller = PodGc {
        writer: setup.writer(client),
        pods: Pods::new(TERMINATED_MAX),
        failures: Failures::new(RETRY),
    };
    frame::run(controller, watches, setup)
}

/// Whether a node has the out-of-service taint and is not ready.
fn is_out_of_service(node: &Node) -> bool {
    let ready = node.status.condition(&ConditionType::Ready);
    let mut taints = node.spec.taints.iter();
    !ready.is_some_and(Condition::is_true) && taints.any(|taint| taint.key == OUT_OF_SERVICE)
}

fn facts(pod: &Pod) -> PodFacts {
    let meta = &pod.metadata;
    let node = pod.spec.node_name.as_deref().filter(|n| !n.is_empty());
    let created = meta.creation_timestamp.as_ref();
    PodFacts {
        id: Identity::of(meta),
        node: node.map(Into::into),
        created: created.map_or(Timestamp::EPOCH, Timestamp::from),
        deleting: meta.deletion_timestamp.is_some(),
        terminated: pod.status.phase.is_terminal(),
    }
}

impl Controller for PodGc {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "pod garbage collector"
    }

    fn handle(&mut self, event: Event, cx: &mut Context<Self>) {
        let now = cx.now();
        match event {
            Event::Pod(Update::Applied(pod)) => self.pods.pod(now, pod),
            Event::Pod(Update::Gone(id)) => {
                self.pods.pod_gone(&id.uid);
                self.failures.reset(&id.uid);
            }
            Event::Node(Update::Applied((name, out))) => self.pods.node(&name, out),
            Event::Node(Update::Gone(id)) => self.pods.node_gone(now, &id.name),
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        for node in self.pods.overdue_nodes(cx.now()) {
            let writer = self.writer.clone();
            cx.spawn(async move {
                let gone = is_gone(&writer, &node).await;
                Outcome::NodeChecked(node, gone)
            });
        }
        for deletion in self.pods.take_deletions() {
            let writer = self.writer.clone();
            cx.spawn(async move {
                if delete(&writer, &deletion).await {
                    Outcome::Deleted
                } else {
                    Outcome::Failed(deletion)
                }
            });
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        let now = cx.now();
        match outcome {
            Outcome::NodeChecked(node, Some(true)) => self.pods.node_is_gone(now, &node),
            Outcome::NodeChecked(node, Some(false) | None) => {
                self.pods.node_still_missing(now, &node);
            }
            Outcome::Deleted => {}
            Outcome::Failed(deletion) => {
                let delay = self.failures.next_delay(deletion.pod.id.uid.clone());
                cx.after(delay, Outcome::RetryDue(deletion));
            }
            Outcome::RetryDue(deletion) => self.pods.deletion_failed(&deletion),
        }
    }

    fn next_deadline(&self, _: &Clock) -> Option<Monotonic> {
        self.pods.next_deadline()
    }
}

/// Whether a node is gone; nothing if the API gave no clear answer.
async fn is_gone(writer: &Writer, node: &str) -> Option<bool> {
    let exists = nodes::exists(writer, node).await;
    let exists =
        exists.inspect_err(|failure| tracing::warn!("getting node {node} failed: {failure}"));
    exists.ok().map(|exists| !exists)
}

/// Deletes a pod without a grace period. Sets the phase of one that has not terminated to `Failed` first. Returns false
/// if it has to be tried again.
async fn delete(writer: &Writer, deletion: &Deletion) -> bool {
    let (pod, uid) = (&deletion.pod.id, &deletion.pod.id.uid);
    let path = api::pod_path(pod);
    tracing::info!("deleting pod {pod}: {}", describe(deletion.reason));
    if !deletion.pod.terminated {
        let patch = failed(uid, deletion.reason);
        let call = Call::patch(format!("{path}/status"), Content::Strategic, &patch);
        match writer.send(&call).await {
            Err(failure) if failure.is(404) || failure.is(409) => return true,
            Err(failure) => {
                tracing::warn!("marking pod {pod} as failed failed: {failure}");
                return false;
            }
            Ok(_) => {}
        }
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        "preconditions": {"uid": &**uid},
    });
    let call = Call {
        body: options.to_string(),
        ..Call::delete(path, uid)
    };
    match writer.send(&call).await {
        Err(failure) if !failure.is(404) && !failure.is(409) => {
            tracing::warn!("deleting pod {pod} failed: {failure}");
            false
        }
        _ => true,
    }
}

fn describe(reason: DeletionReason) -> &'static str {
    match reason {
        DeletionReason::NodeGone => "its node no longer exists",
        DeletionReason::Unbound => "it is being deleted and is bound to no node",
        DeletionReason::OutOfService => "its node is out of service",
        DeletionReason::TooMany => "too many terminated pods",
    }
}

/// The status patch of a pod that did not terminate by itself.
fn failed(uid: &str, reason: DeletionReason) -> serde_json::Value {
    let mut status = json!({"phase": "Failed"});
    if reason == DeletionReason::NodeGone {
        status["conditions"] = json!([{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastTransitionTime": clock::now_rfc3339(),
        }]);
    }
    json!({"metadata": {"uid": uid}, "status": status})
}

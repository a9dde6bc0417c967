//! The pod garbage collector: deletes the pods that [`kennel_core::garbage::pods`] finds to be nobody's.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::{Call, Content, Writer};
use kennel_client::{Error, api, clock};
use kennel_core::garbage::pods::{Doomed, ENDED_MAX, PodFacts, Pods, Why};
use kennel_core::lifecycle::taints::OUT_OF_SERVICE;
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::informers::Informers;
use crate::shape::{Node, Pod};

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(5);

enum Seen {
    Pod(Change<PodFacts>),
    /// Which, and whether it is out of service.
    Node(Change<(Arc<str>, bool)>),
}

enum Ended {
    /// A node was asked for: is it gone, if that could be told?
    Node(Arc<str>, Option<bool>),
    Deleted,
    Failed(Doomed),
    Retry(Doomed),
}

struct Controller {
    writer: Writer,
    pods: Pods,
    work: Work<Ended>,
    /// Pods and nodes that have not all been seen yet.
    unsynced: (bool, bool),
}

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let pods = informers.pods();
    let pods = pods.map(|c| Seen::Pod(c.map(|pod| facts(&pod))));
    let nodes = informers.nodes();
    let nodes =
        nodes.map(|c| Seen::Node(c.map(|node| (node.name_any().into(), is_out_of_service(&node)))));
    let seen = stream::select_all([pods.boxed(), nodes.boxed()]).boxed();
    let controller = Controller {
        writer: Writer::new(client, Fence::open()),
        pods: Pods::new(ENDED_MAX),
        work: Work::new(WRITES_AT_ONCE),
        unsynced: (true, true),
    };
    controller.run(seen, stop)
}

/// Is a node said to be down for good, and not ready?
fn is_out_of_service(node: &Node) -> bool {
    let mut conditions = node.status.conditions.iter();
    let is_ready = conditions.any(|c| c.r#type == "Ready" && c.status == "True");
    !is_ready
        && node
            .spec
            .taints
            .iter()
            .any(|taint| taint.key == OUT_OF_SERVICE)
}

fn facts(pod: &Pod) -> PodFacts {
    let meta = &pod.metadata;
    let node = pod.spec.node_name.as_deref().filter(|n| !n.is_empty());
    let created = meta.creation_timestamp.as_ref();
    PodFacts {
        namespace: meta.namespace.as_deref().unwrap_or_default().into(),
        name: meta.name.as_deref().unwrap_or_default().into(),
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        node: node.map(Into::into),
        created: created.map_or(0, |time| time.0.as_second()),
        deleting: meta.deletion_timestamp.is_some(),
        ended: matches!(pod.status.phase.as_deref(), Some("Failed" | "Succeeded")),
    }
}

impl Controller {
    async fn run(
        mut self,
        mut seen: BoxStream<'static, Seen>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        tracing::info!("pod garbage collector started");
        loop {
            let deadline = self.pods.next_deadline().filter(|_| self.is_synced());
            tokio::select! {
                () = stop.cancelled() => break,
                change = seen.next() => match change {
                    Some(change) => self.saw(change),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("pods and nodes")),
                },
                ended = self.work.next() => self.ended(ended),
                () = clock::sleep_until(deadline) => {}
            }
            if self.is_synced() {
                self.act();
            }
        }
        self.work.finish().await;
        tracing::info!("pod garbage collector stopped");
        Ok(())
    }

    fn is_synced(&self) -> bool {
        self.unsynced == (false, false)
    }

    fn saw(&mut self, seen: Seen) {
        let now = clock::now_ms();
        match seen {
            Seen::Pod(Change::Applied(pod)) => self.pods.pod(now, pod),
            Seen::Pod(Change::Gone(id)) => self.pods.pod_gone(&id.uid),
            Seen::Pod(Change::Synced) => self.unsynced.0 = false,
            Seen::Node(Change::Applied((name, out))) => self.pods.node(&name, out),
            Seen::Node(Change::Gone(id)) => self.pods.node_gone(now, &id.name),
            Seen::Node(Change::Synced) => self.unsynced.1 = false,
        }
    }

    fn act(&mut self) {
        for node in self.pods.overdue_nodes(clock::now_ms()) {
            let writer = self.writer.clone();
            self.work.push(async move {
                let gone = is_gone(&writer, &node).await;
                Ended::Node(node, gone)
            });
        }
        for doomed in self.pods.take() {
            let writer = self.writer.clone();
            self.work.push(async move {
                if delete(&writer, &doomed).await {
                    Ended::Deleted
                } else {
                    Ended::Failed(doomed)
                }
            });
        }
    }

    fn ended(&mut self, ended: Ended) {
        let now = clock::now_ms();
        match ended {
            Ended::Node(node, Some(true)) => self.pods.node_is_gone(now, &node),
            Ended::Node(node, Some(false) | None) => self.pods.node_still_missing(now, &node),
            Ended::Deleted => {}
            Ended::Failed(doomed) => self.work.later(RETRY, Ended::Retry(doomed)),
            Ended::Retry(doomed) => self.pods.failed(&doomed),
        }
    }
}

/// Is a node gone? Nothing, if nobody could tell.
async fn is_gone(writer: &Writer, node: &str) -> Option<bool> {
    let path = format!("{}/{node}", api::cluster_path("nodes"));
    match writer.send(&Call::get(path)).await {
        Ok(_) => Some(false),
        Err(failure) if failure.is(404) && failure.reason == "NotFound" => Some(true),
        Err(failure) => {
            tracing::warn!("looking for node {node} failed: {failure}");
            None
        }
    }
}

/// Deletes a pod at once; one that nobody will finish is first said to have failed.
async fn delete(writer: &Writer, doomed: &Doomed) -> bool {
    let PodFacts {
        namespace,
        name,
        uid,
        ended,
        ..
    } = &doomed.pod;
    let path = format!("{}/{name}", api::core_path(namespace, "pods"));
    tracing::info!("deleting pod {namespace}/{name}: {}", words(doomed.why));
    if !ended {
        let patch = failed(uid, doomed.why);
        let call = Call::patch(format!("{path}/status"), Content::Strategic, &patch);
        match writer.send(&call).await {
            Err(failure) if failure.is(404) || failure.is(409) => return true,
            Err(failure) => {
                tracing::warn!("marking pod {namespace}/{name} as failed failed: {failure}");
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
            tracing::warn!("deleting pod {namespace}/{name} failed: {failure}");
            false
        }
        _ => true,
    }
}

fn words(why: Why) -> &'static str {
    match why {
        Why::NodeGone => "its node no longer exists",
        Why::Unbound => "no node has it",
        Why::OutOfService => "its node is out of service",
        Why::TooMany => "too many have ended",
    }
}

/// What is said of a pod that goes because its node did.
fn failed(uid: &str, why: Why) -> serde_json::Value {
    let mut status = json!({"phase": "Failed"});
    if why == Why::NodeGone {
        status["conditions"] = json!([{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastTransitionTime": clock::now_rfc3339(),
        }]);
    }
    json!({"metadata": {"uid": uid}, "status": status})
}

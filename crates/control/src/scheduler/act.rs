//! The scheduler's writes, each from its beginning to a certain end.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_client::{api, clock};
use kennel_core::schedule::PodRef;
use serde_json::{Value, json};

use super::NAME;

/// How long to wait before it is asked again what came of a binding; doubled each time.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// But not longer than this.
const ASK_AGAIN_MAX: Duration = Duration::from_secs(10);

/// What came of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The pod is there.
    Yes,
    /// It is not, and why. Whoever knows better (it is gone, or elsewhere) is the watch.
    No(Failure),
}

/// What to write about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// Why it fits nowhere, the node it is nominated for, and since when it is not scheduled.
    Unschedulable(String, Option<Arc<str>>, Option<i64>),
    /// That it is nominated for no node any more.
    NotNominated,
}

fn path(pod: &PodRef) -> String {
    format!("{}/{}", api::core_path(&pod.namespace, "pods"), pod.name)
}

/// Binds a pod. If it may have been carried out though it failed, the pod itself is asked.
pub(super) async fn bind(writer: &Writer, pod: &PodRef, node: &str) -> Bound {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": &*pod.namespace, "name": &*pod.name, "uid": &*pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let call = Call::create(format!("{}/binding", path(pod)), body.to_string());
    let Err(failure) = writer.send(&call).await else {
        return Bound::Yes;
    };
    if (failure.unsure || failure.repeated) && is_on(writer, pod, node).await {
        return Bound::Yes;
    }
    Bound::No(failure)
}

/// Is the pod on this node? Asks until there is an answer: a guess would give its room away, or keep it.
async fn is_on(writer: &Writer, pod: &PodRef, node: &str) -> bool {
    let mut pause = ASK_AGAIN;
    loop {
        match writer
            .send(&Call::get(path(pod)))
            .await
            .and_then(|answer| answer.tree())
        {
            Ok(found) => {
                let same = found["metadata"]["uid"].as_str() == Some(&*pod.uid);
                return same && found["spec"]["nodeName"].as_str() == Some(node);
            }
            Err(failure) if !failure.unsure => return false,
            Err(failure) => {
                tracing::debug!(
                    "pod {}/{} does not answer: {failure}",
                    pod.namespace,
                    pod.name
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(ASK_AGAIN_MAX);
            }
        }
    }
}

/// Writes into a pod's status.
pub(super) async fn tell(writer: &Writer, pod: &PodRef, telling: &Telling) -> Result<(), Failure> {
    let status = match telling {
        Telling::NotNominated => json!({"nominatedNodeName": null}),
        Telling::Unschedulable(message, nominated, since) => json!({
            "nominatedNodeName": nominated.as_deref(),
            "conditions": [condition("PodScheduled", "False", "Unschedulable", message, *since)],
        }),
    };
    patch_status(writer, pod, status).await
}

/// Marks a pod as a victim, and deletes it. That it is not there any more is fine; if another has its
/// name, the watch will say so before it is tried again.
pub(super) async fn evict(writer: &Writer, victim: &PodRef) -> Result<(), Failure> {
    let message = format!("{NAME}: preempting to accommodate a higher priority pod");
    let reason = "PreemptionByScheduler";
    let condition = condition("DisruptionTarget", "True", reason, &message, None);
    let marked = patch_status(writer, victim, json!({ "conditions": [condition] })).await;
    let delete = Call::delete(path(victim), &victim.uid);
    let deleted = match marked {
        Ok(()) => writer.send_certainly(&delete).await.map(drop),
        Err(failure) => Err(failure),
    };
    match deleted {
        Err(failure) if failure.is(404) => Ok(()),
        result => result,
    }
}

async fn patch_status(writer: &Writer, pod: &PodRef, status: Value) -> Result<(), Failure> {
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": status});
    let call = Call::patch(format!("{}/status", path(pod)), Content::Strategic, &patch);
    writer.send_certainly(&call).await.map(drop)
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, since: Option<i64>) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": null,
        "lastTransitionTime": since.map_or_else(clock::now_rfc3339, clock::rfc3339),
    })
}

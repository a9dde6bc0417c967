//! The scheduler's writes. Each is repeated until it is certain how it ended.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Backoff, Policy};
use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_client::{api, clock};
use kennel_types::{Identity, Timestamp};
use serde_json::{Value, json};

use super::NAME;

/// Before a pod whose binding may have succeeded is read again.
const READ_RETRY: Policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(10));

/// Whether a pod was bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Yes,
    /// If the pod was deleted or bound to another node, the watch delivers that.
    No(Failure),
}

/// A change of a pod's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusChange {
    /// The pod fits no node.
    Unschedulable {
        message: String,
        /// The node where lower-priority pods are preempted for it.
        nominated: Option<Arc<str>>,
        /// Since when it is unschedulable, if it was before.
        since: Option<Timestamp>,
    },
    /// Clear the nominated node.
    NotNominated,
}

/// Binds a pod. After a failure that may have been applied, reads the pod to find out.
pub(super) async fn bind(writer: &Writer, pod: &Identity, node: &str) -> Bound {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": &*pod.namespace, "name": &*pod.name, "uid": &*pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let call = Call::create(format!("{}/binding", api::pod_path(pod)), body.to_string());
    let Err(failure) = writer.send(&call).await else {
        return Bound::Yes;
    };
    if (failure.unsure || failure.repeated) && is_on(writer, pod, node).await {
        return Bound::Yes;
    }
    Bound::No(failure)
}

/// Whether the pod is bound to this node. Retries until the API answers: a guess would leak the pod's resources on the
/// node, or give them away twice.
async fn is_on(writer: &Writer, pod: &Identity, node: &str) -> bool {
    let mut retry = Backoff::new(READ_RETRY);
    loop {
        match writer
            .send(&Call::get(api::pod_path(pod)))
            .await
            .and_then(|answer| answer.tree())
        {
            Ok(found) => {
                let same = found["metadata"]["uid"].as_str() == Some(&*pod.uid);
                return same && found["spec"]["nodeName"].as_str() == Some(node);
            }
            Err(failure) if !failure.unsure => return false,
            Err(failure) => {
                tracing::debug!("reading pod {pod} failed: {failure}");
                retry.sleep().await;
            }
        }
    }
}

pub(super) async fn write_status(
    writer: &Writer,
    pod: &Identity,
    change: &StatusChange,
) -> Result<(), Failure> {
    let status = match change {
        StatusChange::NotNominated => json!({"nominatedNodeName": null}),
        StatusChange::Unschedulable {
            message,
            nominated,
            since,
        } => json!({
            "nominatedNodeName": nominated.as_deref(),
            "conditions": [condition("PodScheduled", "False", "Unschedulable", message, *since)],
        }),
    };
    patch_status(writer, pod, status).await
}

/// Sets a victim's `DisruptionTarget` condition, and deletes it. 404 counts as success. 409 means that another pod has
/// its name; the watch delivers the deletion before the retry.
pub(super) async fn evict(writer: &Writer, victim: &Identity) -> Result<(), Failure> {
    let message = format!("{NAME}: preempting to accommodate a higher priority pod");
    let reason = "PreemptionByScheduler";
    let condition = condition("DisruptionTarget", "True", reason, &message, None);
    let marked = patch_status(writer, victim, json!({ "conditions": [condition] })).await;
    let delete = Call::delete(api::pod_path(victim), &victim.uid);
    let deleted = match marked {
        Ok(()) => writer.send_idempotent(&delete).await.map(drop),
        Err(failure) => Err(failure),
    };
    match deleted {
        Err(failure) if failure.is(404) => Ok(()),
        result => result,
    }
}

async fn patch_status(writer: &Writer, pod: &Identity, status: Value) -> Result<(), Failure> {
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": status});
    let call = Call::patch(
        format!("{}/status", api::pod_path(pod)),
        Content::Strategic,
        &patch,
    );
    writer.send_idempotent(&call).await.map(drop)
}

fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    since: Option<Timestamp>,
) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": null,
        "lastTransitionTime": since.map_or_else(clock::now_rfc3339, |since| since.to_string()),
    })
}

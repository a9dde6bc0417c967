//! Writes to nodes and pods. Each names the uid and, where it depends on what was observed, the resource version.

use kennel_client::api;
use kennel_client::backoff::Backoff;
use kennel_client::clock;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::write::{Call, Content, Failure, Writer, Written};
use kennel_core::lifecycle::conditions::UnknownCondition;
use kennel_core::lifecycle::monitor::{NodeEvent, NodeVersion};
use kennel_core::lifecycle::taints::TaintChange;
use kennel_types::{Identity, Timestamp};
use serde_json::{Value, json};

use super::RETRY;
use crate::informers::Pod;

/// Sets conditions of a node to `Unknown`.
pub(super) async fn set_unknown(
    writer: &Writer,
    node: &NodeVersion,
    created: Option<Timestamp>,
    conditions: &[UnknownCondition],
) -> Result<Written, Failure> {
    let now = clock::now_rfc3339();
    let condition = |unknown: &UnknownCondition| {
        let mut condition = json!({
            "type": unknown.r#type.as_str(), "status": "Unknown", "reason": unknown.reason(),
            "message": unknown.message(), "lastTransitionTime": now,
        });
        if unknown.never_reported {
            condition["lastHeartbeatTime"] = json!(created);
        }
        condition
    };
    let conditions: Value = conditions.iter().map(condition).collect();
    let patch = json!({
        "metadata": {"uid": &*node.uid, "resourceVersion": &*node.version},
        "status": {"conditions": conditions},
    });
    let path = format!("{}/status", api::node_path(&node.name));
    let call = Call::patch(path, Content::Strategic, &patch);
    Ok(writer.send(&call).await?.written())
}

/// Whether the API could not store this for a reason that also keeps nodes from renewing their leases.
pub(super) async fn is_outage(writer: &Writer, failure: &Failure) -> bool {
    failure.pushes_back() || failure.is(500) && !is_ready(writer).await
}

/// Waits until the API answers again, even with an error, and can store writes: one whose storage is full answers reads.
pub(super) async fn until_available(writer: &Writer, name: &str) {
    let mut retry = Backoff::new(RETRY);
    loop {
        retry.sleep().await;
        match writer.send(&Call::get(api::node_path(name))).await {
            Err(failure) if failure.pushes_back() => {}
            _ if !is_ready(writer).await => {}
            _ => return,
        }
    }
}

/// Whether the API calls itself ready. One that does not say counts as ready.
async fn is_ready(writer: &Writer) -> bool {
    let failed = |failure: Failure| failure.is(500) || failure.pushes_back();
    !writer.send(&Call::get("/readyz")).await.is_err_and(failed)
}

/// Replaces the taints of a node.
pub(super) async fn set_taints(
    writer: &Writer,
    node: &NodeVersion,
    change: &TaintChange,
) -> Result<Written, Failure> {
    let now = clock::now_rfc3339();
    let keep = change.keep.iter().map(|kept| json!(kept));
    let add = change.add.iter().map(|added| {
        let mut taint = json!(added);
        taint["timeAdded"] = now.as_str().into();
        taint
    });
    let taints: Vec<Value> = keep.chain(add).collect();
    let taints = (!taints.is_empty()).then_some(taints);
    let patch = json!({
        "metadata": {"uid": &*node.uid, "resourceVersion": &*node.version},
        "spec": {"taints": taints},
    });
    let call = Call::patch(api::node_path(&node.name), Content::Merge, &patch);
    Ok(writer.send(&call).await?.written())
}

/// Sets a pod's `Ready` condition to `False`. Returns false if it was not ready, or is gone.
pub(super) async fn mark_not_ready(writer: &Writer, pod: &Identity) -> Result<bool, Failure> {
    let found = writer.send(&Call::get(api::pod_path(pod))).await;
    let found = match found {
        Err(failure) if failure.is(404) => return Ok(false),
        found => found?.tree()?,
    };
    let read: Pod = serde_json::from_value(found).unwrap_or_default();
    if read.metadata.uid.as_deref() != Some(&*pod.uid) || !read.status.is_ready() {
        return Ok(false);
    }
    let patch = json!({
        "metadata": {"uid": &*pod.uid, "resourceVersion": read.metadata.resource_version},
        "status": {"conditions": [{
            "type": "Ready", "status": "False", "lastTransitionTime": clock::now_rfc3339(),
        }]},
    });
    let path = format!("{}/status", api::pod_path(pod));
    let call = Call::patch(path, Content::Strategic, &patch);
    match writer.send(&call).await {
        Err(failure) if failure.is(404) => Ok(false),
        answer => answer.map(|_| true),
    }
}

/// Sets a pod's `DisruptionTarget` condition, and deletes the pod. 404 counts as success. 409 means that another pod
/// has its name; the watch delivers the deletion before the retry.
pub(super) async fn evict(writer: &Writer, pod: &Identity) -> Result<(), Failure> {
    let patch = json!({
        "metadata": {"uid": &*pod.uid},
        "status": {"conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": clock::now_rfc3339(),
        }]},
    });
    let path = format!("{}/status", api::pod_path(pod));
    let marked = writer
        .send(&Call::patch(path, Content::Strategic, &patch))
        .await;
    let deleted = match marked {
        Ok(_) => {
            writer
                .send(&Call::delete(api::pod_path(pod), &pod.uid))
                .await
        }
        failed => failed,
    };
    match deleted {
        Err(failure) if !failure.is(404) => Err(failure),
        _ => Ok(()),
    }
}

/// Emits an event on a node.
pub(super) fn record_on_node(recorder: &Recorder, name: &str, uid: &str, event: NodeEvent) {
    let (reason, message) = match event {
        NodeEvent::Registered => (
            "RegisteredNode",
            format!("Node {name} event: Registered Node {name} in Controller"),
        ),
        NodeEvent::Removed => (
            "RemovingNode",
            format!("Node {name} event: Removing Node {name} from Controller"),
        ),
        NodeEvent::NotReady => (
            "NodeNotReady",
            format!("Node {name} status is now: NodeNotReady"),
        ),
    };
    let about = Reference::new("v1", "Node", &Identity::new("", name, uid));
    recorder.emit(about, Note::new(false, reason, message));
}

/// Emits an event on a pod.
pub(super) fn record_on_pod(recorder: &Recorder, pod: &Identity, note: Note) {
    recorder.emit(Reference::new("v1", "Pod", pod), note);
}

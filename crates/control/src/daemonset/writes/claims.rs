//! Adopts and releases pods and revisions (rules 3.2.3, 3.2.5 and 4.1).

use kennel_client::api;
use kennel_client::write::{Call, Content, Writer};
use kennel_core::daemonset::event::{Answer, Identity};
use kennel_core::daemonset::owner_reference;
use serde_json::{Value, json};

use super::{Failed, Target, send};

/// Makes the DaemonSet the controller of an object, unless the DaemonSet is deleted or being deleted.
pub(super) async fn adopt(
    writer: &Writer,
    set: &Identity,
    object: &Target<'_>,
) -> Result<Answer, Failed> {
    check_alive(set, &live(writer, set).await?)?;
    let owner = owner_reference(&set.name, &set.uid);
    let patch = json!({"metadata": {"uid": object.uid, "ownerReferences": [owner]}});
    let call = Call::patch(object.path.as_str(), Content::Strategic, &patch);
    send(writer, &call, |failure| failure.is(404)).await
}

/// Removes the DaemonSet from an object's owners. 404 and 422 (no such owner, or another uid) count as success.
pub(super) async fn release(
    writer: &Writer,
    set: &Identity,
    object: &Target<'_>,
) -> Result<Answer, Failed> {
    let owner = json!({"$patch": "delete", "uid": &*set.uid});
    let patch = json!({"metadata": {"uid": object.uid, "ownerReferences": [owner]}});
    let call = Call::patch(object.path.as_str(), Content::Strategic, &patch);
    send(writer, &call, |failure| failure.is(404) || failure.is(422)).await
}

/// Reads the DaemonSet from the API.
pub(super) async fn live(writer: &Writer, set: &Identity) -> Result<Value, Failed> {
    let answer = writer.send(&Call::get(path(set))).await?;
    Ok(answer.tree()?)
}

pub(super) fn path(set: &Identity) -> String {
    let collection = api::group_path("apps/v1", &set.namespace, "daemonsets");
    format!("{collection}/{}", set.name)
}

fn check_alive(set: &Identity, live: &Value) -> Result<(), Failed> {
    let metadata = &live["metadata"];
    let got = metadata["uid"].as_str().unwrap_or_default();
    if got != &*set.uid {
        return Err(Failed::refused(format!(
            "original DaemonSet {set} is gone: got uid {got}, wanted {}",
            set.uid
        )));
    }
    match metadata["deletionTimestamp"].as_str() {
        Some(at) => Err(Failed::refused(format!(
            "{set} has just been deleted at {at}"
        ))),
        None => Ok(()),
    }
}

//! Writes `ControllerRevision`s (rules 4.4 and 4.6.2).

use kennel_client::api;
use kennel_client::write::{self, Call, Content, Writer};
use kennel_core::daemonset::event::{Answer, FailureKind, Identity, Object};
use kennel_core::daemonset::history::Revision;
use kennel_core::rollout::state::Record;
use kennel_types::Reason;
use serde_json::json;

use super::{Failed, Target, target};
use crate::view;

pub(super) fn path<'a>(set: &Identity, revision: &'a Object) -> Target<'a> {
    target(&collection(set), revision)
}

fn collection(set: &Identity) -> String {
    api::group_path("apps/v1", &set.namespace, "controllerrevisions")
}

/// Creates a revision. If one with the same name and data exists, that is the revision.
pub(super) async fn create(
    writer: &Writer,
    set: &Identity,
    name: &str,
    data: &str,
    body: &str,
) -> Result<Answer, Failed> {
    let collection = collection(set);
    let failure = match writer
        .send_idempotent(&Call::create(collection.as_str(), body))
        .await
    {
        Ok(answer) => return read(&answer).map(Answer::Revision),
        Err(failure) => failure,
    };
    if !(failure.is(409) && failure.reason == Reason::AlreadyExists) {
        return Err(failure.into());
    }
    let holder = writer
        .send(&Call::get(format!("{collection}/{name}")))
        .await?;
    let holder = read(&holder)?;
    if &*holder.data == data {
        return Ok(Answer::Revision(holder));
    }
    Err(Failed::of_kind(FailureKind::NameTaken, failure.message))
}

/// Changes a revision's number. The patch leaves out the data, so that its bytes stay unchanged.
pub(super) async fn renumber(
    writer: &Writer,
    revision: &Target<'_>,
    number: i64,
) -> Result<Answer, Failed> {
    let patch = json!({"metadata": {"uid": revision.uid}, "revision": number});
    let call = Call::patch(revision.path.as_str(), Content::Merge, &patch);
    let answer = writer.send_idempotent(&call).await?;
    read(&answer).map(Answer::Revision)
}

/// Writes the verdict and state of a rollout, on condition that the revision has not changed.
pub(super) async fn write_record(
    writer: &Writer,
    revision: &Target<'_>,
    version: &str,
    record: &Record,
) -> Result<Answer, Failed> {
    let metadata = json!({
        "uid": revision.uid,
        "resourceVersion": version,
        "annotations": record.annotations(),
    });
    let patch = json!({ "metadata": metadata });
    let call = Call::patch(revision.path.as_str(), Content::Merge, &patch);
    let answer = writer.send(&call).await?;
    read(&answer).map(Answer::Revision)
}

fn read(answer: &write::Answer) -> Result<Revision, Failed> {
    let object = serde_json::from_slice(&answer.body).ok();
    let revision = object.as_ref().and_then(view::revision);
    revision.ok_or_else(|| {
        Failed::refused("the API's response is not a revision of a DaemonSet".to_owned())
    })
}

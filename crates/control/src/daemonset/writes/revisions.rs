//! Writes `ControllerRevision`s (rules 4.4 and 4.6.2).

use kennel_client::api;
use kennel_client::write::{self, Call, Content, Writer};
use kennel_core::daemonset::event::{Answer, FailureKind, Identity, Object};
use kennel_core::daemonset::history::Revision;
use kennel_core::rollout::VERDICT;
use kennel_core::rollout::state::{Record, Verdict};
use kennel_types::Reason;
use serde_json::{Value, json};

use super::{Failed, Target, target};
use crate::view;

/// What `kubectl rollout history` shows of a revision.
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// Begins a cause that the controller wrote.
const FAILED: &str = "rollout failed: ";

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
        Ok(answer) => return read(&answer).map(Box::new).map(Answer::Revision),
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
        return Ok(Answer::Revision(Box::new(holder)));
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
    read(&answer).map(Box::new).map(Answer::Revision)
}

/// Writes the verdict and state of a rollout, on condition that the revision has not changed.
pub(super) async fn write_record(
    writer: &Writer,
    revision: &Target<'_>,
    version: &str,
    record: &Record,
) -> Result<Answer, Failed> {
    let mut metadata = json!({
        "uid": revision.uid,
        "resourceVersion": version,
        "annotations": record.annotations(),
    });
    if record.verdict.is_none() {
        // A released target has none any more.
        metadata["annotations"][VERDICT] = Value::Null;
    }
    if may_change_cause(record) {
        let stored = writer.send(&Call::get(revision.path.as_str())).await?;
        let stored = stored.tree().unwrap_or_default();
        let given = stored["metadata"]["annotations"][CHANGE_CAUSE].as_str();
        if given.is_none_or(|given| given.starts_with(FAILED)) {
            metadata["annotations"][CHANGE_CAUSE] = json!(cause(record));
        }
    }
    let patch = json!({ "metadata": metadata });
    let call = Call::patch(revision.path.as_str(), Content::Merge, &patch);
    let answer = writer.send(&call).await?;
    read(&answer).map(Box::new).map(Answer::Revision)
}

/// The cause that `kubectl rollout history` shows is written with a failure, and removed by a retry (R9.2) or a release.
fn may_change_cause(record: &Record) -> bool {
    let retried = record.state.as_ref().is_some_and(|state| state.attempt > 1);
    retried || matches!(record.verdict, Some(Verdict::Failed) | None)
}

/// Why a revision has failed, if it has.
fn cause(record: &Record) -> Option<String> {
    let failed = record.verdict == Some(Verdict::Failed);
    let reason = record.state.as_ref().and_then(|s| s.reason.as_ref());
    failed.then(|| {
        let why = reason.map_or("no reason given", |reason| &reason.message);
        format!("{FAILED}{why}")
    })
}

fn read(answer: &write::Answer) -> Result<Revision, Failed> {
    let object = serde_json::from_slice(&answer.body).ok();
    let revision = object.as_ref().and_then(view::revision);
    revision.ok_or_else(|| {
        Failed::refused("the API's response is not a revision of a DaemonSet".to_owned())
    })
}

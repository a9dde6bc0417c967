//! The planner's writes as requests to the API.
//!
//! The planner decides when to retry. Requests are repeated here only to find out how one write ended: when a response
//! got lost, the same request is sent again. All writes are idempotent: they name a uid, a resource version or a generated
//! name.

mod claims;
mod config;
mod pending_names;
mod pods;
mod revisions;
mod status;
mod taints;

use kennel_client::write::{self, Writer};
use kennel_core::daemonset::event::{Answer, Failure, FailureKind, Identity, Object, Write};

pub(super) use pending_names::PendingNames;
pub(super) use status::{Status, count_collision, write_status};
pub(super) use taints::remove as remove_taint;

/// The cause of a 403 in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// A write that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    /// The API asked to slow down.
    pub(super) pushed_back: bool,
}

impl Failed {
    fn refused(message: String) -> Self {
        Self::of_kind(FailureKind::Refused, message)
    }

    fn is_not_found(&self) -> bool {
        self.failure.kind == FailureKind::NotFound
    }

    /// It is unknown whether the write was applied, and it must not be applied twice.
    fn of_unknown_outcome(mut self) -> Self {
        self.failure.kind = FailureKind::Unknown;
        self
    }

    fn of_kind(kind: FailureKind, message: String) -> Self {
        let failure = Failure {
            kind,
            message,
            retry_after: None,
        };
        Self {
            failure,
            pushed_back: false,
        }
    }
}

impl From<write::Failure> for Failed {
    fn from(failure: write::Failure) -> Self {
        let kind = if failure
            .causes
            .iter()
            .any(|cause| cause == NAMESPACE_TERMINATING)
        {
            FailureKind::NamespaceTerminating
        } else if failure.is(404) {
            FailureKind::NotFound
        } else {
            FailureKind::Refused
        };
        Self {
            pushed_back: failure.pushes_back(),
            ..Self::of_kind(kind, failure.message)
        }
    }
}

/// Performs any write except that of a status.
pub(super) async fn perform(
    writer: &Writer,
    names: &PendingNames,
    set: &Identity,
    write: Write,
) -> Result<Answer, Failed> {
    match write {
        Write::CreatePod {
            node,
            blueprint,
            before,
        } => {
            let body = |name: &str| blueprint.pod(&node, Some(name), before);
            pods::create(writer, names, set, body).await
        }
        Write::DeletePod(pod) => pods::delete(writer, &pods::path(set, &pod)).await,
        Write::AdoptPod(pod) => claims::adopt(writer, set, &pods::path(set, &pod)).await,
        Write::ReleasePod(pod) => claims::release(writer, set, &pods::path(set, &pod)).await,
        Write::RelabelPod { pod, hash } => label(writer, &pods::path(set, &pod), &hash).await,
        Write::CreateRevision { name, data, body } => {
            revisions::create(writer, set, &name, &data, &body).await
        }
        Write::RenumberRevision { revision, number } => {
            revisions::renumber(writer, &revisions::path(set, &revision), number).await
        }
        Write::LabelRevision { revision, hash } => {
            label(writer, &revisions::path(set, &revision), &hash).await
        }
        Write::WriteRecord {
            revision,
            version,
            record,
        } => {
            let path = revisions::path(set, &revision);
            revisions::write_record(writer, &path, &version, &record).await
        }
        Write::CopyConfig(copy) => config::copy(writer, set, &copy).await,
        Write::DeleteRevision(revision) => delete(writer, &revisions::path(set, &revision)).await,
        Write::AdoptRevision(revision) => {
            claims::adopt(writer, set, &revisions::path(set, &revision)).await
        }
        Write::ReleaseRevision(revision) => {
            claims::release(writer, set, &revisions::path(set, &revision)).await
        }
        Write::CountCollision { known } => count_collision(writer, set, known).await,
        Write::WriteStatus => unreachable!("a status is written by write_status"),
    }
}

/// An object's path, and the uid that it must have.
struct Target<'a> {
    path: String,
    uid: &'a str,
}

fn target<'a>(collection: &str, object: &'a Object) -> Target<'a> {
    Target {
        path: format!("{collection}/{}", object.name),
        uid: &object.uid,
    }
}

/// Sends a write whose answer is not read. Failures that are `harmless` count as success.
async fn send(
    writer: &Writer,
    call: &write::Call,
    harmless: impl Fn(&write::Failure) -> bool,
) -> Result<Answer, Failed> {
    match writer.send_idempotent(call).await {
        Err(failure) if !harmless(&failure) => Err(failure.into()),
        _ => Ok(Answer::Nothing),
    }
}

/// Deletes an object. 404 counts as success.
async fn delete(writer: &Writer, object: &Target<'_>) -> Result<Answer, Failed> {
    let call = write::Call::delete(object.path.as_str(), object.uid);
    send(writer, &call, |failure| failure.is(404)).await
}

/// Sets the hash label (rules 4.2 and 4.8).
async fn label(writer: &Writer, object: &Target<'_>, hash: &str) -> Result<Answer, Failed> {
    let labels = serde_json::json!({kennel_core::daemonset::HASH_LABEL: hash});
    let patch = serde_json::json!({"metadata": {"uid": object.uid, "labels": labels}});
    let call = write::Call::patch(object.path.as_str(), write::Content::Merge, &patch);
    send(writer, &call, |failure| failure.is(404)).await
}

#[cfg(test)]
mod tests;

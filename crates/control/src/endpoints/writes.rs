//! The writes of the endpoints controllers.

use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::endpoints::{Form, Operation, Outcome, Write};
use kennel_types::Reason;

const GROUP: &str = "discovery.k8s.io/v1";

#[derive(Clone)]
pub(super) struct Writers {
    pub(super) slices: Option<Writer>,
    pub(super) endpoints: Option<Writer>,
}

pub(super) async fn perform(writers: &Writers, write: &Write) -> Outcome {
    let (writer, collection) = match write.form {
        Form::Slice => {
            let path = api::group_path(GROUP, &write.namespace, "endpointslices");
            (&writers.slices, path)
        }
        Form::Endpoints => {
            let path = api::core_path(&write.namespace, "endpoints");
            (&writers.endpoints, path)
        }
    };
    let object = format!("{collection}/{}", write.name);
    let call = match &write.operation {
        Operation::Create(body) => Call::create(collection, body.to_string()),
        Operation::Update(body) => Call::replace(object, body),
        Operation::Delete { uid } => Call::delete(object, uid),
    };
    let Some(writer) = writer else {
        // The tracker decides nothing about a form without a writer.
        return Outcome::NamespaceTerminating;
    };
    match writer.send(&call).await {
        Ok(answer) => {
            let written = answer.written();
            Outcome::Done {
                uid: written.uid.into(),
                version: written.resource_version.parse().unwrap_or_default(),
            }
        }
        Err(failure) => outcome(write, &failure),
    }
}

/// What a failure means to the tracker. Logs it, unless it is an ordinary race.
fn outcome(write: &Write, failure: &Failure) -> Outcome {
    let deleting = write.operation.is_deletion();
    if failure.causes.iter().any(|c| c == "NamespaceTerminating") {
        return Outcome::NamespaceTerminating;
    }
    match failure.code {
        Some(404) => Outcome::NotFound,
        // Another object has its name.
        Some(409) if deleting => Outcome::NotFound,
        Some(409) if failure.reason == Reason::AlreadyExists => Outcome::AlreadyExists,
        Some(409) => Outcome::Conflict,
        _ => {
            let Write {
                namespace, name, ..
            } = write;
            tracing::warn!("writing the endpoints {namespace}/{name} failed: {failure}");
            Outcome::Failed
        }
    }
}

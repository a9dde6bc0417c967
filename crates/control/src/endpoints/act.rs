//! Every write of the endpoints controllers, from its beginning to how it went. It decides nothing.

use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::endpoints::{Outcome, What, Write};

const GROUP: &str = "discovery.k8s.io/v1";

/// With what to write.
#[derive(Clone)]
pub(super) struct Writers {
    pub(super) slices: Option<Writer>,
    pub(super) endpoints: Option<Writer>,
}

/// Carries out a write.
pub(super) async fn carry_out(writers: &Writers, write: &Write) -> Outcome {
    let slices = api::group_path(GROUP, &write.namespace, "endpointslices");
    let endpoints = api::core_path(&write.namespace, "endpoints");
    let at = |path: &str| format!("{path}/{}", write.name);
    let (writer, call) = match &write.what {
        What::CreateSlice(body) => (&writers.slices, Call::create(slices, body.to_string())),
        What::UpdateSlice(body) => (&writers.slices, Call::replace(at(&slices), body)),
        What::DeleteSlice { uid } => (&writers.slices, Call::delete(at(&slices), uid)),
        What::CreateEndpoints(body) => (
            &writers.endpoints,
            Call::create(endpoints, body.to_string()),
        ),
        What::UpdateEndpoints(body) => (&writers.endpoints, Call::replace(at(&endpoints), body)),
        What::DeleteEndpoints { uid } => (&writers.endpoints, Call::delete(at(&endpoints), uid)),
    };
    let Some(writer) = writer else {
        // Forms without a writer are not decided about.
        return Outcome::Pointless;
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

/// What a failure means, which is logged unless it is part of ordinary life.
fn outcome(write: &Write, failure: &Failure) -> Outcome {
    let deleting = matches!(
        write.what,
        What::DeleteSlice { .. } | What::DeleteEndpoints { .. }
    );
    if failure.causes.iter().any(|c| c == "NamespaceTerminating") {
        return Outcome::Pointless;
    }
    match failure.code {
        Some(404) => Outcome::Gone,
        // Another object has its name.
        Some(409) if deleting => Outcome::Gone,
        Some(409) if failure.reason == "AlreadyExists" => Outcome::Taken,
        Some(409) => Outcome::Stale,
        _ => {
            let Write {
                namespace, name, ..
            } = write;
            tracing::warn!("writing the endpoints {namespace}/{name} failed: {failure}");
            Outcome::Failed
        }
    }
}

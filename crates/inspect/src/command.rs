//! Writes the annotations of a command (R6) to a DaemonSet.

use kennel_core::daemonset::DaemonSetView;
use kennel_core::rollout::request::Request;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Error, snapshot};

/// The field manager of the annotations.
const MANAGER: &str = "kennel-rollout";

/// The uid makes the server refuse the patch for another DaemonSet of the same name.
pub async fn write(client: &Client, set: &DaemonSetView, wanted: &Request) -> Result<(), Error> {
    let patch = json!({"metadata": {"uid": &*set.uid, "annotations": wanted.annotations}});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let (namespace, name) = (&set.namespace, &set.name);
    let what =
        format!("cannot annotate DaemonSet {namespace}/{name}; that needs the right to patch it");
    let patch = kube::api::Request::new(snapshot::daemon_sets(namespace)).patch(
        name,
        &params,
        &Patch::Merge(patch),
    );
    let written: Result<Value, kube::Error> = match patch {
        Ok(patch) => client.request(patch).await,
        Err(error) => Err(kube::Error::BuildRequest(error)),
    };
    written.map_err(Error::api(what))?;
    Ok(())
}

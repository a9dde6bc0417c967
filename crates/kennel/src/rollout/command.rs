//! Writes the annotations of a command (R6) to a DaemonSet.

use std::process::ExitCode;

use anyhow::Context as _;
use kennel_core::daemonset::DaemonSetView;
use kennel_core::rollout::request::{Ask, Request, request};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::options::Target;
use super::{OK, REFUSED, Views};
use crate::inspect::{connect, print, snapshot};
use crate::logging;

/// The field manager of the annotations.
const MANAGER: &str = "kennel-rollout";

pub(super) async fn run(target: &Target, ask: &Ask) -> anyhow::Result<ExitCode> {
    let (client, namespace) = connect(&target.cluster).await?;
    let set = snapshot::daemon_set(&client, &namespace, &target.daemon_set.0).await?;
    let mut unread = Vec::new();
    let views = Views::of(snapshot::read_basics(&client, set, &mut unread).await?);
    let set = &views.snapshot.daemon_set;
    match request(&views.outline(), ask) {
        Ok(request) => {
            write(&client, set, &request).await?;
            print(&format!("daemonset/{} {}\n", set.name, request.effect))?;
            Ok(OK.into())
        }
        Err(refusal) => {
            for note in unread {
                tracing::warn!("{note}");
            }
            logging::print_error(&refusal.into());
            Ok(REFUSED.into())
        }
    }
}

/// The uid makes the server refuse the patch for another DaemonSet of the same name.
async fn write(client: &Client, set: &DaemonSetView, wanted: &Request) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"uid": &*set.uid, "annotations": wanted.annotations}});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let path = snapshot::daemon_sets(&set.namespace);
    let patch = kube::api::Request::new(path).patch(&set.name, &params, &Patch::Merge(patch));
    let written: Result<Value, kube::Error> = client.request(patch?).await;
    written.with_context(|| {
        let (namespace, name) = (&set.namespace, &set.name);
        format!("cannot annotate DaemonSet {namespace}/{name}; that needs the right to patch it")
    })?;
    Ok(())
}

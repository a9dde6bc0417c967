//! `kennel rollout plan`: for the DaemonSet as it is, or as a manifest would make it.

use std::process::ExitCode;

use anyhow::Context as _;
use kennel_client::api;
use kennel_core::daemonset::DaemonSetView;
use kennel_core::rollout::plan::Plan;
use kennel_inspect::{lists, snapshot};
use kube::api::{PostParams, Request};
use kube::{Client, Error};
use serde_json::Value;

use super::options::PlanArgs;
use super::{OK, manifest};
use crate::inspect::{connect, print};

pub(super) async fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let (client, default_namespace) = connect(&args.cluster).await?;
    let name = args.daemon_set.as_ref().map(|name| name.0.as_str());
    let (live, wanted) = match &args.file {
        None => {
            let name = name.context("name a DaemonSet, or give a manifest with -f")?;
            let live = snapshot::daemon_set(&client, &default_namespace, name).await?;
            (Some(live.clone()), live)
        }
        Some(path) => {
            let mut object = manifest::daemon_set(path, name)?;
            let namespace = args.cluster.namespace.as_ref();
            let namespace = manifest::namespace(&mut object, namespace, &default_namespace)?;
            as_applied(&client, &namespace, &object).await?
        }
    };
    let changes = live.is_none_or(|live| live.template != wanted.template);
    let mut unread = Vec::new();
    let snapshot = snapshot::read_basics(&client, wanted, &mut unread).await?;
    let mut plan = Plan::of(&snapshot::outline(&snapshot), changes);
    plan.notes.extend(unread);
    print(&args.output.render(&plan, || plan.text(args.all))?)?;
    Ok(OK.into())
}

/// The DaemonSet that the API has, and the one that it would have with this manifest: with defaults filled in, and
/// refused if it is invalid.
async fn as_applied(
    client: &Client,
    namespace: &str,
    object: &Value,
) -> anyhow::Result<(Option<DaemonSetView>, DaemonSetView)> {
    let path = snapshot::daemon_sets(namespace);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let live = match lists::get(client, &path, name).await {
        Ok(live) => Some(snapshot::daemon_set_view(live)?),
        Err(error) if api::code(&error) == Some(404) => None,
        Err(error) => {
            return Err(error).context(format!("cannot read DaemonSet {namespace}/{name}"));
        }
    };
    let params = PostParams {
        dry_run: true,
        field_manager: None,
    };
    let body = serde_json::to_vec(object)?;
    let request = match live {
        Some(_) => Request::new(path).replace(name, &params, body),
        None => Request::new(path).create(&params, body),
    };
    let answer: Result<Value, Error> = client.request(request?).await;
    let answer = answer.context(
        "the API server does not accept the manifest (nothing was stored: this was a dry run)",
    )?;
    Ok((live, snapshot::daemon_set_view(answer)?))
}

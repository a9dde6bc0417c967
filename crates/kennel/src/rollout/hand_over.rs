//! `kennel rollout hand-over`: before another DaemonSet controller takes the cluster over.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Context as _;
use kennel_client::api;
use kennel_core::rollout::PREFIX;
use kennel_core::rollout::condition::TYPES;
use kennel_core::rollout::hand_over::obstacle;
use kennel_inspect::{lists, snapshot};
use kube::Client;
use serde_json::{Value, json};

use super::options::HandOverArgs;
use super::{OK, REFUSED};
use crate::inspect::options::ClusterArgs;
use crate::inspect::{connect, print};

const DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";
const NAMESPACES: &str = "/api/v1/namespaces";

/// What to do about obstacles.
const ADVICE: &str = "\
The other controller knows no stages: it would take every node to the newest template at once. For each of them
  kennel rollout promote DAEMONSET --full    finishes the rollout
  kubectl rollout undo DAEMONSET             goes back to the stable template, also where the newest is held
  kennel rollout resume DAEMONSET            ends a pause or a freeze
and try again when `kennel rollout status` says that it is complete.
";

pub(super) async fn run(args: &HandOverArgs) -> anyhow::Result<ExitCode> {
    let cluster = ClusterArgs {
        namespace: None,
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let (client, _) = connect(&cluster).await?;
    let sets = concerned(&client).await?;
    let mut obstacles = Vec::new();
    for set in &sets {
        if let Some(why) = obstacle_of(&client, set).await? {
            obstacles.push(format!("{}: {why}\n", name_of(set)));
        }
    }
    if !obstacles.is_empty() {
        print(&format!(
            "{}\nNot handed over. {ADVICE}",
            obstacles.concat()
        ))?;
        return Ok(REFUSED.into());
    }
    if args.check {
        print(
            "No DaemonSet stands in the way. Stop Kennel's controller, then hand over without --check.\n",
        )?;
        return Ok(OK.into());
    }
    let with = sets.iter().filter(|set| has_conditions(set));
    let mut cleared = 0;
    for set in with {
        clear(&client, set).await?;
        cleared += 1;
    }
    print(&format!(
        "No DaemonSet stands in the way; the rollout conditions of {cleared} were removed. Start the other controller.\n"
    ))?;
    Ok(OK.into())
}

/// The DaemonSets that have or had to do with safe rollouts.
async fn concerned(client: &Client) -> anyhow::Result<Vec<Value>> {
    let namespaces = lists::list(client, NAMESPACES, None, None).await;
    let namespaces = namespaces.context("cannot list namespaces")?;
    let with_defaults: BTreeSet<&str> = namespaces
        .iter()
        .filter(|namespace| is_annotated(namespace))
        .filter_map(|namespace| namespace["metadata"]["name"].as_str())
        .collect();
    let sets = lists::list(client, DAEMON_SETS, None, None).await;
    let mut sets = sets.context("cannot list the DaemonSets of all namespaces")?;
    sets.retain(|set| {
        let namespace = set["metadata"]["namespace"].as_str().unwrap_or_default();
        is_annotated(set) || has_conditions(set) || with_defaults.contains(namespace)
    });
    Ok(sets)
}

async fn obstacle_of(client: &Client, set: &Value) -> anyhow::Result<Option<String>> {
    let view = snapshot::daemon_set_view(set.clone())?;
    let mut unread = Vec::new();
    let snapshot = snapshot::read_basics(client, view, &mut unread).await?;
    anyhow::ensure!(
        unread.is_empty(),
        "cannot judge DaemonSet {}: {}",
        name_of(set),
        unread.join("; ")
    );
    Ok(obstacle(&snapshot::outline(&snapshot)))
}

fn is_annotated(object: &Value) -> bool {
    let annotations = object["metadata"]["annotations"].as_object();
    let mut keys = annotations.into_iter().flat_map(|all| all.keys());
    keys.any(|key| key.starts_with(PREFIX))
}

fn is_ours(condition: &Value) -> bool {
    let kind = condition["type"].as_str();
    kind.is_some_and(|kind| TYPES.contains(&kind))
}

fn has_conditions(set: &Value) -> bool {
    let conditions = set["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(is_ours)
}

fn name_of(set: &Value) -> String {
    let field = |name: &str| set["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}", field("namespace"), field("name"))
}

/// Removes our conditions, unless the object has changed since it was read.
async fn clear(client: &Client, set: &Value) -> anyhow::Result<()> {
    let metadata = &set["metadata"];
    let conditions = set["status"]["conditions"].as_array();
    let others = conditions.into_iter().flatten().filter(|one| !is_ours(one));
    let others: Vec<&Value> = others.collect();
    let conditions = (!others.is_empty()).then_some(others);
    let precondition: BTreeMap<&str, &Value> = ["uid", "resourceVersion"]
        .map(|field| (field, &metadata[field]))
        .into();
    let patch = json!({"metadata": precondition, "status": {"conditions": conditions}});
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let name = metadata["name"].as_str().unwrap_or_default();
    let path = snapshot::daemon_sets(namespace);
    let cleared = api::merge(client, &path, name, Some("status"), &patch).await;
    cleared.with_context(|| {
        format!("cannot remove the conditions of DaemonSet {namespace}/{name}; does Kennel's controller still run?")
    })
}

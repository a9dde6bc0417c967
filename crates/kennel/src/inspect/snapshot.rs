//! Reads the objects of a cluster that concern one DaemonSet.
//!
//! The lists that are always needed are read at once. Events of pods, and the pods on full nodes, are read only for
//! nodes where a first explanation finds a problem.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kennel_client::api;
use kennel_control::{informers, scheduler, view};
use kennel_core::daemonset::{DaemonSetView, required};
use kennel_core::rollout;
use kennel_core::schedule::{NodeInfo, Resources};
use kennel_core::why::{
    Cause, NodeOccupancy, NodeSnapshot, OccupyingPod, PodSnapshot, RequiredSnapshot, Snapshot,
    Verdict, explain,
};
use kennel_types::{Identity, Timestamp};
use kube::api::DynamicObject;
use kube::{Client, Error};
use serde::de::{Deserialize as _, DeserializeOwned};
use serde_json::Value;

use super::lists::{get, list};

/// Full nodes whose pods are read.
const FULL_NODES_MAX: usize = 20;
/// Up to this many pods, events are listed pod by pod; above, for the whole namespace.
const EVENT_LISTS_MAX: usize = 5;
const NODES: &str = "/api/v1/nodes";

pub(crate) async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
    only: Option<&str>,
) -> anyhow::Result<Snapshot> {
    let daemon_set = daemon_set(client, namespace, name).await?;
    let mut unread = Vec::new();
    let mut snapshot = read_basics(client, daemon_set, &mut unread).await?;
    snapshot.only = only.map(str::to_owned);
    read_required(client, &mut snapshot, &mut unread).await?;
    read_details(client, &mut snapshot, &mut unread).await?;
    snapshot.unreadable = unread;
    Ok(snapshot)
}

/// There is no such DaemonSet.
#[derive(Debug, thiserror::Error)]
#[error("there is no DaemonSet {name} in namespace {namespace}{hint}")]
pub(crate) struct NotFound {
    name: String,
    namespace: String,
    hint: String,
}

/// The path of a namespace's DaemonSets.
pub(crate) fn daemon_sets(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/daemonsets")
}

/// Reads the DaemonSet. If there is none, the error names other namespaces that have one.
pub(crate) async fn daemon_set(
    client: &Client,
    namespace: &str,
    name: &str,
) -> anyhow::Result<DaemonSetView> {
    match get(client, &daemon_sets(namespace), name).await {
        Ok(object) => daemon_set_view(object),
        Err(error) if api::code(&error) == Some(404) => {
            let hint = other_namespaces(client, name).await;
            let (name, namespace) = (name.to_owned(), namespace.to_owned());
            Err(anyhow::Error::new(NotFound {
                name,
                namespace,
                hint,
            }))
        }
        Err(error) => Err(error).context(format!("cannot read DaemonSet {namespace}/{name}")),
    }
}

pub(crate) fn daemon_set_view(object: Value) -> anyhow::Result<DaemonSetView> {
    let object: DynamicObject =
        serde_json::from_value(object).context("cannot decode the DaemonSet")?;
    view::daemon_set(&object).context("cannot parse its selector")
}

/// The path of a namespace's revisions.
pub(crate) fn revisions(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions")
}

/// The time, as snapshots have it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(k8s_openapi::jiff::Timestamp::now().as_millisecond())
}

async fn other_namespaces(client: &Client, name: &str) -> String {
    let named = format!("metadata.name={name}");
    let found = list(client, "/apis/apps/v1/daemonsets", None, Some(&named)).await;
    let found = found.unwrap_or_default();
    let namespaces = found
        .iter()
        .filter_map(|d| d["metadata"]["namespace"].as_str());
    let hints: Vec<String> = namespaces.map(|n| format!("-n {n}")).collect();
    match hints.as_slice() {
        [] => "; `kubectl get daemonsets -A` lists all".to_owned(),
        hints => format!("; there is one with {}", hints.join(" and ")),
    }
}

/// Reads the lists that are always needed.
pub(crate) async fn read_basics(
    client: &Client,
    daemon_set: DaemonSetView,
    unread: &mut Vec<String>,
) -> anyhow::Result<Snapshot> {
    let namespace = &daemon_set.namespace;
    let selector = daemon_set.selector.to_string();
    let core = format!("/api/v1/namespaces/{namespace}");
    let pods = format!("{core}/pods");
    let revisions = revisions(namespace);
    let events = format!("{core}/events");
    let about = format!("involvedObject.uid={}", daemon_set.uid);
    let (nodes, pods, revisions, events, space) = tokio::join!(
        list(client, NODES, None, None),
        list(client, &pods, Some(&selector), None),
        list(client, &revisions, Some(&selector), None),
        list(client, &events, None, Some(&about)),
        get(client, "/api/v1/namespaces", namespace),
    );
    let nodes = permitted(nodes, "nodes", "only nodes with pods are shown", unread)?;
    let pods = pods.with_context(|| format!("cannot list the pods of namespace {namespace}"))?;
    let without = "old pods are recognised by their template generation only";
    let revisions = permitted(revisions, "controllerrevisions", without, unread)?;
    let without = "failed pod creations cannot be explained";
    let events = permitted(events, "events", without, unread)?;
    let revisions = decode::<DynamicObject>(revisions.unwrap_or_default());
    let revisions: Vec<_> = revisions.iter().filter_map(view::revision).collect();
    let is_ours = |key: &String| key.starts_with(rollout::PREFIX);
    let is_staged = daemon_set.annotations.keys().any(is_ours)
        || revisions.iter().any(|r| r.record.verdict.is_some());
    Ok(Snapshot {
        now: now(),
        namespace: annotations(space, is_staged, unread)?,
        nodes_known: nodes.is_some(),
        nodes: nodes.unwrap_or_default().iter().filter_map(node).collect(),
        pods: pods.iter().filter_map(pod).collect(),
        revisions,
        events: decode(events.unwrap_or_default()),
        occupancies: Vec::new(),
        required: Vec::new(),
        unreadable: Vec::new(),
        only: None,
        daemon_set,
    })
}

/// Reads the required DaemonSets and their pods if some node waits for its daemons.
async fn read_required(
    client: &Client,
    snapshot: &mut Snapshot,
    unread: &mut Vec<String>,
) -> anyhow::Result<()> {
    if !snapshot
        .nodes
        .iter()
        .any(|node| required::waits(&node.view))
    {
        return Ok(());
    }
    let without = "what nodes wait for cannot be named";
    let sets = list(client, "/apis/apps/v1/daemonsets", None, None).await;
    let sets = permitted(sets, "daemonsets of all namespaces", without, unread)?;
    let views = decode::<DynamicObject>(sets.unwrap_or_default());
    let views = views.iter().filter_map(|set| view::daemon_set(set).ok());
    for daemon_set in views.filter(|set| required::is_required(&set.annotations)) {
        let path = format!("/api/v1/namespaces/{}/pods", daemon_set.namespace);
        let pods = list(client, &path, Some(&daemon_set.selector.to_string()), None).await;
        let Some(pods) = permitted(pods, "pods of all namespaces", without, unread)? else {
            break;
        };
        let pods = pods.iter().filter_map(pod).map(|pod| pod.view);
        snapshot.required.push(RequiredSnapshot {
            pods: pods.collect(),
            daemon_set,
        });
    }
    Ok(())
}

/// The annotations of the Namespace. A missing right is noted if the DaemonSet has staged rollouts.
fn annotations(
    namespace: Result<Value, Error>,
    is_staged: bool,
    unread: &mut Vec<String>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let namespace = match namespace {
        Ok(namespace) => namespace,
        Err(error) if api::code(&error) == Some(403) => {
            let note = "you may not read the namespace: defaults of rollout policies are not known";
            unread.extend(is_staged.then(|| note.to_owned()));
            Value::Null
        }
        // The namespace is being removed, and the DaemonSet with it.
        Err(error) if api::code(&error) == Some(404) => Value::Null,
        Err(error) => return Err(error).context("cannot read the namespace"),
    };
    let annotations = BTreeMap::deserialize(&namespace["metadata"]["annotations"]);
    Ok(annotations.unwrap_or_default())
}

/// Reads more about nodes with problems: events of pods, and the pods on full nodes.
async fn read_details(
    client: &Client,
    snapshot: &mut Snapshot,
    unread: &mut Vec<String>,
) -> anyhow::Result<()> {
    let answer = explain(snapshot);
    let with_problem = answer.nodes.iter().filter(|node| {
        let problem = node.verdict == Verdict::Missing || node.cause == Cause::NewPodNotAvailable;
        problem || snapshot.only.is_some()
    });
    let pods: Vec<&str> = with_problem
        .flat_map(|node| &node.pods)
        .map(|pod| pod.name.as_str())
        .collect();
    let events = events_of(client, &snapshot.daemon_set.namespace, &pods).await;
    let without = "failing probes and volumes cannot be named";
    let events = permitted(events, "events", without, unread)?;
    snapshot.events.extend(decode(events.unwrap_or_default()));
    let full = answer.nodes.iter();
    let full = full.filter(|node| node.cause == Cause::Unschedulable);
    for node in full.take(FULL_NODES_MAX) {
        let occupancy = pods_on_full_node(client, snapshot, &node.node, node.pod.as_deref()).await;
        let without = "the pods that use up a node cannot be named";
        match permitted(occupancy, "pods of all namespaces", without, unread)? {
            Some(occupancy) => snapshot.occupancies.extend(occupancy),
            None => break,
        }
    }
    Ok(())
}

async fn events_of(client: &Client, namespace: &str, pods: &[&str]) -> Result<Vec<Value>, Error> {
    let path = format!("/api/v1/namespaces/{namespace}/events");
    if pods.len() > EVENT_LISTS_MAX {
        return list(client, &path, None, Some("involvedObject.kind=Pod")).await;
    }
    let mut events = Vec::new();
    for pod in pods {
        let about = format!("involvedObject.kind=Pod,involvedObject.name={pod}");
        events.extend(list(client, &path, None, Some(&about)).await?);
    }
    Ok(events)
}

/// The pods on a node where a pod does not fit.
async fn pods_on_full_node(
    client: &Client,
    snapshot: &Snapshot,
    node: &str,
    pod: Option<&str>,
) -> Result<Option<NodeOccupancy>, Error> {
    let path = format!("/api/v1/namespaces/{}/pods", snapshot.daemon_set.namespace);
    let Some(pod) = pod else {
        return Ok(None);
    };
    let (pod, node_object) = (
        get(client, &path, pod).await,
        get(client, NODES, node).await,
    );
    let (Ok(pod), Ok(node_object)) = (
        informers::Pod::deserialize(&pod?),
        kennel_types::Node::deserialize(&node_object?),
    ) else {
        return Ok(None);
    };
    let on = format!("spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed");
    let others = list(client, "/api/v1/pods", None, Some(&on)).await?;
    let others = decode::<informers::Pod>(others).into_iter();
    let others = others.map(|other| OccupyingPod {
        name: Identity::of(&other.metadata).to_string(),
        demand: scheduler::requirements(&other).0,
    });
    Ok(Some(NodeOccupancy {
        machine: NodeInfo {
            view: view::node(&node_object),
            allocatable: Resources::from(&node_object.status.allocatable),
        },
        pods: others.collect(),
        demand: scheduler::requirements(&pod).0,
    }))
}

/// Turns a 403 into `None` and a note in `unread`.
fn permitted<T>(
    result: Result<T, Error>,
    what: &str,
    without: &str,
    unread: &mut Vec<String>,
) -> anyhow::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if api::code(&error) == Some(403) => {
            let text = format!("you may not list {what}: {without}");
            if !unread.contains(&text) {
                unread.push(text);
            }
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("cannot list {what}")),
    }
}

fn decode<T: DeserializeOwned>(objects: Vec<Value>) -> Vec<T> {
    let objects = objects.into_iter();
    objects
        .filter_map(|object| serde_json::from_value(object).ok())
        .collect()
}

fn node(object: &Value) -> Option<NodeSnapshot> {
    Some(NodeSnapshot {
        view: view::node(&kennel_types::Node::deserialize(object).ok()?),
        conditions: Vec::deserialize(&object["status"]["conditions"]).unwrap_or_default(),
    })
}

fn pod(object: &Value) -> Option<PodSnapshot> {
    Some(PodSnapshot {
        view: view::pod(&informers::Pod::deserialize(object).ok()?)?,
        object: kennel_types::Pod::deserialize(object).ok()?,
    })
}

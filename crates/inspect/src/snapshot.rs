//! Reads the objects of a cluster that concern one DaemonSet.
//!
//! The lists that are always needed are read here, what only some answers need in [`crate::details`].

use std::collections::BTreeMap;

use kennel_client::api;
use kennel_control::view;
use kennel_core::daemonset::DaemonSetView;
use kennel_core::rollout;
use kennel_core::rollout::outline::{Input, Outline};
use kennel_core::why::{NodeSnapshot, PodSnapshot, Snapshot, closest};
use kennel_types::Timestamp;
use kube::api::DynamicObject;
use kube::{Client, Error as ApiError};
use serde::de::{Deserialize as _, DeserializeOwned};
use serde_json::Value;

use crate::lists::{get, list};
use crate::{Error, details};

pub(crate) const NODES: &str = "/api/v1/nodes";

/// Reads everything about a DaemonSet, for one node or for all.
pub async fn read(
    client: &Client,
    daemon_set: DaemonSetView,
    nodes: Nodes,
    only: Option<&str>,
) -> Result<Snapshot, Error> {
    let mut unread = nodes.unread.clone();
    let mut snapshot = read_lists(client, daemon_set, nodes, &mut unread).await?;
    if let Some(name) = only.filter(|name| !snapshot.has_node(name)) {
        return Err(NoSuchNode::new(name, &snapshot).into());
    }
    snapshot.only = only.map(str::to_owned);
    details::read_required(client, &mut snapshot, &mut unread).await?;
    details::read_details(client, &mut snapshot, &mut unread).await?;
    snapshot.unreadable = unread;
    Ok(snapshot)
}

/// All nodes, which are the same for every DaemonSet.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// `None` without the right to list them.
    list: Option<Vec<NodeSnapshot>>,
    /// Messages about what could not be read.
    unread: Vec<String>,
}

impl Nodes {
    pub async fn read(client: &Client) -> Result<Self, Error> {
        let mut unread = Vec::new();
        let without = "only nodes with pods are shown";
        let list = list(client, NODES, None, None).await;
        let list = permitted(list, "nodes", without, &mut unread)?;
        let list = list.map(|list| list.iter().filter_map(node).collect());
        Ok(Self { list, unread })
    }
}

/// There is no such node, and no pod of the DaemonSet names it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct NoSuchNode {
    message: String,
}

impl NoSuchNode {
    fn new(name: &str, snapshot: &Snapshot) -> Self {
        let nodes = snapshot.nodes.iter().map(|node| &*node.view.name);
        let message = match closest(name, nodes) {
            Some(meant) => format!("there is no node {name}; did you mean {meant}?"),
            None if snapshot.nodes_known => {
                format!("there is no node {name}; `kubectl get nodes` lists all")
            }
            None => format!(
                "no pod of DaemonSet {}/{} is on a node {name}, and you may not list nodes",
                snapshot.daemon_set.namespace, snapshot.daemon_set.name
            ),
        };
        Self { message }
    }
}

/// There is no such DaemonSet.
#[derive(Debug, thiserror::Error)]
#[error("there is no DaemonSet {name} in namespace {namespace}{hint}")]
pub struct NotFound {
    name: String,
    namespace: String,
    hint: String,
}

pub const ALL_DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";

/// The path of a namespace's DaemonSets.
pub fn daemon_sets(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/daemonsets")
}

/// Reads the DaemonSet. If there is none, the error names other namespaces that have one, or a similar name.
pub async fn daemon_set(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<DaemonSetView, Error> {
    match get(client, &daemon_sets(namespace), name).await {
        Ok(object) => daemon_set_view(object),
        Err(error) if api::code(&error) == Some(404) => {
            let hint = hint(client, namespace, name).await;
            let (name, namespace) = (name.to_owned(), namespace.to_owned());
            Err(NotFound {
                name,
                namespace,
                hint,
            }
            .into())
        }
        Err(error) => {
            let what = format!("cannot read DaemonSet {namespace}/{name}");
            Err(Error::api(what)(error))
        }
    }
}

pub fn daemon_set_view(object: Value) -> Result<DaemonSetView, Error> {
    let object: DynamicObject = serde_json::from_value(object).map_err(Error::Decode)?;
    view::daemon_set(&object).map_err(Error::Selector)
}

/// The rollout as a snapshot shows it.
pub fn outline(snapshot: &Snapshot) -> Outline<'_> {
    let nodes: Vec<_> = snapshot.nodes.iter().map(|node| &node.view).collect();
    let pods: Vec<_> = snapshot.pods.iter().map(|pod| &pod.view).collect();
    Outline::of(&Input {
        daemon_set: &snapshot.daemon_set,
        namespace: &snapshot.namespace,
        nodes: &nodes,
        pods: &pods,
        revisions: &snapshot.revisions,
        now: snapshot.now,
    })
}

/// The path of a namespace's revisions.
pub fn revisions(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions")
}

/// The time, as snapshots have it.
pub fn now() -> Timestamp {
    kennel_client::clock::now()
}

/// Other namespaces that have a DaemonSet of this name, or a similar name in this one.
async fn hint(client: &Client, namespace: &str, name: &str) -> String {
    let named = format!("metadata.name={name}");
    let found = list(client, ALL_DAEMON_SETS, None, Some(&named)).await;
    let found = found.unwrap_or_default();
    let field = |object: &Value, field: &str| object["metadata"][field].as_str().map(str::to_owned);
    let namespaces = found.iter().filter_map(|set| field(set, "namespace"));
    let hints: Vec<String> = namespaces.map(|n| format!("-n {n}")).collect();
    if !hints.is_empty() {
        return format!("; there is one with {}", hints.join(" and "));
    }
    let others = list(client, &daemon_sets(namespace), None, None).await;
    let others = others.unwrap_or_default();
    let others: Vec<String> = others.iter().filter_map(|set| field(set, "name")).collect();
    match closest(name, others.iter().map(String::as_str)) {
        Some(meant) => format!("; did you mean {meant}?"),
        None => "; `kubectl get daemonsets -A` lists all".to_owned(),
    }
}

/// Reads the lists that are always needed, with all nodes.
pub async fn read_basics(
    client: &Client,
    daemon_set: DaemonSetView,
    unread: &mut Vec<String>,
) -> Result<Snapshot, Error> {
    let nodes = Nodes::read(client).await?;
    unread.extend_from_slice(&nodes.unread);
    read_lists(client, daemon_set, nodes, unread).await
}

async fn read_lists(
    client: &Client,
    daemon_set: DaemonSetView,
    nodes: Nodes,
    unread: &mut Vec<String>,
) -> Result<Snapshot, Error> {
    let namespace = &daemon_set.namespace;
    let selector = daemon_set.selector.to_string();
    let core = format!("/api/v1/namespaces/{namespace}");
    let pods = format!("{core}/pods");
    let revisions = revisions(namespace);
    let events = format!("{core}/events");
    let about = format!("involvedObject.uid={}", daemon_set.uid);
    let (revisions, events, space) = tokio::join!(
        list(client, &revisions, Some(&selector), None),
        list(client, &events, None, Some(&about)),
        get(client, "/api/v1/namespaces", namespace),
    );
    // Last: a rollout that its revision says to be complete must not be shown with pods from before.
    let pods = list(client, &pods, Some(&selector), None).await;
    let pods = pods.map_err(Error::api(format!(
        "cannot list the pods of namespace {namespace}"
    )))?;
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
        nodes_known: nodes.list.is_some(),
        nodes: nodes.list.unwrap_or_default(),
        pods: pods.iter().filter_map(pod).collect(),
        revisions,
        events: decode(events.unwrap_or_default()),
        occupancies: Vec::new(),
        logs: Vec::new(),
        required: Vec::new(),
        unreadable: Vec::new(),
        only: None,
        daemon_set,
    })
}

/// The annotations of the Namespace. A missing right is noted if the DaemonSet has staged rollouts.
fn annotations(
    namespace: Result<Value, ApiError>,
    is_staged: bool,
    unread: &mut Vec<String>,
) -> Result<BTreeMap<String, String>, Error> {
    let namespace = match namespace {
        Ok(namespace) => namespace,
        Err(error) if api::code(&error) == Some(403) => {
            let note = "you may not read the namespace: defaults of rollout policies are not known";
            unread.extend(is_staged.then(|| note.to_owned()));
            Value::Null
        }
        // The namespace is being removed, and the DaemonSet with it.
        Err(error) if api::code(&error) == Some(404) => Value::Null,
        Err(error) => return Err(Error::api("cannot read the namespace")(error)),
    };
    let annotations = BTreeMap::deserialize(&namespace["metadata"]["annotations"]);
    Ok(annotations.unwrap_or_default())
}

/// Turns a 403 into `None` and a note in `unread`.
pub(crate) fn permitted<T>(
    result: Result<T, ApiError>,
    what: &str,
    without: &str,
    unread: &mut Vec<String>,
) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if api::code(&error) == Some(403) => {
            let text = format!("you may not list {what}: {without}");
            if !unread.contains(&text) {
                unread.push(text);
            }
            Ok(None)
        }
        Err(error) => Err(Error::api(format!("cannot list {what}"))(error)),
    }
}

pub(crate) fn decode<T: DeserializeOwned>(objects: Vec<Value>) -> Vec<T> {
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

pub fn pod(object: &Value) -> Option<PodSnapshot> {
    pod_snapshot(kennel_types::Pod::deserialize(object).ok()?)
}

/// Nothing, if a controller of another kind than DaemonSet has it.
pub(crate) fn pod_snapshot(object: kennel_types::Pod) -> Option<PodSnapshot> {
    Some(PodSnapshot {
        view: view::pod(&object)?,
        object,
    })
}

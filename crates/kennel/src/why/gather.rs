//! One moment of a cluster, as far as it concerns one DaemonSet: what to ask the API for, and how much of it.
//!
//! What everybody needs is asked for at once. Events of pods, and who is on full nodes, only where a first
//! look finds something wrong. Judging is not done here.

use anyhow::Context as _;
use kennel_control::{scheduler, shape, view};
use kennel_core::daemonset::DaemonSetView;
use kennel_core::schedule::Machine;
use kennel_core::why::{Cause, Crowd, Neighbour, Node, Pod, Snapshot, Verdict, explain};
use kube::api::DynamicObject;
use kube::{Client, Error};
use serde::de::{Deserialize as _, DeserializeOwned};
use serde_json::Value;

use super::page::{all, forbidden, not_found, one};

/// How many nodes without room are looked at more closely.
const CROWDS_MAX: usize = 20;
/// Up to so many pods' events are asked for one by one.
const PODS_ASKED_SINGLY: usize = 5;
const NODES: &str = "/api/v1/nodes";

/// Asks for all of it.
pub(super) async fn snapshot(
    client: &Client,
    namespace: &str,
    name: &str,
    only: Option<&str>,
) -> anyhow::Result<Snapshot> {
    let daemon_set = daemon_set(client, namespace, name).await?;
    let mut unread = Vec::new();
    let mut snapshot = first_look(client, daemon_set, &mut unread).await?;
    snapshot.only = only.map(str::to_owned);
    closer_look(client, &mut snapshot, &mut unread).await?;
    snapshot.unread = unread;
    Ok(snapshot)
}

/// The DaemonSet. Where there is none, whoever asked may have meant another namespace.
async fn daemon_set(client: &Client, namespace: &str, name: &str) -> anyhow::Result<DaemonSetView> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets");
    let object = match one(client, &path, name).await {
        Ok(object) => object,
        Err(error) if not_found(&error) => {
            let others = elsewhere(client, name).await;
            anyhow::bail!("there is no DaemonSet {name} in namespace {namespace}{others}");
        }
        Err(error) => {
            return Err(error).context(format!("cannot read DaemonSet {namespace}/{name}"));
        }
    };
    let object: DynamicObject = serde_json::from_value(object).context("this is no DaemonSet")?;
    view::daemon_set(&object).context("its selector cannot be read")
}

async fn elsewhere(client: &Client, name: &str) -> String {
    let named = format!("metadata.name={name}");
    let found = all(client, "/apis/apps/v1/daemonsets", None, Some(&named)).await;
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

/// What is needed in any case.
async fn first_look(
    client: &Client,
    daemon_set: DaemonSetView,
    unread: &mut Vec<String>,
) -> anyhow::Result<Snapshot> {
    let namespace = &daemon_set.namespace;
    let selector = daemon_set.selector.to_string();
    let core = format!("/api/v1/namespaces/{namespace}");
    let pods = format!("{core}/pods");
    let revisions = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
    let events = format!("{core}/events");
    let about = format!("involvedObject.uid={}", daemon_set.uid);
    let (nodes, pods, revisions, events) = tokio::join!(
        all(client, NODES, None, None),
        all(client, &pods, Some(&selector), None),
        all(client, &revisions, Some(&selector), None),
        all(client, &events, None, Some(&about)),
    );
    let nodes = permitted(
        nodes,
        "nodes",
        "only nodes that have pods are told of",
        unread,
    )?;
    let pods = pods.with_context(|| format!("cannot list the pods of namespace {namespace}"))?;
    let without = "old pods are told from new ones by the template's generation alone";
    let revisions = permitted(revisions, "controllerrevisions", without, unread)?;
    let without = "why a pod was not created cannot be told";
    let events = permitted(events, "events", without, unread)?;
    Ok(Snapshot {
        now: k8s_openapi::jiff::Timestamp::now().as_second(),
        nodes_known: nodes.is_some(),
        nodes: nodes.unwrap_or_default().iter().filter_map(node).collect(),
        pods: pods.iter().filter_map(pod).collect(),
        revisions: read::<DynamicObject>(revisions.unwrap_or_default())
            .iter()
            .filter_map(view::revision)
            .collect(),
        events: read(events.unwrap_or_default()),
        crowds: Vec::new(),
        unread: Vec::new(),
        only: None,
        daemon_set,
    })
}

/// What only those need that found something wrong: events of pods, and who is on nodes without room.
async fn closer_look(
    client: &Client,
    snapshot: &mut Snapshot,
    unread: &mut Vec<String>,
) -> anyhow::Result<()> {
    let answer = explain(snapshot);
    let troubled = answer.nodes.iter().filter(|node| {
        let wrong = node.verdict == Verdict::Missing || node.cause == Cause::NewPodNotAvailable;
        wrong || snapshot.only.is_some()
    });
    let pods: Vec<&str> = troubled
        .flat_map(|node| &node.pods)
        .map(|pod| pod.name.as_str())
        .collect();
    let events = events_of(client, &snapshot.daemon_set.namespace, &pods).await;
    let without = "which probe or volume fails cannot be told";
    let events = permitted(events, "events", without, unread)?;
    snapshot.events.extend(read(events.unwrap_or_default()));
    let full = answer.nodes.iter();
    let full = full.filter(|node| node.cause == Cause::Unschedulable);
    for node in full.take(CROWDS_MAX) {
        let crowd = crowd(client, snapshot, &node.node, node.pod.as_deref()).await;
        let without = "what takes a node's room cannot be told";
        match permitted(crowd, "pods of all namespaces", without, unread)? {
            Some(crowd) => snapshot.crowds.extend(crowd),
            None => break,
        }
    }
    Ok(())
}

async fn events_of(client: &Client, namespace: &str, pods: &[&str]) -> Result<Vec<Value>, Error> {
    let path = format!("/api/v1/namespaces/{namespace}/events");
    if pods.len() > PODS_ASKED_SINGLY {
        return all(client, &path, None, Some("involvedObject.kind=Pod")).await;
    }
    let mut events = Vec::new();
    for pod in pods {
        let about = format!("involvedObject.kind=Pod,involvedObject.name={pod}");
        events.extend(all(client, &path, None, Some(&about)).await?);
    }
    Ok(events)
}

/// Who is on a node where a pod finds no room.
async fn crowd(
    client: &Client,
    snapshot: &Snapshot,
    node: &str,
    pod: Option<&str>,
) -> Result<Option<Crowd>, Error> {
    let path = format!("/api/v1/namespaces/{}/pods", snapshot.daemon_set.namespace);
    let Some(pod) = pod else {
        return Ok(None);
    };
    let (pod, node_object) = (
        one(client, &path, pod).await,
        one(client, NODES, node).await,
    );
    let (Ok(pod), Ok(node_object)) = (
        shape::Pod::deserialize(&pod?),
        shape::Node::deserialize(&node_object?),
    ) else {
        return Ok(None);
    };
    let on = format!("spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed");
    let there = all(client, "/api/v1/pods", None, Some(&on)).await?;
    let there = read::<shape::Pod>(there).into_iter().map(|other| {
        let meta = &other.metadata;
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        Neighbour {
            name: format!("{}/{}", part(&meta.namespace), part(&meta.name)),
            demand: scheduler::demand(&other).0,
        }
    });
    Ok(Some(Crowd {
        machine: Machine {
            view: view::node(&node_object),
            allocatable: node_object.status.allocatable.clone(),
        },
        there: there.collect(),
        demand: scheduler::demand(&pod).0,
    }))
}

/// What was read; nothing, and a word about it, if it may not be read.
fn permitted<T>(
    read: Result<T, Error>,
    what: &str,
    without: &str,
    unread: &mut Vec<String>,
) -> anyhow::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if forbidden(&error) => {
            let text = format!("you may not list {what}: {without}");
            if !unread.contains(&text) {
                unread.push(text);
            }
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("cannot list {what}")),
    }
}

fn read<T: DeserializeOwned>(objects: Vec<Value>) -> Vec<T> {
    let objects = objects.into_iter();
    objects
        .filter_map(|object| serde_json::from_value(object).ok())
        .collect()
}

fn node(object: &Value) -> Option<Node> {
    Some(Node {
        view: view::node(&shape::Node::deserialize(object).ok()?),
        conditions: Vec::deserialize(&object["status"]["conditions"]).unwrap_or_default(),
    })
}

fn pod(object: &Value) -> Option<Pod> {
    Some(Pod {
        view: view::pod(&shape::Pod::deserialize(object).ok()?)?,
        facts: kennel_core::why::PodFacts::deserialize(object).ok()?,
    })
}

//! Reads what only some answers need: required DaemonSets, and for nodes where a first explanation finds a problem, events of
//! pods, the pods on full nodes, and logs of crashes.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::AsyncReadExt as _;
use futures_util::future::join_all;
use kennel_client::api;
use kennel_control::{informers, scheduler, view};
use kennel_core::daemonset::required;
use kennel_core::schedule::{NodeInfo, Resources};
use kennel_core::why::{
    Cause, LogError, LogSnapshot, LogSource, NodeOccupancy, OccupyingPod, RequiredSnapshot,
    Snapshot, Verdict, explain,
};
use kennel_types::Identity;
use kube::api::{DynamicObject, LogParams, Request};
use kube::{Client, Error as ApiError};
use serde::de::Deserialize as _;
use serde_json::Value;

use crate::Error;
use crate::lists::{get, list};
use crate::snapshot::{ALL_DAEMON_SETS, NODES, decode, permitted, pod};

/// Full nodes whose pods are read.
const FULL_NODES_MAX: usize = 20;
/// Up to this many pods, events are listed pod by pod; above, for the whole namespace.
const EVENT_LISTS_MAX: usize = 5;
/// Logs that are read: one for each message.
const LOGS_MAX: usize = 5;
/// Last lines that are read of a log.
const LOG_LINES: i64 = 10;
/// Ten lines of a log are usually far shorter.
const LOG_BYTES_MAX: u32 = 64 * 1024;
/// The API server has to reach the node for a log, which may be down.
const LOG_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the required DaemonSets and their pods if some node waits for its daemons.
pub(super) async fn read_required(
    client: &Client,
    snapshot: &mut Snapshot,
    unread: &mut Vec<String>,
) -> Result<(), Error> {
    if !snapshot
        .nodes
        .iter()
        .any(|node| required::waits(&node.view))
    {
        return Ok(());
    }
    let without = "what nodes wait for cannot be named";
    let sets = list(client, ALL_DAEMON_SETS, None, None).await;
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

/// Reads more about nodes with problems: events of pods, and the pods on full nodes.
pub(super) async fn read_details(
    client: &Client,
    snapshot: &mut Snapshot,
    unread: &mut Vec<String>,
) -> Result<(), Error> {
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

async fn events_of(
    client: &Client,
    namespace: &str,
    pods: &[&str],
) -> Result<Vec<Value>, ApiError> {
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
) -> Result<Option<NodeOccupancy>, ApiError> {
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

/// Reads the last log lines of containers that exit again and again.
pub async fn read_logs(client: &Client, snapshot: &mut Snapshot) {
    let answer = explain(snapshot);
    let mut seen = BTreeSet::new();
    let crashes = answer.nodes.iter().filter_map(|node| {
        let log = node.log.as_ref()?;
        seen.insert(node.message.as_str()).then_some(&log.source)
    });
    let namespace = &snapshot.daemon_set.namespace;
    let logs = crashes.take(LOGS_MAX).map(|source| async {
        let read = tokio::time::timeout(LOG_TIMEOUT, read_log(client, namespace, source)).await;
        let lines = read.unwrap_or(Err(LogError::TimedOut(LOG_TIMEOUT.as_secs())));
        LogSnapshot {
            source: source.clone(),
            lines,
        }
    });
    snapshot.logs = join_all(logs).await;
}

fn log_error(error: &ApiError) -> LogError {
    match api::code(error) {
        Some(403) => LogError::Forbidden,
        _ => LogError::Api(without_url(&api::explain(error)).to_owned()),
    }
}

/// Without `Get "https://…": `, with which API servers begin errors of nodes.
fn without_url(message: &str) -> &str {
    let rest = message.strip_prefix("Get \"");
    rest.and_then(|rest| rest.split_once("\": "))
        .map_or(message, |(_, error)| error)
}

async fn read_log(
    client: &Client,
    namespace: &str,
    source: &LogSource,
) -> Result<Vec<String>, LogError> {
    let params = LogParams {
        container: Some(source.container.clone()),
        previous: source.previous,
        tail_lines: Some(LOG_LINES),
        limit_bytes: Some(LOG_BYTES_MAX.into()),
        ..LogParams::default()
    };
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let request = Request::new(path).logs(&source.pod, &params);
    let request = request.map_err(|error| log_error(&ApiError::BuildRequest(error)))?;
    let stream = client.request_stream(request).await;
    let stream = stream.map_err(|error| log_error(&error))?;
    let mut bytes = Vec::new();
    let mut stream = std::pin::pin!(stream.take(LOG_BYTES_MAX.into()));
    let read = stream.read_to_end(&mut bytes).await;
    read.map_err(|error| LogError::Read(error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().map(str::to_owned).collect())
}

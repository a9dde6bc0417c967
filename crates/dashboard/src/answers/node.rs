//! One node: its conditions, its daemons, and what they use.

use futures_util::future::join_all;
use kennel_client::api;
use kennel_core::quantity::Quantity;
use kennel_inspect::lists::get;
use kennel_types::{self as types, Timestamp};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::protocol::{Daemon, Node, NodeCondition, Usage};

const NODES: &str = "/api/v1/nodes";
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
/// Daemons whose use is asked for: one request each.
const MEASURED_MAX: usize = 30;
/// Tables are what kubectl shows, and other than objects they have the words for a pod's status.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

pub(crate) async fn node(client: &Client, name: &str) -> Result<Node, Failure> {
    let object = get(client, NODES, name).await?;
    let node = types::Node::deserialize(&object);
    let node = node.map_err(|error| Failure::upstream(error.to_string()))?;
    let mut unreadable = Vec::new();
    let mut daemons = match daemons(client, name).await {
        Ok(daemons) => daemons,
        Err(error) if api::code(&error) == Some(403) => {
            unreadable.push("you may not list the pods of all namespaces".to_owned());
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let used = usage(client, &format!("{METRICS}/nodes"), name).await;
    if used.is_some() {
        measure(client, &mut daemons).await;
    }
    let ready = node.status.condition(&types::ConditionType::Ready);
    let taints = node.spec.taints.iter();
    let taints = taints.map(|taint| match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    });
    let kubelet = object["status"]["nodeInfo"]["kubeletVersion"].as_str();
    Ok(Node {
        name: name.to_owned(),
        ready: ready.is_some_and(types::Condition::is_true),
        unschedulable: node.spec.unschedulable,
        conditions: node.status.conditions.iter().map(condition).collect(),
        taints: taints.collect(),
        kubelet: kubelet.unwrap_or_default().to_owned(),
        created: node
            .metadata
            .creation_timestamp
            .as_ref()
            .map(Timestamp::from),
        usage: used,
        allocatable: amounts(&object["status"]["allocatable"]),
        labels: node.metadata.labels.unwrap_or_default(),
        daemons,
        unreadable,
    })
}

fn condition(condition: &types::Condition) -> NodeCondition {
    NodeCondition {
        kind: condition.r#type.as_str().to_owned(),
        status: condition.status.as_str().to_owned(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        since: condition.last_transition_time,
    }
}

/// A `Table`: cells, and the metadata of each row's object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    cells: Vec<Value>,
    object: PartialObject,
}

#[derive(Debug, Deserialize)]
struct PartialObject {
    #[serde(deserialize_with = "types::meta::metadata")]
    metadata: types::meta::ObjectMeta,
}

/// The pods on a node that DaemonSets own, by namespace and name.
async fn daemons(client: &Client, node: &str) -> Result<Vec<Daemon>, kube::Error> {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("fieldSelector", &format!("spec.nodeName={node}"))
        .finish();
    let request = http::Request::get(format!("/api/v1/pods?{query}"))
        .header(http::header::ACCEPT, TABLE)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    let table: Table = client.request(request).await?;
    let column = |name: &str| table.column_definitions.iter().position(|c| c.name == name);
    let (ready, status) = (column("Ready"), column("Status"));
    let restarts = column("Restarts");
    let daemons = table.rows.iter().filter_map(|row| {
        let cell = |index: Option<usize>| {
            let cell = index.and_then(|index| row.cells.get(index));
            cell.map(text).unwrap_or_default()
        };
        let meta = &row.object.metadata;
        let owner = types::meta::controller(meta)?;
        (owner.kind == types::daemonset::KIND).then(|| Daemon {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: owner.name.clone(),
            pod: meta.name.clone().unwrap_or_default(),
            status: cell(status),
            ready: is_ready(&cell(ready)),
            // `3 (5m ago)`.
            restarts: cell(restarts)
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0),
            created: meta.creation_timestamp.as_ref().map(Timestamp::from),
            usage: None,
        })
    });
    let mut daemons: Vec<Daemon> = daemons.collect();
    daemons.sort_by(|a, b| (&a.namespace, &a.name, &a.pod).cmp(&(&b.namespace, &b.name, &b.pod)));
    Ok(daemons)
}

fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether `2/2` is all.
fn is_ready(cell: &str) -> bool {
    cell.split_once('/')
        .is_some_and(|(ready, all)| ready == all && all != "0")
}

async fn measure(client: &Client, daemons: &mut [Daemon]) {
    let measured = daemons.iter_mut().take(MEASURED_MAX).map(|daemon| async {
        let path = format!("{METRICS}/namespaces/{}/pods", daemon.namespace);
        daemon.usage = usage(client, &path, &daemon.pod).await;
    });
    join_all(measured).await;
}

/// What a node or a pod uses; nothing where metrics.k8s.io does not answer.
async fn usage(client: &Client, path: &str, name: &str) -> Option<Usage> {
    let measured = get(client, path, name).await.ok()?;
    let Some(containers) = measured["containers"].as_array() else {
        return Some(amounts(&measured["usage"]));
    };
    let each = containers
        .iter()
        .map(|container| amounts(&container["usage"]));
    Some(each.fold(Usage::default(), |sum, one| Usage {
        cpu_millicores: sum.cpu_millicores + one.cpu_millicores,
        memory_bytes: sum.memory_bytes + one.memory_bytes,
    }))
}

fn amounts(resources: &Value) -> Usage {
    let cpu = Quantity::read(&resources["cpu"]).milli_value();
    let memory = Quantity::read(&resources["memory"]).value();
    Usage {
        cpu_millicores: u64::try_from(cpu).unwrap_or(0),
        memory_bytes: u64::try_from(memory).unwrap_or(0),
    }
}

//! `metrics.k8s.io`: what nodes and pods use, in the form of metrics-server.
//!
//! Names, namespaces and labels are those of the stored nodes and pods. Only the agents of nodes that a request is about
//! are asked. What has no figures is left out: a node whose agent does not answer, and its pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kennel_core::duration::GoString;
use kennel_core::quantity::{Format, Quantity};
use kennel_types::{Timestamp, Verb};
use serde::Serialize;
use serde_json::{Value, json};

use super::call::Call;
use super::connect::location;
use crate::agent_usage::{NodeUsage, Point};
use crate::api::Api;
use crate::limits;
use crate::object::{self, Stored};
use crate::registry::{self, Measured, MeasuredSubject, Resource};
use crate::request::accept::Form;
use crate::request::path::MeasuredPlace;
use crate::response::Reply;
use crate::status::{ApiError, Result};
use crate::table;
use crate::watch::Filter;

/// A `NodeMetrics` or a `PodMetrics`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    /// Not within lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    metadata: Metadata,
    timestamp: Timestamp,
    window: String,
    /// Of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Amounts>,
    /// Of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<Vec<Container>>,
    /// Of all containers together, for tables.
    #[serde(skip)]
    total: Amounts,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: Box<str>,
    /// As metrics-server: when the object was computed.
    creation_timestamp: Timestamp,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<Box<str>, Box<str>>,
}

#[derive(Serialize)]
struct Container {
    name: String,
    usage: Amounts,
}

/// Quantities in canonical form.
#[derive(Clone, Serialize)]
struct Amounts {
    cpu: String,
    memory: String,
}

impl Amounts {
    fn new(nano_cores: u64, bytes: u64) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        Self {
            cpu: Quantity::from_nanos(nano_cores).to_string(),
            memory: Quantity::from_units(bytes, Format::BinarySi).to_string(),
        }
    }
}

pub(crate) async fn serve(
    api: &Api,
    call: &Call,
    place: &MeasuredPlace,
    verb: Verb<'_>,
) -> Result<Reply> {
    let row = place.row;
    if !Measured::VERBS.contains(&verb) {
        return Err(ApiError::method_not_allowed(row.group, row.plural, verb));
    }
    // Refused before agents are asked.
    let (form, include) = (call.form()?, call.include_object()?);
    let namespace = place.namespace.as_deref();
    let stored = stored_row(row);
    super::check_segment(place.name.as_deref().unwrap_or_default())?;
    let records: Vec<Stored> = if let Some(name) = &place.name {
        let found = api.store.get(&object::key(stored, namespace, name));
        found.into_iter().collect()
    } else {
        let filter = Filter::new(stored, namespace, &call.query)?;
        let prefix = object::prefix(stored, namespace);
        let mut page = api.store.range(&prefix, None, None);
        page.records.retain(|record| filter.matches(&record.head));
        page.records
    };
    let items = measure(api, row, stored, &records).await;
    let Some(name) = &place.name else {
        return list(row, items, form, include);
    };
    let item = items.into_iter().next().ok_or_else(|| match namespace {
        Some(namespace) => ApiError::not_measured(row, &format!("{namespace}/{name}")),
        None => ApiError::not_measured(row, name),
    })?;
    one(row, item, form, include)
}

/// The row of the objects that are measured.
fn stored_row(row: &Measured) -> &'static Resource {
    registry::core(match row.subject {
        MeasuredSubject::Nodes => "nodes",
        MeasuredSubject::Pods => "pods",
    })
}

/// The figures of stored objects, in their order.
async fn measure(
    api: &Api,
    row: &Measured,
    stored: &'static Resource,
    records: &[Stored],
) -> Vec<Item> {
    let node_of = |record: &Stored| match row.subject {
        MeasuredSubject::Nodes => record.head.name.to_string(),
        MeasuredSubject::Pods => {
            let node = record.head.field(stored, "spec.nodeName");
            node.unwrap_or_default().to_owned()
        }
    };
    let nodes: BTreeSet<String> = records.iter().map(node_of).collect();
    let usage = ask(api, nodes).await;
    let now = crate::clock::now();
    let items = records.iter().filter_map(|record| {
        let usage = usage.get(&node_of(record))?;
        match row.subject {
            MeasuredSubject::Nodes => Some(of_node(record, usage.node?, now)),
            MeasuredSubject::Pods => {
                let containers = usage.pod(&record.head.namespace, &record.head.name);
                of_pod(record, containers, now)
            }
        }
    });
    items.collect()
}

/// Asks the agents of nodes, several at the same time.
async fn ask(api: &Api, nodes: BTreeSet<String>) -> HashMap<String, Arc<NodeUsage>> {
    let asked = stream::iter(nodes.into_iter().filter(|node| !node.is_empty()));
    let answers = asked.map(|node| async move {
        // A node without an agent, such as a simulated one, has no figures.
        let agent = location::agent_of(api, &node).ok()?;
        let agents = &api.settings.certificates.agents;
        let usage = api.usage.of(agents, &agent).await?;
        Some((node, usage))
    });
    let answers = answers.buffer_unordered(limits::USAGE_REQUESTS);
    answers
        .filter_map(std::future::ready)
        .collect::<HashMap<_, _>>()
        .await
}

fn of_node(record: &Stored, point: Point, now: Timestamp) -> Item {
    let usage = Amounts::new(point.nano_cores, point.working_set);
    Item {
        usage: Some(usage.clone()),
        ..item(record, &point, now, usage)
    }
}

/// `None` for a pod without measured containers.
fn of_pod(record: &Stored, containers: &[(String, Point)], now: Timestamp) -> Option<Item> {
    let earliest = containers.iter().map(|(_, point)| point);
    let earliest = earliest.min_by_key(|point| point.time)?;
    let total = containers.iter().fold((0, 0), |(cpu, memory), (_, point)| {
        (cpu + point.nano_cores, memory + point.working_set)
    });
    let of_containers = containers.iter().map(|(name, point)| Container {
        name: name.clone(),
        usage: Amounts::new(point.nano_cores, point.working_set),
    });
    Some(Item {
        containers: Some(of_containers.collect()),
        ..item(record, earliest, now, Amounts::new(total.0, total.1))
    })
}

fn item(record: &Stored, point: &Point, now: Timestamp, total: Amounts) -> Item {
    let head = &record.head;
    let millis = u64::try_from(point.window.as_millis()).unwrap_or(u64::MAX);
    Item {
        kind: None,
        api_version: None,
        metadata: Metadata {
            name: head.name.clone(),
            namespace: head.namespace.clone(),
            creation_timestamp: now,
            labels: (head.labels())
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        },
        timestamp: point.time,
        window: GoString(Duration::from_millis(millis)).to_string(),
        usage: None,
        containers: None,
        total,
    }
}

fn one(row: &Measured, mut item: Item, form: Form, include: table::IncludeObject) -> Result<Reply> {
    item.kind = Some(row.kind);
    item.api_version = Some(row.api_version());
    match form {
        Form::Object => to_json(&item),
        Form::Metadata => Ok(Reply::value(200, &table::partial_metadata(&tree(&item)?))),
        Form::Table(version) => to_table(row, vec![item], version, include),
    }
}

fn list(
    row: &Measured,
    items: Vec<Item>,
    form: Form,
    include: table::IncludeObject,
) -> Result<Reply> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct List {
        kind: String,
        api_version: String,
        metadata: Value,
        items: Vec<Item>,
    }
    match form {
        Form::Object => to_json(&List {
            kind: format!("{}List", row.kind),
            api_version: row.api_version(),
            metadata: json!({}),
            items,
        }),
        Form::Metadata => {
            let items = items
                .iter()
                .map(|item| Ok(table::partial_metadata(&tree(item)?)));
            let items = items.collect::<Result<Vec<Value>>>()?;
            let list = json!({"kind": table::LIST_KIND, "apiVersion": "meta.k8s.io/v1",
                "metadata": {}, "items": items});
            Ok(Reply::value(200, &list))
        }
        Form::Table(version) => to_table(row, items, version, include),
    }
}

fn to_table(
    row: &Measured,
    items: Vec<Item>,
    version: &str,
    include: table::IncludeObject,
) -> Result<Reply> {
    let rows = items.into_iter().map(|mut item| {
        item.kind = Some(row.kind);
        item.api_version = Some(row.api_version());
        let cells = [
            &*item.metadata.name,
            &item.total.cpu,
            &item.total.memory,
            &item.window,
        ];
        Ok((cells.map(Value::from), tree(&item)?))
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let rendered = table::render_usage(version, &rows, include);
    Ok(Reply::json(200, rendered))
}

fn to_json(value: &impl Serialize) -> Result<Reply> {
    let bytes = serde_json::to_vec(value).map_err(ApiError::internal)?;
    Ok(Reply::json(200, bytes))
}

fn tree(item: &Item) -> Result<Value> {
    serde_json::to_value(item).map_err(ApiError::internal)
}

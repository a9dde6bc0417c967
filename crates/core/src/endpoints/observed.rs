//! Slices and Endpoints as the API has them, read back: what stands there, and whether it is exactly what
//! we would have written.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Value, json};

use super::facts::{Family, Labels, Uid, items, text};
use super::form;
use super::member::{Endpoint, EndpointPort, Ports};
use super::slices::Group;

/// A slice or Endpoints, as the API gave it.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Uid,
    /// Its version.
    pub version: u64,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Owner references, as a list.
    pub owners: Value,
    /// All that is not metadata.
    pub body: Value,
}

impl Stored {
    /// The service that a slice is of, if the slice is ours to keep.
    pub fn slice_of(&self) -> Option<Arc<str>> {
        let ours = self.labels.get(form::KEEPER).map(String::as_str) == Some(form::KEPT_BY_US);
        let service = self.labels.get(form::SERVICE).filter(|_| ours)?;
        Some(service.as_str().into())
    }
}

/// A slice, read back.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) uid: Uid,
    pub(super) version: u64,
    /// Nothing, if it is none that we write.
    pub(super) group: Option<Group>,
    pub(super) held: Vec<Endpoint>,
    /// Its endpoints and ports are in the form in which we write them.
    pub(super) exact: bool,
    pub(super) labels: Labels,
    pub(super) owners: Value,
    pub(super) annotations: Labels,
}

/// Reads a slice.
pub(super) fn slice(stored: Stored) -> Seen {
    let (body, namespace) = (&stored.body, &*stored.namespace);
    let read: Vec<Endpoint> = items(&body["endpoints"]).filter_map(endpoint).collect();
    let written: Value = read.iter().map(|e| form::endpoint(namespace, e)).collect();
    let ports: Option<Ports> = items(&body["ports"]).map(port).collect();
    let family = Family::named(text(&body["addressType"]));
    let group = family
        .zip(ports)
        .map(|(family, ports)| Group { family, ports });
    let exact = group.as_ref().is_some_and(|group| {
        same_list(&written, &body["endpoints"])
            && same_list(&form::ports(&group.ports), &body["ports"])
    });
    Seen {
        uid: stored.uid,
        version: stored.version,
        group,
        held: read,
        exact,
        labels: stored.labels,
        owners: stored.owners,
        annotations: stored.annotations,
    }
}

/// No list is an empty one.
fn same_list(ours: &Value, stored: &Value) -> bool {
    ours == stored || stored.is_null() && *ours == json!([])
}

fn endpoint(object: &Value) -> Option<Endpoint> {
    let optional = |field: &str| object[field].as_str().map(Into::into);
    let condition = |name: &str| object["conditions"][name] == true;
    let pod = &object["targetRef"];
    Some(Endpoint {
        address: text(&object["addresses"][0]).parse().ok()?,
        ready: condition("ready"),
        serving: condition("serving"),
        terminating: condition("terminating"),
        hostname: optional("hostname"),
        node: optional("nodeName"),
        zone: optional("zone"),
        pod: pod["name"].as_str()?.into(),
        uid: pod["uid"].as_str()?.into(),
    })
}

fn port(object: &Value) -> Option<EndpointPort> {
    Some(EndpointPort {
        name: text(&object["name"]).to_owned(),
        protocol: object["protocol"].as_str()?.to_owned(),
        number: object["port"].as_u64()?.try_into().ok()?,
        app_protocol: object["appProtocol"].as_str().map(str::to_owned),
    })
}

/// What is remembered of Endpoints: enough to tell whether they are what they should be.
pub(super) fn print(labels: &Labels, subsets: &Value, truncated: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    canonical(subsets).hash(&mut hasher);
    truncated.hash(&mut hasher);
    hasher.finish()
}

/// The same text for the same subsets, in whatever order an API keeps them.
fn canonical(subsets: &Value) -> String {
    let sorted = |list: &Value| {
        let mut texts: Vec<String> = items(list).map(Value::to_string).collect();
        texts.sort_unstable();
        texts.join(",")
    };
    let subset = |subset: &Value| {
        let parts = ["ports", "addresses", "notReadyAddresses"];
        parts.map(|part| sorted(&subset[part])).join("|")
    };
    let mut all: Vec<String> = items(subsets).map(subset).collect();
    all.sort_unstable();
    all.join("\n")
}

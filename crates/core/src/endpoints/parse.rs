//! Parses stored `EndpointSlices` and Endpoints, and tells whether they are exactly what we would write.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use kennel_types::Identity;
use serde_json::{Value, json};

use super::facts::{Distribution, Family, Labels, Uid};
use super::manifest;
use super::member::{Endpoint, EndpointPort, Ports};
use super::slices::Group;
use crate::tree::{flag, int, list, opt_text, text, texts};

/// A slice or an Endpoints object as the API sent it.
#[derive(Clone, Debug)]
pub struct StoredObject {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Uid,
    /// The resource version.
    pub version: u64,
    pub labels: Labels,
    pub annotations: Labels,
    /// `ownerReferences`.
    pub owners: Value,
    /// All fields but metadata.
    pub body: Value,
}

impl StoredObject {
    pub(super) fn id(&self) -> Identity {
        Identity::new(&self.namespace, &self.name, &self.uid)
    }

    /// The service of a slice, if the slice is managed by us.
    pub fn slice_of(&self) -> Option<Arc<str>> {
        let ours = self.labels.get(manifest::MANAGED_BY).map(String::as_str)
            == Some(manifest::MANAGED_BY_US);
        let service = self.labels.get(manifest::SERVICE).filter(|_| ours)?;
        Some(service.as_str().into())
    }
}

#[derive(Clone, Debug)]
pub(super) struct ParsedSlice {
    pub(super) uid: Uid,
    pub(super) version: u64,
    /// `None` if it is not a slice that we would write.
    pub(super) group: Option<Group>,
    pub(super) endpoints: Vec<Endpoint>,
    /// Its endpoints and ports have exactly the form that we write.
    pub(super) exact: bool,
    pub(super) labels: Labels,
    pub(super) owners: Value,
    pub(super) annotations: Labels,
}

pub(super) fn slice(stored: StoredObject) -> ParsedSlice {
    let (body, namespace) = (&stored.body, &*stored.namespace);
    let read: Vec<Endpoint> = list(body, "endpoints")
        .iter()
        .filter_map(endpoint)
        .collect();
    let written: Value = read
        .iter()
        .map(|e| manifest::endpoint(namespace, e))
        .collect();
    let ports: Option<Ports> = list(body, "ports").iter().map(port).collect();
    let family = Family::named(text(body, "addressType"));
    let group = family
        .zip(ports)
        .map(|(family, ports)| Group { family, ports });
    let exact = group.as_ref().is_some_and(|group| {
        same_list(&written, &body["endpoints"])
            && same_list(&manifest::ports(&group.ports), &body["ports"])
    });
    ParsedSlice {
        uid: stored.uid,
        version: stored.version,
        group,
        endpoints: read,
        exact,
        labels: stored.labels,
        owners: stored.owners,
        annotations: stored.annotations,
    }
}

/// Compares arrays; an absent one is empty.
fn same_list(ours: &Value, stored: &Value) -> bool {
    ours == stored || stored.is_null() && *ours == json!([])
}

fn endpoint(object: &Value) -> Option<Endpoint> {
    let optional = |field: &str| opt_text(object, field).map(Into::into);
    let condition = |name: &str| flag(&object["conditions"], name);
    Some(Endpoint {
        address: texts(object, "addresses").next()?.parse().ok()?,
        ready: condition("ready"),
        serving: condition("serving"),
        terminating: condition("terminating"),
        hostname: optional("hostname"),
        node: optional("nodeName"),
        zone: optional("zone"),
        hints: hints(&object["hints"]),
        pod: opt_text(object, "targetRef.name")?.into(),
        uid: opt_text(object, "targetRef.uid")?.into(),
    })
}

/// Hints of another form are not exactly what we would write, so they are replaced.
fn hints(object: &Value) -> Option<Distribution> {
    if object["forNodes"].is_array() {
        return Some(Distribution::SameNode);
    }
    object["forZones"]
        .is_array()
        .then_some(Distribution::SameZone)
}

fn port(object: &Value) -> Option<EndpointPort> {
    Some(EndpointPort {
        name: text(object, "name").to_owned(),
        protocol: opt_text(object, "protocol")?.to_owned(),
        number: int(object, "port")?.try_into().ok()?,
        app_protocol: opt_text(object, "appProtocol").map(str::to_owned),
    })
}

/// A hash of the content of an Endpoints object, to detect changes.
pub(super) fn fingerprint(labels: &Labels, subsets: &Value, truncated: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    canonical(subsets).hash(&mut hasher);
    truncated.hash(&mut hasher);
    hasher.finish()
}

/// The same text for the same subsets in any order.
fn canonical(subsets: &Value) -> String {
    let sorted = |items: &[Value]| {
        let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        texts.join(",")
    };
    let subset = |subset: &Value| {
        let parts = ["ports", "addresses", "notReadyAddresses"];
        parts.map(|part| sorted(list(subset, part))).join("|")
    };
    let subsets = subsets.as_array().into_iter().flatten();
    let mut all: Vec<String> = subsets.map(subset).collect();
    all.sort_unstable();
    all.join("\n")
}

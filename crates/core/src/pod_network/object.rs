//! The object in which a node's network is published: a small `ConfigMap` per node, which changes when the node joins or
//! leaves or its address, range or mode changes, and never with its heartbeats. Agents watch these instead of Nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Member, Mode};
use crate::cidr::Cidr;

/// The namespace of the objects, which all clusters have, next to the nodes' leases.
pub const NAMESPACE: &str = "kube-node-lease";
/// The label of the objects.
pub const LABEL: &str = "network.kennel.dev/node";
/// The selector of the objects.
pub const SELECTOR: &str = "network.kennel.dev/node=true";
/// Every namespace has a `ConfigMap` of this name, so that no node's object may.
const TAKEN: &str = "kube-root-ca.crt";

const RANGE: &str = "podCIDR";
const LINK: &str = "address";
const MODE: &str = "mode";
const DIRECT: &str = "direct";
const CLUSTER: &str = "clusterCIDR";

/// What the rules read of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The value of each annotation.
    pub mode: Option<String>,
    pub link: Option<String>,
    pub direct: Option<String>,
    /// Its IPv4 addresses.
    pub addresses: Vec<Ipv4Addr>,
    pub range: Option<Cidr>,
}

impl NodeFacts {
    /// What the node takes part with, if it does. The link must be that of an address of the node.
    fn member(&self) -> Option<Member> {
        let mode = Mode::parse(self.mode.as_deref()?)?;
        let named = self.link.as_deref().and_then(parse_link);
        let named = named.filter(|(address, _)| self.addresses.contains(address));
        let first = self.addresses.first();
        let (address, link) = named.or_else(|| first.map(|one| (*one, Cidr::host(*one))))?;
        Some(Member {
            node: self.name.clone(),
            range: self.range?,
            address,
            link,
            mode,
            direct: self.direct.as_deref().and_then(|text| text.parse().ok()),
        })
    }
}

/// The address and the link in `10.0.0.2/24`.
fn parse_link(text: &str) -> Option<(Ipv4Addr, Cidr)> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (Ipv4Addr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    (bits <= 32).then(|| (address, Cidr::containing(address, bits)))
}

/// `10.0.0.2/24`.
pub fn show_link(address: Ipv4Addr, link: Cidr) -> String {
    format!("{address}/{}", link.bits())
}

/// The data of the object.
pub fn data(member: &Member, cluster: Cidr) -> BTreeMap<String, String> {
    let direct = member.direct.map(|direct| direct.to_string());
    let all = [
        (RANGE, Some(member.range.to_string())),
        (LINK, Some(show_link(member.address, member.link))),
        (MODE, Some(member.mode.to_string())),
        (DIRECT, direct),
        (CLUSTER, Some(cluster.to_string())),
    ];
    let set = all
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    set.collect()
}

/// The member in an object's data, and the cluster's range.
pub fn parse(node: &str, data: &BTreeMap<String, String>) -> Option<(Member, Cidr)> {
    let get = |key: &str| data.get(key).map(String::as_str);
    let (address, link) = parse_link(get(LINK)?)?;
    let member = Member {
        node: node.into(),
        range: get(RANGE)?.parse().ok()?,
        address,
        link,
        mode: Mode::parse(get(MODE)?)?,
        direct: get(DIRECT).and_then(|text| text.parse().ok()),
    };
    Some((member, get(CLUSTER)?.parse().ok()?))
}

/// A write of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Create(Value),
    /// With the version that it replaces.
    Replace(Value),
    /// The object's name and uid.
    Delete(Arc<str>, Arc<str>),
    /// Likewise, if a read by name finds no Node: lists also lack a Node that is damaged, and others go on routing to its pods.
    DeleteIfNodeIsGone(Arc<str>, Arc<str>),
}

impl Write {
    /// The node's name, which is the object's.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(object) | Self::Replace(object) => {
                object["metadata"]["name"].as_str().unwrap_or_default()
            }
            Self::Delete(name, _) | Self::DeleteIfNodeIsGone(name, _) => name,
        }
    }
}

/// An object as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub resource_version: String,
    /// The uids of its owners.
    pub owners: Vec<String>,
    pub data: BTreeMap<String, String>,
}

impl Stored {
    /// The range of the node's pods.
    pub fn range(&self) -> Option<Cidr> {
        self.data.get(RANGE)?.parse().ok()
    }
}

/// Compares what nodes publish with the stored objects. One node's change costs one write.
#[derive(Debug)]
pub struct Directory {
    cluster: Cidr,
    nodes: HashMap<Arc<str>, NodeFacts>,
    stored: HashMap<Arc<str>, Stored>,
    /// Names to compare.
    changed: HashSet<Arc<str>>,
    /// Names that a write is under way for.
    writing: HashSet<Arc<str>>,
}

impl Directory {
    pub fn new(cluster: Cidr) -> Self {
        Self {
            cluster,
            nodes: HashMap::new(),
            stored: HashMap::new(),
            changed: HashSet::new(),
            writing: HashSet::new(),
        }
    }

    pub fn on_node(&mut self, facts: NodeFacts) {
        let before = self.nodes.get(&facts.name);
        // Heartbeats change nothing.
        if before != Some(&facts) {
            self.changed.insert(facts.name.clone());
            self.nodes.insert(facts.name.clone(), facts);
        }
    }

    pub fn on_node_deleted(&mut self, name: &str, uid: &str) {
        if self.nodes.get(name).is_some_and(|node| &*node.uid == uid) {
            self.nodes.remove(name);
            self.changed.insert(name.into());
        }
    }

    pub fn on_object(&mut self, stored: Stored) {
        self.changed.insert(stored.name.clone());
        self.stored.insert(stored.name.clone(), stored);
    }

    pub fn on_object_deleted(&mut self, name: &str, uid: &str) {
        if self.stored.get(name).is_some_and(|one| &*one.uid == uid) {
            self.stored.remove(name);
            self.changed.insert(name.into());
        }
    }

    /// The write of this object has ended. After a failure, compares again.
    pub fn written(&mut self, name: &str) {
        self.writing.remove(name);
    }

    pub fn retry(&mut self, name: &str) {
        self.changed.insert(name.into());
    }

    /// At most one write per object is under way.
    pub fn take_writes(&mut self) -> Vec<Write> {
        let due = self
            .changed
            .iter()
            .filter(|name| !self.writing.contains(*name));
        let due: Vec<Arc<str>> = due.cloned().collect();
        let mut writes = Vec::new();
        for name in due {
            self.changed.remove(&name);
            if let Some(write) = self.write(&name) {
                self.writing.insert(name);
                writes.push(write);
            }
        }
        writes
    }

    fn write(&self, name: &str) -> Option<Write> {
        let node = self.nodes.get(name).filter(|_| name != TAKEN);
        let wanted = node.and_then(|node| Some((node, data(&node.member()?, self.cluster))));
        match (wanted, self.stored.get(name)) {
            (None, None) => None,
            (None, Some(stored)) => {
                let (name, uid) = (stored.name.clone(), stored.uid.clone());
                Some(if self.nodes.contains_key(&name) {
                    Write::Delete(name, uid)
                } else {
                    Write::DeleteIfNodeIsGone(name, uid)
                })
            }
            (Some((node, data)), None) => Some(Write::Create(object(node, &data))),
            (Some((node, data)), Some(stored)) => {
                let same = stored.data == data && stored.owners == [&*node.uid];
                (!same).then(|| {
                    let mut object = object(node, &data);
                    object["metadata"]["resourceVersion"] = stored.resource_version.as_str().into();
                    Write::Replace(object)
                })
            }
        }
    }
}

/// The object goes with its Node.
fn object(node: &NodeFacts, data: &BTreeMap<String, String>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": &*node.name,
            "namespace": NAMESPACE,
            "labels": {LABEL: "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": &*node.name, "uid": &*node.uid}],
        },
        "data": data,
    })
}

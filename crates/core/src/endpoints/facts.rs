//! The fields of services, pods and nodes that the endpoints controllers read.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kennel_types::{ServiceType, Timestamp};
use serde_json::Value;

use crate::tree::{flag, list, opt_text, text, text_map, text_or, texts};

pub type Uid = Arc<str>;
/// Labels, or the selector of a service.
pub type Labels = BTreeMap<String, String>;

/// An IP address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// The API's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|f| f.name() == name)
    }
}

/// A named container port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPort {
    pub name: String,
    pub protocol: String,
    pub number: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Uid,
    pub labels: Arc<Labels>,
    pub node: Option<Arc<str>>,
    /// At most one of each family.
    pub addresses: Vec<IpAddr>,
    pub ready: bool,
    /// When the Ready condition last changed.
    pub ready_changed: Option<Timestamp>,
    pub terminating: bool,
    /// It has succeeded or failed.
    pub terminal: bool,
    pub hostname: Option<Arc<str>>,
    pub subdomain: Option<Arc<str>>,
    /// Its named ports, in the order of its containers.
    pub ports: Arc<[NamedPort]>,
}

/// The target port of a service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Number(u16),
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// May be empty if it is the only one.
    pub name: String,
    pub protocol: String,
    pub app_protocol: Option<String>,
    pub target: Target,
}

/// Which endpoints clients prefer: `trafficDistribution` of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    SameZone,
    /// Those on the client's node, then those in its zone.
    SameNode,
}

impl Distribution {
    fn named(name: &str) -> Option<Self> {
        match name {
            "PreferSameZone" | "PreferClose" => Some(Self::SameZone),
            "PreferSameNode" => Some(Self::SameNode),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFacts {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Uid,
    pub labels: Labels,
    pub created: Timestamp,
    /// Empty if its endpoints are managed by others.
    pub selector: Labels,
    pub headless: bool,
    pub publish_not_ready: bool,
    pub distribution: Option<Distribution>,
    pub families: Vec<Family>,
    pub ports: Vec<ServicePort>,
}

impl ServiceFacts {
    /// Parses the spec of a service; the caller fills in the metadata.
    pub fn of_spec(spec: &Value) -> Self {
        let is_external_name = ServiceType::from(text(spec, "type")) == ServiceType::ExternalName;
        Self {
            namespace: "".into(),
            name: "".into(),
            uid: "".into(),
            labels: Labels::new(),
            created: Timestamp::EPOCH,
            // An ExternalName service has no endpoints, whatever it selects.
            selector: if is_external_name {
                Labels::new()
            } else {
                text_map(spec, "selector")
            },
            headless: text(spec, "clusterIP") == "None",
            publish_not_ready: flag(spec, "publishNotReadyAddresses"),
            distribution: Distribution::named(text(spec, "trafficDistribution")),
            families: families(spec),
            ports: list(spec, "ports").iter().map(port).collect(),
        }
    }

    /// Whether it has a selector, so that the controllers manage its endpoints.
    pub fn selects(&self) -> bool {
        !self.selector.is_empty()
    }

    /// Whether it selects pods with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.selects() && self.selector.iter().all(has)
    }
}

fn families(spec: &Value) -> Vec<Family> {
    let listed: Vec<Family> = texts(spec, "ipFamilies")
        .filter_map(Family::named)
        .collect();
    if !listed.is_empty() {
        return listed;
    }
    let address = text(spec, "clusterIP").parse().ok();
    vec![address.map_or(Family::V4, Family::of)]
}

fn port(port: &Value) -> ServicePort {
    let number = |value: &Value| value.as_u64().and_then(|n| u16::try_from(n).ok());
    let target = match &port["targetPort"] {
        Value::String(name) => Target::Name(name.clone()),
        target => Target::Number(number(target).or(number(&port["port"])).unwrap_or(0)),
    };
    ServicePort {
        name: text(port, "name").to_owned(),
        protocol: text_or(port, "protocol", "TCP").to_owned(),
        app_protocol: opt_text(port, "appProtocol").map(str::to_owned),
        target,
    }
}

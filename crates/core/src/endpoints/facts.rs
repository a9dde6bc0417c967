//! The fields of services, pods and nodes that the endpoints controllers read.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kennel_types::service::{self, ServiceSpec};
use kennel_types::{ServiceType, Timestamp};
use serde_json::Value;

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
    /// Reads the spec of a service; the caller fills in the metadata.
    pub fn of_spec(spec: &ServiceSpec) -> Self {
        Self {
            namespace: "".into(),
            name: "".into(),
            uid: "".into(),
            labels: Labels::new(),
            created: Timestamp::EPOCH,
            // An ExternalName service has no endpoints, whatever it selects.
            selector: if spec.r#type == ServiceType::ExternalName {
                Labels::new()
            } else {
                spec.selector.clone()
            },
            headless: spec.cluster_ip == "None",
            publish_not_ready: spec.publish_not_ready_addresses,
            distribution: Distribution::named(&spec.traffic_distribution),
            families: families(spec),
            ports: spec.ports.iter().map(port).collect(),
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

fn families(spec: &ServiceSpec) -> Vec<Family> {
    let listed = spec.ip_families.iter();
    let listed: Vec<Family> = listed.filter_map(|name| Family::named(name)).collect();
    if !listed.is_empty() {
        return listed;
    }
    let address = spec.cluster_ip.parse().ok();
    vec![address.map_or(Family::V4, Family::of)]
}

fn port(port: &service::ServicePort) -> ServicePort {
    let number = port.target_port.as_u64();
    let number = number.and_then(|number| u16::try_from(number).ok());
    let target = match &port.target_port {
        Value::String(name) => Target::Name(name.clone()),
        _ => Target::Number(number.unwrap_or(port.port)),
    };
    let protocol = match port.protocol.as_str() {
        "" => "TCP",
        protocol => protocol,
    };
    ServicePort {
        name: port.name.clone(),
        protocol: protocol.to_owned(),
        app_protocol: port.app_protocol.clone(),
        target,
    }
}

//! What the rules about endpoints read of services, pods and nodes. It decides nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;

/// A pod's uid.
pub type Uid = Arc<str>;
/// Labels, or what a service selects by.
pub type Labels = BTreeMap<String, String>;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `IPv4`
    V4,
    /// `IPv6`
    V6,
}

impl Family {
    /// Of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// As the API calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// By the API's name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|f| f.name() == name)
    }
}

/// A port of a pod's container that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPort {
    /// Its name.
    pub name: String,
    /// `TCP`, say.
    pub protocol: String,
    /// Its number.
    pub number: u16,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Uid,
    /// Labels.
    pub labels: Arc<Labels>,
    /// The node it is bound to.
    pub node: Option<Arc<str>>,
    /// Its addresses, at most one of each family.
    pub addresses: Vec<IpAddr>,
    /// Its Ready condition is true.
    pub ready: bool,
    /// When that condition last changed, in seconds.
    pub ready_changed: Option<i64>,
    /// Its deletion has begun.
    pub terminating: bool,
    /// It has succeeded or failed.
    pub ended: bool,
    /// What it calls itself.
    pub hostname: Option<Arc<str>>,
    /// The service that its name is below.
    pub subdomain: Option<Arc<str>>,
    /// The ports that services may call by name, in the order of its containers.
    pub ports: Arc<[NamedPort]>,
}

/// Where a port of a service leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this number.
    Number(u16),
    /// To the container port of this name.
    Name(String),
}

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; may be empty where it is the only one.
    pub name: String,
    /// `TCP`, say.
    pub protocol: String,
    /// What is spoken there.
    pub app_protocol: Option<String>,
    /// Where it leads.
    pub target: Target,
}

/// A service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Uid,
    /// Labels.
    pub labels: Labels,
    /// When it was created, in seconds.
    pub created: i64,
    /// Labels that its pods have. Empty: somebody else says where it leads.
    pub selector: Labels,
    /// It has no address of its own.
    pub headless: bool,
    /// Pods count that are not ready.
    pub publish_not_ready: bool,
    /// The families of its addresses.
    pub families: Vec<Family>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
}

impl ServiceFacts {
    /// Reads the spec of a service; metadata is the caller's to fill in.
    pub fn of_spec(spec: &Value) -> Self {
        let is_alias = spec["type"] == "ExternalName";
        Self {
            namespace: "".into(),
            name: "".into(),
            uid: "".into(),
            labels: Labels::new(),
            created: 0,
            // An alias leads somewhere else, whatever it says it selects.
            selector: if is_alias {
                Labels::new()
            } else {
                strings(&spec["selector"])
            },
            headless: spec["clusterIP"] == "None",
            publish_not_ready: spec["publishNotReadyAddresses"] == true,
            families: families(spec),
            ports: items(&spec["ports"]).map(port).collect(),
        }
    }

    /// Does it say itself which pods it leads to?
    pub fn selects(&self) -> bool {
        !self.selector.is_empty()
    }

    /// Does it lead to pods with these labels?
    pub fn matches(&self, labels: &Labels) -> bool {
        let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.selects() && self.selector.iter().all(has)
    }
}

fn families(spec: &Value) -> Vec<Family> {
    let listed = items(&spec["ipFamilies"]).filter_map(|family| Family::named(family.as_str()?));
    let listed: Vec<Family> = listed.collect();
    if !listed.is_empty() {
        return listed;
    }
    let address = spec["clusterIP"].as_str().and_then(|ip| ip.parse().ok());
    vec![address.map_or(Family::V4, Family::of)]
}

fn port(port: &Value) -> ServicePort {
    let number = |value: &Value| value.as_u64().and_then(|n| u16::try_from(n).ok());
    let target = match &port["targetPort"] {
        Value::String(name) => Target::Name(name.clone()),
        target => Target::Number(number(target).or(number(&port["port"])).unwrap_or(0)),
    };
    ServicePort {
        name: text(&port["name"]).to_owned(),
        protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned(),
        app_protocol: port["appProtocol"].as_str().map(str::to_owned),
        target,
    }
}

/// The members of a list; none, if it is no list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A text; empty, if it is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A map of texts.
pub(super) fn strings(map: &Value) -> Labels {
    let all = map.as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

//! API objects in the compact form in which the table keeps them.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kennel_types::service::{self as api, ServiceType, SessionAffinity, TrafficPolicy};

use super::{AFFINITY_TIMEOUT, Protocol};

/// What routes a Service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) cluster_ips: Vec<IpAddr>,
    pub(super) ports: Vec<ServicePort>,
    pub(super) internal_local: bool,
    pub(super) external_local: bool,
    pub(super) affinity: Option<Duration>,
    /// 0 for none.
    pub(super) health_check_node_port: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServicePort {
    pub(super) name: Arc<str>,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    /// 0 for none.
    pub(super) node_port: u16,
}

impl Spec {
    /// `None` for services without an address: headless ones and external names.
    pub(super) fn read(spec: &api::ServiceSpec, names: &mut Names) -> Option<Self> {
        if spec.r#type == ServiceType::ExternalName {
            return None;
        }
        let mut addresses = spec.cluster_ips.iter();
        let first = Some(&spec.cluster_ip).filter(|_| spec.cluster_ips.is_empty());
        let cluster_ips: Vec<IpAddr> = addresses
            .by_ref()
            .chain(first)
            .filter_map(|text| text.parse().ok())
            .collect();
        if cluster_ips.is_empty() {
            return None;
        }
        let external = matches!(
            spec.r#type,
            ServiceType::NodePort | ServiceType::LoadBalancer
        );
        let ports = spec.ports.iter().filter_map(|port| {
            Some(ServicePort {
                name: names.get(&port.name),
                protocol: Protocol::parse(&port.protocol)?,
                port: port.port,
                node_port: if external { port.node_port } else { 0 },
            })
        });
        let timeout = spec.session_affinity_config.client_ip.timeout_seconds;
        let timeout = timeout.map_or(AFFINITY_TIMEOUT, |seconds| {
            Duration::from_secs(seconds.into())
        });
        let external_local = external && spec.external_traffic_policy == TrafficPolicy::Local;
        let checked = spec.r#type == ServiceType::LoadBalancer && external_local;
        Some(Self {
            cluster_ips,
            ports: ports.collect(),
            internal_local: spec.internal_traffic_policy == TrafficPolicy::Local,
            external_local,
            affinity: (spec.session_affinity == SessionAffinity::ClientIp).then_some(timeout),
            health_check_node_port: if checked {
                spec.health_check_node_port
            } else {
                0
            },
        })
    }
}

/// A slice of a service's endpoints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) ports: Vec<SlicePort>,
    pub(super) endpoints: Vec<Endpoint>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlicePort {
    pub(super) name: Arc<str>,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    pub(super) state: State,
    pub(super) place: Place,
    pub(super) node_hint: NodeHint,
    /// The zones whose traffic it should get; empty without a hint.
    pub(super) zones: Box<[Arc<str>]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Ready,
    /// Used if no endpoint is ready.
    ServingTerminating,
    /// Never used.
    Unusable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Here,
    Elsewhere,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeHint {
    Missing,
    Here,
    Elsewhere,
}

impl Slice {
    /// `None` for slices of names.
    pub(super) fn read(slice: &api::EndpointSlice, node: &str, names: &mut Names) -> Option<Self> {
        if slice.address_type == "FQDN" {
            return None;
        }
        let ports = slice.ports.iter().filter_map(|port| {
            Some(SlicePort {
                name: names.get(&port.name),
                protocol: Protocol::parse(&port.protocol)?,
                port: port.port?,
            })
        });
        let ports = ports.collect();
        let mut endpoints = Vec::with_capacity(slice.endpoints.len());
        for endpoint in &slice.endpoints {
            // Upstream's meaning: all addresses of an endpoint are the same; the first one is used.
            let Some(address) = endpoint
                .addresses
                .first()
                .and_then(|text| text.parse().ok())
            else {
                continue;
            };
            endpoints.push(Endpoint {
                address,
                state: state(endpoint.conditions),
                place: match endpoint.node_name.as_deref() {
                    None => Place::Unknown,
                    Some(name) if name == node => Place::Here,
                    Some(_) => Place::Elsewhere,
                },
                node_hint: node_hint(&endpoint.hints.for_nodes, node),
                zones: endpoint
                    .hints
                    .for_zones
                    .iter()
                    .map(|zone| names.get(&zone.name))
                    .collect(),
            });
        }
        Some(Self { ports, endpoints })
    }
}

fn state(conditions: api::EndpointConditions) -> State {
    let ready = conditions.ready.unwrap_or(true);
    let serving = conditions.serving.unwrap_or(ready);
    if ready {
        State::Ready
    } else if serving && conditions.terminating.unwrap_or(false) {
        State::ServingTerminating
    } else {
        State::Unusable
    }
}

fn node_hint(hints: &[api::Hint], node: &str) -> NodeHint {
    if hints.is_empty() {
        NodeHint::Missing
    } else if hints.iter().any(|hint| hint.name == node) {
        NodeHint::Here
    } else {
        NodeHint::Elsewhere
    }
}

/// Port names and zones, each stored once.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<Arc<str>>);

/// Beyond so many names those in no use are forgotten.
const NAMES_MAX: usize = 4096;

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        if self.0.len() >= NAMES_MAX {
            self.0.retain(|name| Arc::strong_count(name) > 1);
        }
        let new: Arc<str> = name.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

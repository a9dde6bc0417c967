//! The services and endpoint slices of a cluster, as one node needs them, and the routes of each service.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use kennel_types::Identity;
use kennel_types::service::{self as api, SERVICE_NAME_LABEL};

use super::read::{Names, ServicePort, Slice, Spec};
use super::select::Candidates;
use super::{Destination, HealthCheck, Route, Scope, ServiceName};

/// See the [module](self).
#[derive(Debug)]
pub struct ServiceTable {
    node: String,
    zone: Option<String>,
    services: HashMap<ServiceName, Entry>,
    /// The service of each slice.
    slices: HashMap<ServiceName, Arc<str>>,
    names: Names,
    /// Services that have changed since [`Self::take_changed`].
    changed: BTreeSet<ServiceName>,
    endpoints: usize,
}

#[derive(Debug, Default)]
struct Entry {
    /// `None` if there is no Service, or none that is routed.
    spec: Option<Spec>,
    /// By name.
    slices: BTreeMap<Arc<str>, Slice>,
}

impl ServiceTable {
    pub fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            zone: None,
            services: HashMap::new(),
            slices: HashMap::new(),
            names: Names::default(),
            changed: BTreeSet::new(),
            endpoints: 0,
        }
    }

    /// The node's zone, which selects endpoints by their hints.
    pub fn set_zone(&mut self, zone: Option<&str>) {
        if self.zone.as_deref() != zone {
            self.zone = zone.map(str::to_owned);
            self.changed.extend(self.services.keys().cloned());
        }
    }

    pub fn put_service(&mut self, service: &api::Service) {
        let name = name_of(&Identity::of(&service.metadata));
        let spec = Spec::read(&service.spec, &mut self.names);
        let entry = self.services.entry(name.clone()).or_default();
        if entry.spec != spec {
            entry.spec = spec;
            self.changed.insert(name.clone());
        }
        self.forget_if_empty(&name);
    }

    pub fn remove_service(&mut self, id: &Identity) {
        let name = name_of(id);
        if let Some(entry) = self.services.get_mut(&name)
            && entry.spec.take().is_some()
        {
            self.changed.insert(name.clone());
        }
        self.forget_if_empty(&name);
    }

    pub fn put_slice(&mut self, slice: &api::EndpointSlice) {
        let id = Identity::of(&slice.metadata);
        let labels = slice.metadata.labels.as_ref();
        let service = labels.and_then(|labels| labels.get(SERVICE_NAME_LABEL));
        let read = Slice::read(slice, &self.node, &mut self.names);
        let (Some(service), Some(read)) = (service, read) else {
            return self.remove_slice(&id);
        };
        let before = self.slices.get(&name_of(&id));
        if before.is_some_and(|before| **before != **service) {
            self.remove_slice(&id);
        }
        let name = ServiceName::new(&id.namespace, service);
        let entry = self.services.entry(name.clone()).or_default();
        self.endpoints += read.endpoints.len();
        if entry.slices.get(&id.name) == Some(&read) {
            self.endpoints -= read.endpoints.len();
            return;
        }
        if let Some(before) = entry.slices.insert(Arc::clone(&id.name), read) {
            self.endpoints -= before.endpoints.len();
        }
        self.slices.insert(name_of(&id), Arc::clone(&name.name));
        self.changed.insert(name);
    }

    pub fn remove_slice(&mut self, id: &Identity) {
        let Some(service) = self.slices.remove(&name_of(id)) else {
            return;
        };
        let name = ServiceName {
            namespace: Arc::clone(&id.namespace),
            name: service,
        };
        if let Some(entry) = self.services.get_mut(&name) {
            if let Some(before) = entry.slices.remove(&id.name) {
                self.endpoints -= before.endpoints.len();
            }
            self.changed.insert(name.clone());
        }
        self.forget_if_empty(&name);
    }

    fn forget_if_empty(&mut self, name: &ServiceName) {
        let is_empty = |entry: &Entry| entry.spec.is_none() && entry.slices.is_empty();
        if self.services.get(name).is_some_and(is_empty) {
            self.services.remove(name);
        }
    }

    /// The services whose routes may have changed since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<ServiceName> {
        std::mem::take(&mut self.changed)
    }

    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// All services that are routed.
    pub fn names(&self) -> impl Iterator<Item = &ServiceName> {
        let routed = self.services.iter();
        routed
            .filter(|(_, entry)| entry.spec.is_some())
            .map(|(name, _)| name)
    }

    /// How many endpoints there are, ready or not.
    pub fn endpoints(&self) -> usize {
        self.endpoints
    }

    /// The routes of a service, each destination once; none if it does not exist.
    pub fn routes(&self, name: &ServiceName) -> Vec<Route> {
        let Some((spec, entry)) = self.routed(name) else {
            return Vec::new();
        };
        let mut routes: Vec<Route> = Vec::new();
        for port in &spec.ports {
            for address in &spec.cluster_ips {
                let candidates = self.candidates(entry, port, address.is_ipv4());
                routes.push(cluster_ip(spec, port, *address, &candidates));
                if port.node_port != 0 && *address == spec.cluster_ips[0] {
                    node_port(spec, port, &candidates, &mut routes);
                }
            }
        }
        routes.sort_by_key(|route| route.destination);
        routes.dedup_by_key(|route| route.destination);
        routes
    }

    /// What `healthCheckNodePort` of a service answers, if it has one.
    pub fn health_check(&self, name: &ServiceName) -> Option<HealthCheck> {
        let (spec, entry) = self.routed(name)?;
        if spec.health_check_node_port == 0 {
            return None;
        }
        let addresses: BTreeSet<IpAddr> = spec
            .ports
            .iter()
            .flat_map(|port| {
                let candidates = self.candidates(entry, port, spec.cluster_ips[0].is_ipv4());
                candidates.ready_here().collect::<Vec<_>>()
            })
            .collect();
        Some(HealthCheck {
            port: spec.health_check_node_port,
            local_endpoints: addresses.len(),
        })
    }

    fn routed(&self, name: &ServiceName) -> Option<(&Spec, &Entry)> {
        let entry = self.services.get(name)?;
        Some((entry.spec.as_ref()?, entry))
    }

    fn candidates<'a>(
        &'a self,
        entry: &'a Entry,
        port: &ServicePort,
        is_ipv4: bool,
    ) -> Candidates<'a> {
        let (slices, zone) = (entry.slices.values(), self.zone.as_deref());
        Candidates::new(slices, &port.name, port.protocol, is_ipv4, zone)
    }
}

fn cluster_ip(
    spec: &Spec,
    port: &ServicePort,
    address: IpAddr,
    candidates: &Candidates<'_>,
) -> Route {
    Route {
        destination: Destination {
            scope: Scope::ClusterIp(address),
            protocol: port.protocol,
            port: port.port,
        },
        action: if spec.internal_local {
            candidates.here()
        } else {
            candidates.anywhere()
        },
        affinity: spec.affinity,
        masquerade: false,
    }
}

/// With `externalTrafficPolicy: Local`, endpoints on this node see the client's address, and packets of the node itself go
/// to any endpoint. Otherwise every endpoint sees this node's address: only this node can undo what it changed.
fn node_port(
    spec: &Spec,
    port: &ServicePort,
    candidates: &Candidates<'_>,
    routes: &mut Vec<Route>,
) {
    let mut push = |scope, action, masquerade| {
        routes.push(Route {
            destination: Destination {
                scope,
                protocol: port.protocol,
                port: port.node_port,
            },
            action,
            affinity: spec.affinity,
            masquerade,
        });
    };
    if spec.external_local {
        push(Scope::NodePort, candidates.here(), false);
        push(Scope::NodePortFromHost, candidates.anywhere(), true);
    } else {
        push(Scope::NodePort, candidates.anywhere(), true);
    }
}

fn name_of(id: &Identity) -> ServiceName {
    ServiceName {
        namespace: Arc::clone(&id.namespace),
        name: Arc::clone(&id.name),
    }
}

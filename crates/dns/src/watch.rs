//! Keeps the zone up to date with Services and `EndpointSlice`s. While the API is unavailable, nothing changes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use futures_util::stream::StreamExt as _;
use kennel_client::Error;
use kennel_client::feed::{self, Change, Identity};
use kennel_types::EndpointSlice;
use kennel_types::service::{self as api, SERVICE_NAME_LABEL, ServiceType};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;

use crate::zone::{Key, Port, ReadyEndpoint, Service, Slice, Zone};

/// Runs forever.
pub(crate) async fn run(client: Client, zone: &RwLock<Zone>) -> Result<(), Error> {
    let services = Api::<api::Service>::all(client.clone());
    let mut services = feed::watch(services, Config::default(), "services");
    let slices = Api::<EndpointSlice>::all(client);
    let mut slices = feed::watch(slices, Config::default(), "endpointslices");
    // Until the initial lists are complete: names of an earlier run that are not listed are removed then.
    let mut listed = (Some(BTreeSet::new()), Some(BTreeSet::new()));
    loop {
        tokio::select! {
            change = services.next() => match change {
                None => return Err(Error::WatchEnded("services")),
                Some(Change::Applied(object)) => {
                    let key = key(&Identity::of(&object.metadata));
                    add(&mut listed.0, &key);
                    write(zone).put_service(key, service(&object));
                }
                Some(Change::Gone(id)) => write(zone).remove_service(&key(&id)),
                Some(Change::Synced) => {
                    if let Some(listed) = listed.0.take() {
                        write(zone).retain_services(&listed);
                    }
                }
            },
            change = slices.next() => match change {
                None => return Err(Error::WatchEnded("endpointslices")),
                Some(Change::Applied(object)) => {
                    let key = key(&Identity::of(&object.metadata));
                    add(&mut listed.1, &key);
                    update_slice(zone, key, &object);
                }
                Some(Change::Gone(id)) => write(zone).remove_slice(&key(&id)),
                Some(Change::Synced) => {
                    if let Some(listed) = listed.1.take() {
                        write(zone).retain_slices(&listed);
                    }
                }
            },
        }
    }
}

fn add(listed: &mut Option<BTreeSet<Key>>, key: &Key) {
    if let Some(listed) = listed {
        listed.insert(key.clone());
    }
}

fn write(zone: &RwLock<Zone>) -> RwLockWriteGuard<'_, Zone> {
    zone.write().unwrap_or_else(PoisonError::into_inner)
}

fn key(id: &Identity) -> Key {
    (id.namespace.clone(), id.name.clone())
}

fn update_slice(zone: &RwLock<Zone>, id: Key, object: &EndpointSlice) {
    let labels = object.metadata.labels.as_ref();
    let of = labels
        .and_then(|labels| labels.get(SERVICE_NAME_LABEL))
        .map(|name| Arc::from(name.as_str()));
    match of {
        Some(service) => write(zone).put_slice(id, service, slice(object)),
        None => write(zone).remove_slice(&id),
    }
}

fn service(object: &api::Service) -> Service {
    let spec = &object.spec;
    let external_name = spec.external_name.as_ref().filter(|name| !name.is_empty());
    let is_external = spec.r#type == ServiceType::ExternalName;
    let single = Some(&spec.cluster_ip).filter(|_| spec.cluster_ips.is_empty());
    let addresses = spec.cluster_ips.iter().chain(single);
    let ports = spec.ports.iter().map(|port| Port {
        name: port.name.to_ascii_lowercase(),
        protocol: protocol(&port.protocol),
        number: port.port,
    });
    Service {
        addresses: addresses.filter_map(|ip| ip.parse().ok()).collect(),
        external_name: external_name.filter(|_| is_external).cloned(),
        ports: ports.collect(),
    }
}

fn protocol(name: &str) -> String {
    let name = if name.is_empty() { "TCP" } else { name };
    name.to_ascii_lowercase()
}

/// The ready endpoints of a slice. Endpoints without the condition are ready.
fn slice(object: &EndpointSlice) -> Slice {
    let endpoints = object.endpoints.iter();
    let ready = endpoints.filter(|endpoint| endpoint.conditions.ready.unwrap_or(true));
    let ports = object.ports.iter().filter_map(|port| {
        Some(Port {
            name: port.name.to_ascii_lowercase(),
            protocol: protocol(&port.protocol),
            number: port.port?,
        })
    });
    Slice {
        ports: ports.collect(),
        endpoints: ready.flat_map(ready_endpoints).collect(),
    }
}

fn ready_endpoints(endpoint: &api::Endpoint) -> impl Iterator<Item = ReadyEndpoint> + '_ {
    let lower = |name: &Option<String>| name.as_deref().map(|n| Arc::from(n.to_ascii_lowercase()));
    let addresses = endpoint.addresses.iter();
    addresses.filter_map(move |address| {
        Some(ReadyEndpoint {
            address: address.parse::<IpAddr>().ok()?,
            hostname: lower(&endpoint.hostname),
            node: lower(&endpoint.node_name),
        })
    })
}

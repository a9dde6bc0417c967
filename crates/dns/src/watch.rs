//! Keeps the zone up to date with Services and `EndpointSlice`s. While the API is unavailable, nothing changes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use futures_util::stream::StreamExt as _;
use k8s_openapi::api::core::v1::Service as ApiService;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kennel_client::Error;
use kennel_client::feed::{self, Change, Identity};
use kube::api::Api;
use kube::runtime::watcher::Config;
use kube::{Client, ResourceExt as _};

use crate::zone::{Key, Port, ReadyEndpoint, Service, Slice, Zone};

const SERVICE: &str = "kubernetes.io/service-name";

/// Runs forever.
pub(crate) async fn run(client: Client, zone: &RwLock<Zone>) -> Result<(), Error> {
    let services = Api::<ApiService>::all(client.clone());
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
    let of = object
        .labels()
        .get(SERVICE)
        .map(|name| Arc::from(name.as_str()));
    match of {
        Some(service) => write(zone).put_slice(id, service, slice(object)),
        None => write(zone).remove_slice(&id),
    }
}

fn service(object: &ApiService) -> Service {
    let spec = object.spec.clone().unwrap_or_default();
    let external_name = spec.external_name.filter(|name| !name.is_empty());
    let mut addresses = spec.cluster_ips.unwrap_or_default();
    if addresses.is_empty() {
        addresses.extend(spec.cluster_ip);
    }
    let ports = spec.ports.unwrap_or_default().into_iter().map(|port| Port {
        name: port.name.unwrap_or_default().to_ascii_lowercase(),
        protocol: protocol(port.protocol.as_deref()),
        number: u16::try_from(port.port).unwrap_or_default(),
    });
    Service {
        addresses: addresses.iter().filter_map(|ip| ip.parse().ok()).collect(),
        external_name: external_name.filter(|_| spec.type_.as_deref() == Some("ExternalName")),
        ports: ports.collect(),
    }
}

fn protocol(name: Option<&str>) -> String {
    name.unwrap_or("TCP").to_ascii_lowercase()
}

/// The ready endpoints of a slice. Endpoints without the condition are ready.
fn slice(object: &EndpointSlice) -> Slice {
    let ready = |endpoint: &&Endpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.is_none_or(|c| c.ready.unwrap_or(true))
    };
    let endpoints = object.endpoints.iter().flatten().filter(ready);
    let ports = object.ports.iter().flatten().filter_map(|port| {
        Some(Port {
            name: port.name.clone().unwrap_or_default().to_ascii_lowercase(),
            protocol: protocol(port.protocol.as_deref()),
            number: u16::try_from(port.port?).ok()?,
        })
    });
    Slice {
        ports: ports.collect(),
        endpoints: endpoints.flat_map(ready_endpoints).collect(),
    }
}

fn ready_endpoints(endpoint: &Endpoint) -> impl Iterator<Item = ReadyEndpoint> + '_ {
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

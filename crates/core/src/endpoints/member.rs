//! One pod as a member of one service: its addresses, ports and conditions.

use std::net::IpAddr;
use std::sync::Arc;

use kennel_types::Timestamp;

use super::facts::{Distribution, Family, PodFacts, ServiceFacts, ServicePort, Target, Uid};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndpointPort {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: u16,
    pub(super) app_protocol: Option<String>,
}

/// The ports of all endpoints of a slice.
pub(super) type Ports = Arc<[EndpointPort]>;

/// One address of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    pub(super) ready: bool,
    pub(super) serving: bool,
    pub(super) terminating: bool,
    pub(super) hostname: Option<Arc<str>>,
    pub(super) node: Option<Arc<str>>,
    pub(super) zone: Option<Arc<str>>,
    /// Its hints name its zone, or its node and its zone as far as it has them.
    pub(super) hints: Option<Distribution>,
    /// The pod's name.
    pub(super) pod: Arc<str>,
    pub(super) uid: Uid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) ports: Ports,
    /// One for each family that the service and the pod share, in the service's order.
    pub(super) endpoints: Vec<Endpoint>,
    /// In the Endpoints object: among the ready addresses or not; `None` if it is not listed.
    pub(super) in_endpoints: Option<bool>,
    pub(super) ready_changed: Option<Timestamp>,
}

/// The pod as a member of the service, if it is one. `zone` is that of its node; `None` if the node does not exist.
pub(super) fn member(
    service: &ServiceFacts,
    pod: &PodFacts,
    zone: Option<&Option<Arc<str>>>,
) -> Option<Member> {
    if pod.terminal || pod.namespace != service.namespace || !service.matches(&pod.labels) {
        return None;
    }
    // A pod of a vanished node is left out, unless the service publishes not-ready addresses.
    if zone.is_none() && pod.node.is_some() && !service.publish_not_ready {
        return None;
    }
    let of_family = |family: &Family| {
        let address = pod.addresses.iter().find(|a| Family::of(**a) == *family)?;
        Some(endpoint(service, pod, *address, zone.cloned().flatten()))
    };
    let endpoints: Vec<Endpoint> = service.families.iter().filter_map(of_family).collect();
    if endpoints.is_empty() {
        return None;
    }
    let ports: Ports = service.ports.iter().filter_map(|p| port(p, pod)).collect();
    Some(Member {
        in_endpoints: in_endpoints(service, pod, &ports),
        ports,
        endpoints,
        ready_changed: pod.ready_changed,
    })
}

fn endpoint(
    service: &ServiceFacts,
    pod: &PodFacts,
    address: IpAddr,
    zone: Option<Arc<str>>,
) -> Endpoint {
    let below = pod.subdomain.as_deref() == Some(&*service.name);
    let ready = service.publish_not_ready || pod.ready && !pod.terminating;
    let wanted = service.distribution.filter(|_| ready);
    Endpoint {
        address,
        ready,
        hints: wanted.and_then(|wanted| hints(wanted, pod, zone.as_ref())),
        serving: pod.ready,
        terminating: pod.terminating,
        hostname: pod
            .hostname
            .clone()
            .filter(|name| below && !name.is_empty()),
        node: pod.node.clone(),
        zone,
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

/// The hints of an endpoint with this node and zone.
fn hints(wanted: Distribution, pod: &PodFacts, zone: Option<&Arc<str>>) -> Option<Distribution> {
    match wanted {
        Distribution::SameNode if pod.node.is_some() => Some(Distribution::SameNode),
        _ => zone.map(|_| Distribution::SameZone),
    }
}

/// The target port of a service port in this pod.
fn port(port: &ServicePort, pod: &PodFacts) -> Option<EndpointPort> {
    let number = match &port.target {
        Target::Number(number) => *number,
        Target::Name(name) => {
            let mut named = pod.ports.iter();
            named
                .find(|p| p.name == *name && p.protocol == port.protocol)?
                .number
        }
    };
    Some(EndpointPort {
        name: port.name.clone(),
        protocol: port.protocol.clone(),
        number,
        app_protocol: port.app_protocol.clone(),
    })
}

fn in_endpoints(service: &ServiceFacts, pod: &PodFacts, ports: &Ports) -> Option<bool> {
    if pod.terminating && !service.publish_not_ready {
        return None;
    }
    let reachable = if service.ports.is_empty() {
        service.headless
    } else {
        !ports.is_empty()
    };
    // The Endpoints object has the service's first family.
    let first = service.families.first()?;
    let has_address = pod.addresses.iter().any(|a| Family::of(*a) == *first);
    (reachable && has_address).then_some(service.publish_not_ready || pod.ready)
}

//! One pod as a member of one service: its addresses, its ports, and whether it is ready for traffic.

use std::net::IpAddr;
use std::sync::Arc;

use super::facts::{Family, PodFacts, ServiceFacts, ServicePort, Target, Uid};

/// A port that endpoints listen at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndpointPort {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: u16,
    pub(super) app_protocol: Option<String>,
}

/// The ports that endpoints have in common.
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
    /// The pod's name.
    pub(super) pod: Arc<str>,
    pub(super) uid: Uid,
}

/// A pod as a member of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) ports: Ports,
    /// One for each family that the service and the pod have, in the service's order.
    pub(super) endpoints: Vec<Endpoint>,
    /// In Endpoints: whether among the ready; nothing, if it does not stand there at all.
    pub(super) listed: Option<bool>,
    pub(super) ready_changed: Option<i64>,
}

/// The pod as a member of the service, if it is one. `zone` is its node's; nothing, if that node is not
/// there.
pub(super) fn member(
    service: &ServiceFacts,
    pod: &PodFacts,
    zone: Option<&Option<Arc<str>>>,
) -> Option<Member> {
    if pod.ended || pod.namespace != service.namespace || !service.matches(&pod.labels) {
        return None;
    }
    // A pod whose node is gone is as good as gone, unless all that was ever said of it is to be published.
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
        listed: listed(service, pod, &ports),
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
    Endpoint {
        address,
        ready: service.publish_not_ready || pod.ready && !pod.terminating,
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

/// Where a port of the service leads in this pod, if anywhere.
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

fn listed(service: &ServiceFacts, pod: &PodFacts, ports: &Ports) -> Option<bool> {
    if pod.terminating && !service.publish_not_ready {
        return None;
    }
    let reachable = if service.ports.is_empty() {
        service.headless
    } else {
        !ports.is_empty()
    };
    // Endpoints are of the service's first family.
    let first = service.families.first()?;
    let has_address = pod.addresses.iter().any(|a| Family::of(*a) == *first);
    (reachable && has_address).then_some(service.publish_not_ready || pod.ready)
}

//! The server over real sockets with fake upstreams, and mutated packets.

mod mutations;
mod sockets;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::resolver::Resolver;
use crate::zone::{Port, ReadyEndpoint, Service, Slice};

/// A service `web` with a cluster IP, a headless `agent` with this many endpoints, and `alias`, whose external name is
/// `example.com`.
fn resolver(endpoints: u16, upstreams: Vec<SocketAddr>) -> Arc<Resolver> {
    let resolver = Resolver::new(
        vec!["cluster".into(), "local".into()],
        upstreams,
        Vec::new(),
    );
    let key = |name: &str| ("ns".into(), name.into());
    let mut zone = resolver.zone.write().unwrap();
    let web = Service {
        addresses: vec![[10, 96, 0, 9].into()],
        external_name: None,
        ports: vec![Port {
            name: "http".into(),
            protocol: "tcp".into(),
            number: 80,
        }],
    };
    zone.put_service(key("web"), web);
    zone.put_service(key("agent"), Service::default());
    let alias = |target: &str| Service {
        external_name: Some(target.to_owned()),
        ..Service::default()
    };
    zone.put_service(key("alias"), alias("Example.com"));
    zone.put_service(key("inner"), alias("web.ns.svc.cluster.local"));
    zone.put_service(key("circle"), alias("circle.ns.svc.cluster.local"));
    let endpoint = |number: u16| {
        let [high, low] = number.to_be_bytes();
        ReadyEndpoint {
            address: IpAddr::from([10, 1, high, low]),
            hostname: None,
            node: Some(format!("node-{number}").into()),
        }
    };
    let slice = Slice {
        ports: Vec::new(),
        endpoints: (0..endpoints).map(endpoint).collect(),
    };
    zone.put_slice(key("agent-1"), "agent".into(), slice);
    let listed = ["web", "agent", "alias", "inner", "circle"].map(key);
    zone.retain_services(&BTreeSet::from(listed));
    zone.retain_slices(&BTreeSet::from([key("agent-1")]));
    drop(zone);
    Arc::new(resolver)
}

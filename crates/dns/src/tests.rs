//! The server over real sockets, with names made up and resolvers of our own; and packets that make no sense.

mod garbage;
mod over_sockets;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::answer::State;
use crate::zone::{Place, PlacePort, Service, Slice};

/// A server's state: a service `web` with an address, a headless `agent` with so many endpoints, and `alias`,
/// which leads to `example.com`.
fn state(endpoints: u16, upstreams: Vec<SocketAddr>) -> Arc<State> {
    let state = State::new(vec!["cluster".into(), "local".into()], upstreams);
    let key = |name: &str| ("ns".into(), name.into());
    let mut zone = state.zone.write().unwrap();
    let web = Service {
        addresses: vec![[10, 96, 0, 9].into()],
        alias: None,
        ports: vec![PlacePort {
            name: "http".into(),
            protocol: "tcp".into(),
            number: 80,
        }],
    };
    zone.put_service(key("web"), web);
    zone.put_service(key("agent"), Service::default());
    let alias = |target: &str| Service {
        alias: Some(target.to_owned()),
        ..Service::default()
    };
    zone.put_service(key("alias"), alias("Example.com"));
    zone.put_service(key("inner"), alias("web.ns.svc.cluster.local"));
    zone.put_service(key("circle"), alias("circle.ns.svc.cluster.local"));
    let place = |number: u16| {
        let [high, low] = number.to_be_bytes();
        Place {
            address: IpAddr::from([10, 1, high, low]),
            hostname: None,
            node: Some(format!("node-{number}").into()),
        }
    };
    let slice = Slice {
        ports: Vec::new(),
        places: (0..endpoints).map(place).collect(),
    };
    zone.put_slice(key("agent-1"), "agent".into(), slice);
    let listed = ["web", "agent", "alias", "inner", "circle"].map(key);
    zone.all_services(&BTreeSet::from(listed));
    zone.all_slices(&BTreeSet::from([key("agent-1")]));
    drop(zone);
    Arc::new(state)
}

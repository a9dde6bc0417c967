//! What must hold for any packet: the fuzz target of `kennel-testkit` calls this, and nothing else does.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use simple_dns::Packet;

use crate::forward::{Transport, read_addresses};
use crate::question::{self, HEADER, INTERNET, Question, record_type};
use crate::resolver::{Action, Resolver, UDP_MAX};
use crate::zone::{Port, Service};

/// Types that the codec of replies knows.
const KNOWN_TYPES: [u16; 7] = [
    record_type::A,
    record_type::NS,
    record_type::CNAME,
    record_type::PTR,
    record_type::TXT,
    record_type::AAAA,
    record_type::SRV,
];

/// Questions of clients, and answers of upstream resolvers.
pub fn packet(input: &[u8]) {
    let _addresses = read_addresses(input);
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(labels) = question::domain(text)
    {
        assert_eq!(question::domain(&labels.join(".")), Ok(labels), "{text:?}");
    }
    for transport in [Transport::Udp, Transport::Tcp] {
        for client in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 1)] {
            handle(input, transport, client.into());
        }
    }
}

fn handle(packet: &[u8], transport: Transport, client: IpAddr) {
    let read = Question::read(packet);
    match resolver().handle(packet, transport, client) {
        Action::Drop => assert!(packet.len() < HEADER || packet[2] & 0x80 != 0),
        Action::Forward(question) => {
            assert!(client.is_loopback(), "forwarded for a stranger");
            assert!(question.end <= packet.len());
            assert_eq!(Ok(question), read);
        }
        Action::Reply(reply) => {
            assert!(reply.len() >= HEADER);
            assert_eq!(reply[..2], packet[..2], "the id");
            assert_ne!(reply[2] & 0x80, 0, "a reply is one");
            assert!(transport != Transport::Udp || reply.len() <= usize::from(UDP_MAX));
            let known = |question: &Question| {
                KNOWN_TYPES.contains(&question.qtype) && question.class == INTERNET
            };
            if read.as_ref().is_ok_and(known) {
                assert!(Packet::parse(&reply).is_ok(), "{reply:?}");
            }
        }
    }
}

/// A zone with a service and an alias.
fn resolver() -> &'static Resolver {
    static RESOLVER: OnceLock<Resolver> = OnceLock::new();
    RESOLVER.get_or_init(|| {
        let domain = vec!["cluster".to_owned(), "local".to_owned()];
        let resolver = Resolver::new(domain, Vec::new(), Vec::new());
        let key = |name: &str| ("ns".into(), name.into());
        let port = Port {
            name: "http".into(),
            protocol: "tcp".into(),
            number: 80,
        };
        let web = Service {
            addresses: vec![Ipv4Addr::new(10, 96, 0, 9).into()],
            external_name: None,
            ports: vec![port],
        };
        let alias = Service {
            external_name: Some("web.ns.svc.cluster.local".to_owned()),
            ..Service::default()
        };
        let zone = resolver.zone.write();
        let mut zone = zone.unwrap_or_else(std::sync::PoisonError::into_inner);
        zone.put_service(key("web"), web);
        zone.put_service(key("alias"), alias);
        zone.retain_services(&BTreeSet::from([key("web"), key("alias")]));
        zone.retain_slices(&BTreeSet::new());
        drop(zone);
        resolver
    })
}

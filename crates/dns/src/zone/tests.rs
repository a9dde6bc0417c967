//! Lookups, as a table.

use super::*;
use crate::question::record_type::{A, AAAA, ANY, CNAME, NS, PTR, SOA, SRV, TXT};

fn key(namespace: &str, name: &str) -> Key {
    (namespace.into(), name.into())
}

fn port(name: &str, protocol: &str, number: u16) -> Port {
    Port {
        name: name.into(),
        protocol: protocol.into(),
        number,
    }
}

fn endpoint(address: &str, hostname: Option<&str>, node: &str) -> ReadyEndpoint {
    ReadyEndpoint {
        address: address.parse().unwrap(),
        hostname: hostname.map(Into::into),
        node: Some(node.into()),
    }
}

/// A service with a cluster IP, a headless one with pods on three nodes, an external name, and one without endpoints.
fn zone() -> Zone {
    let mut zone = Zone::new(vec!["cluster".into(), "local".into()]);
    let web = Service {
        addresses: vec!["10.96.0.9".parse().unwrap()],
        ports: vec![port("http", "tcp", 80), port("dns", "udp", 53)],
        ..Service::default()
    };
    zone.put_service(key("ns", "web"), web);
    zone.put_service(key("ns", "agent"), Service::default());
    zone.put_service(key("ns", "empty"), Service::default());
    let alias = Service {
        external_name: Some("example.com".into()),
        ..Service::default()
    };
    zone.put_service(key("ns", "alias"), alias);
    let slice = Slice {
        ports: vec![port("metrics", "tcp", 9100)],
        endpoints: vec![
            endpoint("10.0.1.1", None, "node-a"),
            endpoint("10.0.2.1", Some("second"), "b.rack.example"),
        ],
    };
    zone.put_slice(key("ns", "agent-1"), "agent".into(), slice);
    let clash = Slice {
        ports: vec![port("metrics", "tcp", 9200)],
        endpoints: vec![
            endpoint("10.0.3.1", Some("node-a"), "10-0-1-1"),
            endpoint("fd00::3", None, "second"),
        ],
    };
    zone.put_slice(key("ns", "agent-2"), "agent".into(), clash);
    zone
}

fn show(record: &Record) -> String {
    match record {
        Record::Address(address) => address.to_string(),
        Record::Service(port, target) => format!("{port} {target}"),
        Record::Pointer(target) => target.clone(),
        Record::Text(text) => (*text).to_owned(),
        Record::Authority => "SOA".to_owned(),
        Record::NameServer => "NS".to_owned(),
    }
}

fn look(zone: &Zone, name: &str, qtype: u16) -> String {
    let name: Vec<String> = name.split('.').map(str::to_owned).collect();
    match zone.lookup(&name, qtype) {
        Lookup::Records(records) => {
            let mut shown: Vec<String> = records.iter().map(show).collect();
            shown.sort();
            shown.join(", ")
        }
        Lookup::NoData => "nothing".to_owned(),
        Lookup::NxDomain => "missing".to_owned(),
        Lookup::Cname(alias) => format!("alias {alias}"),
        Lookup::OutOfZone => "foreign".to_owned(),
    }
}

fn check(name: &str, qtype: u16, expected: &str) {
    let whole = format!("{name}.cluster.local");
    assert_eq!(look(&zone(), &whole, qtype), expected, "{name} {qtype}");
}

#[test]
fn a_service_leads_to_its_address() {
    check("web.ns.svc", A, "10.96.0.9");
    check("web.ns.svc", AAAA, "nothing");
    check("web.ns.svc", TXT, "nothing");
    check("web.other.svc", A, "missing");
    check("other.ns.svc", A, "missing");
    check("web.ns.pod", A, "missing");
    check("web.ns", A, "missing");
}

#[test]
fn a_headless_service_leads_to_its_ready_endpoints() {
    check("agent.ns.svc", A, "10.0.1.1, 10.0.2.1, 10.0.3.1");
    check("agent.ns.svc", AAAA, "fd00::3");
    check("empty.ns.svc", A, "missing");
    check("_metrics._tcp.empty.ns.svc", SRV, "missing");
}

#[test]
fn an_endpoint_has_a_name_and_so_has_a_nodes_daemon() {
    check("second.agent.ns.svc", A, "10.0.2.1");
    check("10-0-1-1.agent.ns.svc", A, "10.0.1.1");
    check("fd00--3.agent.ns.svc", AAAA, "fd00::3");
    check("b.rack.example.agent.ns.svc", A, "10.0.2.1");
    check("b.rack.example.agent.ns.svc", AAAA, "nothing");
    check("c.rack.example.agent.ns.svc", A, "missing");
    check("b.rack.example.web.ns.svc", A, "missing");
    // A hostname wins over a node, and so does an address.
    check("node-a.agent.ns.svc", A, "10.0.3.1");
    check("second.agent.ns.svc", AAAA, "nothing");
    check("10-0-9-9.agent.ns.svc", A, "missing");
}

#[test]
fn names_between_others_exist() {
    check("rack.example.agent.ns.svc", A, "nothing");
    check("example.agent.ns.svc", A, "nothing");
    check("ample.agent.ns.svc", A, "missing");
    check("ns.svc", A, "nothing");
    check("n.svc", A, "missing");
    check("svc", A, "nothing");
    check("_tcp.web.ns.svc", SRV, "nothing");
    check("_sctp.web.ns.svc", SRV, "missing");
    assert_eq!(look(&zone(), "cluster.local", A), "nothing");
    assert_eq!(look(&zone(), "cluster.local", SOA), "SOA");
    assert_eq!(look(&zone(), "cluster.local", NS), "NS");
}

#[test]
fn ports_lead_to_who_listens_there() {
    check("_http._tcp.web.ns.svc", SRV, "80 web.ns.svc.cluster.local");
    check("_http._udp.web.ns.svc", SRV, "missing");
    check("_http._tcp.web.ns.svc", A, "nothing");
    check(
        "_metrics._tcp.agent.ns.svc",
        SRV,
        "9100 10-0-1-1.agent.ns.svc.cluster.local, 9100 second.agent.ns.svc.cluster.local, \
         9200 fd00--3.agent.ns.svc.cluster.local, 9200 node-a.agent.ns.svc.cluster.local",
    );
    check(
        "web.ns.svc",
        ANY,
        "10.96.0.9, 53 web.ns.svc.cluster.local, 80 web.ns.svc.cluster.local",
    );
}

#[test]
fn aliases_the_version_and_the_rest() {
    check("alias.ns.svc", A, "alias example.com");
    check("alias.ns.svc", CNAME, "alias example.com");
    check("x.alias.ns.svc", A, "missing");
    check("dns-version", TXT, "1.1.0");
    check("dns-version", A, "nothing");
    for foreign in ["example.com", "local", "xcluster.local", "x"] {
        assert_eq!(look(&zone(), foreign, A), "foreign", "{foreign}");
    }
}

#[test]
fn addresses_lead_back_to_names() {
    let pointer = |name: &str, expected: &str| {
        assert_eq!(look(&zone(), name, PTR), expected, "{name}");
    };
    pointer("9.0.96.10.in-addr.arpa", "web.ns.svc.cluster.local");
    pointer("1.2.0.10.in-addr.arpa", "second.agent.ns.svc.cluster.local");
    pointer(
        "1.1.0.10.in-addr.arpa",
        "10-0-1-1.agent.ns.svc.cluster.local",
    );
    let nibbles = "3.".to_owned() + &"0.".repeat(27) + "0.0.d.f.ip6.arpa";
    pointer(&nibbles, "fd00--3.agent.ns.svc.cluster.local");
    pointer("1.2.0.192.in-addr.arpa", "foreign");
    pointer("1.2.in-addr.arpa", "foreign");
    pointer("+9.0.96.10.in-addr.arpa", "foreign");
    let doubled = "33.".to_owned() + &nibbles["3.0.".len()..];
    pointer(&format!("0.{doubled}"), "foreign");
    assert_eq!(look(&zone(), "9.0.96.10.in-addr.arpa", A), "nothing");
}

#[test]
fn of_more_than_any_packet_holds_each_has_a_chance() {
    let mut zone = zone();
    let address =
        |number: u16| IpAddr::from([10, 9, number.to_be_bytes()[0], number.to_be_bytes()[1]]);
    for slice in 0..90_u16 {
        let numbers = slice * 100..(slice + 1) * 100;
        let endpoints = numbers.map(|number| endpoint(&address(number).to_string(), None, "n"));
        let slice_of = Slice {
            ports: vec![port("p", "tcp", 1), port("q", "tcp", 2)],
            endpoints: endpoints.collect(),
        };
        zone.put_slice(
            key("ns", &format!("empty-{slice}")),
            "empty".into(),
            slice_of,
        );
    }
    let asked = |name: &str, qtype: u16| {
        let name: Vec<String> = name.split('.').map(str::to_owned).collect();
        match zone.lookup(&name, qtype) {
            Lookup::Records(records) => records,
            other => panic!("{other:?}"),
        }
    };
    let mut seen = BTreeSet::new();
    for _ in 0..30 {
        let records = asked("empty.ns.svc.cluster.local", A);
        let few: BTreeSet<String> = records.iter().map(show).collect();
        assert!((4000..5000).contains(&few.len()), "{}", few.len());
        seen.extend(few);
    }
    assert!(seen.len() > 8_900, "{}", seen.len());
    let ports = asked("_q._tcp.empty.ns.svc.cluster.local", SRV);
    assert!((4000..5000).contains(&ports.len()), "{}", ports.len());
    assert!(
        ports
            .iter()
            .all(|record| show(record).starts_with("2 10-9-"))
    );
}

#[test]
fn an_address_that_moves_between_slices_is_never_lost_and_all_can_be_forgotten() {
    let mut zone = zone();
    let moved = Slice {
        ports: Vec::new(),
        endpoints: vec![endpoint("10.0.1.1", None, "node-c")],
    };
    zone.put_slice(key("ns", "agent-3"), "agent".into(), moved);
    zone.remove_slice(&key("ns", "agent-1"));
    let name = "10-0-1-1.agent.ns.svc.cluster.local";
    assert_eq!(look(&zone, name, A), "10.0.1.1");
    assert_eq!(
        look(&zone, "node-c.agent.ns.svc.cluster.local", A),
        "10.0.1.1"
    );
    zone.retain_slices(&BTreeSet::new());
    assert_eq!(look(&zone, name, A), "missing");
    assert!(!zone.is_synced());
    zone.retain_services(&BTreeSet::new());
    assert!(zone.is_synced());
    assert!(zone.services.is_empty() && zone.endpoints.is_empty() && zone.by_address.is_empty());
}

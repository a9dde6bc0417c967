//! The path between two nodes, and the plan of one of them, by tables.

use std::collections::BTreeMap;

use super::object::{Directory, NodeFacts, Stored, Write, data, parse};
use super::plan::plan;
use super::*;

fn member(node: &str, number: u8, link: &str, mode: Mode, direct: Option<bool>) -> Member {
    let (address, bits) = link.split_once('/').unwrap();
    let address: Ipv4Addr = address.parse().unwrap();
    Member {
        node: node.into(),
        range: Cidr::containing(Ipv4Addr::new(10, 128, number, 0), 24),
        address,
        link: Cidr::containing(address, bits.parse().unwrap()),
        mode,
        direct,
    }
}

#[test]
fn n1_2_both_ends_decide_alike() {
    use Mode::{Auto, HostGw, Vxlan};
    const YES: Option<bool> = Some(true);
    let check = |one: (Mode, Option<bool>), other: (Mode, Option<bool>), near: Path, far: Path| {
        for (link, expected) in [("10.0.0.2/24", near), ("10.0.1.2/24", far)] {
            let one = member("a", 1, "10.0.0.1/24", one.0, one.1);
            let other = member("b", 2, link, other.0, other.1);
            assert_eq!(path(&one, &other), expected, "{one:?} {other:?}");
            assert_eq!(path(&other, &one), expected, "{other:?} {one:?}");
        }
    };
    check((Auto, YES), (Auto, YES), Path::Direct, Path::Vxlan);
    check((Auto, YES), (Auto, None), Path::Vxlan, Path::Vxlan);
    check((Auto, YES), (Auto, Some(false)), Path::Vxlan, Path::Vxlan);
    check((Auto, YES), (Vxlan, YES), Path::Vxlan, Path::Vxlan);
    check((Auto, None), (HostGw, None), Path::Direct, Path::None);
    check((HostGw, None), (HostGw, None), Path::Direct, Path::None);
    check((HostGw, None), (Vxlan, None), Path::None, Path::None);
    check((Vxlan, None), (Vxlan, None), Path::Vxlan, Path::Vxlan);
}

#[test]
fn a_link_counts_only_if_both_ends_are_on_it() {
    let one = member("a", 1, "10.0.0.1/16", Mode::Auto, Some(true));
    let other = member("b", 2, "10.0.1.2/24", Mode::Auto, Some(true));
    assert_eq!(path(&one, &other), Path::Vxlan);
}

#[test]
fn the_plan_has_a_path_to_every_other_node() {
    let own = member("a", 1, "10.0.0.1/24", Mode::Auto, Some(true));
    let near = member("b", 2, "10.0.0.2/24", Mode::Auto, Some(true));
    let far = member("c", 3, "10.0.1.3/24", Mode::Auto, None);
    let lost = member("d", 4, "10.0.1.4/24", Mode::HostGw, None);
    let plan = plan(&own, [&own, &near, &far, &lost]);
    let shown: Vec<String> = plan
        .routes
        .iter()
        .map(|route| format!("{} via {} {:?}", route.destination, route.via, route.device))
        .collect();
    assert_eq!(
        shown,
        [
            "10.128.2.0/24 via 10.0.0.2 Underlay",
            "10.128.2.255/32 via 10.0.0.2 Underlay",
            "10.128.3.0/24 via 10.128.3.0 Vxlan",
        ]
    );
    assert_eq!(
        plan.neighbours,
        BTreeMap::from([(far.tunnel_address(), far.tunnel_mac())])
    );
    assert_eq!(
        plan.forwarding,
        BTreeMap::from([(far.tunnel_mac(), far.address)])
    );
    assert!(plan.direct_nodes.iter().eq([&near.address]));
    assert!(plan.unreachable.iter().eq(["d"]));
    assert_eq!(
        plan.probes,
        BTreeMap::from([(near.address, near.probe_address())])
    );
}

#[test]
fn of_two_nodes_with_one_range_the_first_counts() {
    let own = member("z", 1, "10.0.0.1/24", Mode::HostGw, None);
    let first = member("a", 2, "10.0.0.2/24", Mode::HostGw, None);
    let second = member("b", 2, "10.0.0.3/24", Mode::HostGw, None);
    let thief = member("c", 1, "10.0.0.4/24", Mode::HostGw, None);
    let plan = plan(&own, [&second, &thief, &first]);
    assert!(
        plan.routes
            .iter()
            .map(|route| route.via)
            .eq([first.address])
    );
    assert!(plan.unreachable.iter().eq(["b", "c"]));
}

fn facts(number: u8) -> NodeFacts {
    NodeFacts {
        name: format!("n{number}").into(),
        uid: format!("uid-{number}").into(),
        mode: Some("auto".to_owned()),
        link: Some(format!("10.0.0.{number}/24")),
        direct: None,
        addresses: vec![Ipv4Addr::new(10, 0, 0, number)],
        range: Some(Cidr::containing(Ipv4Addr::new(10, 128, number, 0), 24)),
    }
}

fn store(object: &serde_json::Value) -> Stored {
    let meta = &object["metadata"];
    Stored {
        name: meta["name"].as_str().unwrap().into(),
        uid: "object".into(),
        resource_version: "7".to_owned(),
        owners: vec![
            meta["ownerReferences"][0]["uid"]
                .as_str()
                .unwrap()
                .to_owned(),
        ],
        data: serde_json::from_value(object["data"].clone()).unwrap(),
    }
}

#[test]
fn n1_4_heartbeats_write_nothing_and_changes_write_one_object() {
    let cluster: Cidr = "10.128.0.0/9".parse().unwrap();
    let mut directory = Directory::new(cluster);
    for number in 1..=3 {
        directory.on_node(facts(number));
    }
    let writes = directory.take_writes();
    assert_eq!(writes.len(), 3);
    for write in writes {
        let Write::Create(object) = &write else {
            panic!("{write:?}");
        };
        directory.on_object(store(object));
        directory.written(write.name());
    }
    assert_eq!(directory.take_writes(), []);
    directory.on_node(facts(2));
    assert_eq!(directory.take_writes(), []);

    let moved = NodeFacts {
        addresses: vec![Ipv4Addr::new(10, 0, 0, 9)],
        link: Some("10.0.0.9/24".to_owned()),
        ..facts(2)
    };
    directory.on_node(moved);
    let writes = directory.take_writes();
    let [Write::Replace(object)] = &writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!(object["data"]["address"], "10.0.0.9/24");
    assert_eq!(object["metadata"]["resourceVersion"], "7");
    directory.on_object(store(object));
    assert_eq!(directory.take_writes(), [], "one write at a time");
    directory.written("n2");
    directory.retry("n2");
    assert_eq!(directory.take_writes(), []);

    directory.on_node_deleted("n3", "uid-3");
    assert_eq!(
        directory.take_writes(),
        [Write::DeleteIfNodeIsGone("n3".into(), "object".into())]
    );
    let none = NodeFacts {
        mode: None,
        ..facts(1)
    };
    directory.on_node(none);
    assert_eq!(
        directory.take_writes(),
        [Write::Delete("n1".into(), "object".into())]
    );
}

#[test]
fn a_link_of_a_foreign_address_is_not_published() {
    let lying = NodeFacts {
        link: Some("10.0.0.200/24".to_owned()),
        ..facts(1)
    };
    let mut directory = Directory::new("10.128.0.0/9".parse().unwrap());
    directory.on_node(lying);
    let writes = directory.take_writes();
    let [Write::Create(object)] = &writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!(object["data"]["address"], "10.0.0.1/32");
}

#[test]
fn published_data_is_read_back() {
    let cluster: Cidr = "10.128.0.0/9".parse().unwrap();
    for direct in [None, Some(true), Some(false)] {
        let one = member("a", 1, "10.0.0.1/24", Mode::Auto, direct);
        assert_eq!(parse("a", &data(&one, cluster)), Some((one, cluster)));
    }
    assert_eq!(parse("a", &BTreeMap::new()), None);
}

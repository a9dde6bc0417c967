//! Checks of packets, by example.

use std::net::Ipv4Addr;

use super::*;
use crate::doctor::paths::silent;

fn vxlan(underlay_mtu: u32, mtu: u32) -> VxlanMtu {
    VxlanMtu {
        underlay: "eth0".to_owned(),
        underlay_mtu,
        mtu,
    }
}

#[test]
fn packets_that_are_too_large_are_found() {
    let pods = |mtu: u32| serde_json::json!({"plugins": [{"type": "ptp", "mtu": mtu}]});
    assert!(mtu(Some(&pods(1450)), Some(&vxlan(1500, 1450)), &[]).is_ok);
    let shrunk = mtu(Some(&pods(1450)), Some(&vxlan(1400, 1350)), &[]);
    assert!(
        !shrunk.is_ok && shrunk.text.contains("each new pod has 1450"),
        "{shrunk:?}"
    );
    assert!(!mtu(None, Some(&vxlan(1400, 1450)), &[]).is_ok);
    assert!(mtu(None, None, &[]).is_ok);
    let links = [("eth1".to_owned(), 9000), ("eth0".to_owned(), 1400)];
    let direct = mtu(Some(&pods(1500)), None, &links);
    assert!(
        !direct.is_ok
            && direct
                .text
                .contains("each new pod has 1500 and eth0 has 1400"),
        "{direct:?}"
    );
    assert!(mtu(Some(&pods(1400)), None, &links).is_ok);
}

#[test]
fn a_dropping_firewall_is_named() {
    let chain = "table filter, chain FORWARD".to_owned();
    let found = forwarded(&[chain], Legacy::Refuses);
    assert!(!found.is_ok);
    let expected = "firewall: table filter, chain FORWARD; iptables-legacy, chain FORWARD drops";
    assert!(found.text.starts_with(expected), "{found:?}");
    assert!(forwarded(&[], Legacy::Forwards).is_ok);
    let not_seen = forwarded(&[], Legacy::NotSeen);
    assert!(not_seen.text.contains("were not seen"), "{not_seen:?}");
}

#[test]
fn kernels_are_compared_by_number() {
    for (release, expected) in [
        ("5.4.0-182-generic", Some((5, 4))),
        ("5.10.0", Some((5, 10))),
        ("6.18.44-fc-v657", Some((6, 18))),
        ("unknown", None),
    ] {
        assert_eq!(version(release), expected);
    }
    let old = checksums_of("5.4.0-182-generic").unwrap();
    let said = "checksums: the kernel 5.4.0-182-generic is older than 5.7 and computes those of masqueraded VXLAN packets wrongly: \
                ethtool -K kennel-vxlan tx-checksum-ip-generic off";
    assert!(!old.is_ok && old.text.contains(said), "{old:?}");
    assert_eq!(checksums_of("5.10.0"), None);
    assert_eq!(checksums_of("unknown"), None);
}

#[test]
fn filters_that_differ_are_told_by_device() {
    let settings = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |(setting, name): &(&str, &str)| ((*setting).to_owned(), (*name).to_owned());
        all.iter().map(owned).collect()
    };
    assert_eq!(filters("2", &[]), "loose");
    assert_eq!(
        filters("1", &settings(&[("1", "eth0"), ("1", "eth1")])),
        "strict"
    );
    let mixed = settings(&[
        ("0", "a"),
        ("0", "b"),
        ("0", "c"),
        ("0", "d"),
        ("2", "eth0"),
    ]);
    assert_eq!(filters("0", &mixed), "off on a, b, c, …; loose on eth0");
}

#[test]
fn firewalls_of_this_machine_are_named_when_no_node_answers() {
    let nodes = [Ipv4Addr::new(10, 128, 1, 0)];
    let found = silent(&nodes, &["table filter, chain INPUT".to_owned()]);
    assert!(!found.is_ok);
    for part in [
        "10.128.1.0",
        "UDP port 4789",
        "here, table filter, chain INPUT drops",
    ] {
        assert!(found.text.contains(part), "{found:?}");
    }
}

//! Which pods and nodes reach each other, and with which source address, in each mode (N1.2, N1.3).

use std::net::Ipv4Addr;

use kennel_testkit::machine::{Links, possible};
use kennel_testkit::{Deadline, eventually};

use super::fixture::{Cluster, Outside, TIMEOUT};

/// Pods and hosts of two machines reach each other; `vxlan` says by which path.
fn everybody_reaches_everybody(cluster: &Cluster, vxlan: bool) {
    let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    let near = cluster.pod("near", 0, false);
    until_paths(cluster, [b, a], vxlan);
    assert_eq!(
        cluster.seen_by("a", b),
        a,
        "pods see each other's own addresses"
    );
    assert_eq!(cluster.seen_by("b", a), b);
    assert_eq!(cluster.seen_by("a", near), a, "on one node, too");
    let (host_a, host_b) = (
        cluster.pod("host-a", 0, true),
        cluster.pod("host-b", 1, true),
    );
    assert_eq!(
        cluster.seen_by("a", host_a),
        a,
        "a pod reaches its own node without NAT"
    );
    let expected = if vxlan { host_a } else { a };
    assert_eq!(cluster.seen_by("a", host_b), expected, "and other nodes");
    cluster.host_seen_by(0, a);
    cluster.host_seen_by(0, b);
    let _outside = Outside::start(&cluster.links);
    let router = cluster.links.address(0, 1);
    assert_eq!(
        cluster.seen_by("a", router),
        host_a,
        "what leaves the cluster is masqueraded"
    );
}

/// Waits until the first two machines use VXLAN, or not, to these addresses.
fn until_paths(cluster: &Cluster, to: [Ipv4Addr; 2], vxlan: bool) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let paths = [cluster.uses_vxlan(0, to[0]), cluster.uses_vxlan(1, to[1])];
        (paths == [vxlan; 2]).then_some(()).ok_or_else(|| {
            let logs: Vec<String> = cluster.machines.iter().map(|one| one.agent.log()).collect();
            format!("{paths:?} {}", logs.join("\n"))
        })
    });
}

#[test]
fn n1_3_direct_routes_carry_packets_of_pods() {
    if possible() {
        let cluster = Cluster::new("host-gw", &[0, 0]);
        everybody_reaches_everybody(&cluster, false);
    }
}

#[test]
fn n1_3_vxlan_carries_packets_of_pods() {
    if possible() {
        let cluster = Cluster::new("vxlan", &[0, 0]);
        everybody_reaches_everybody(&cluster, true);
        let mtu = cluster
            .kubectl
            .run(&["exec", "a", "--", "cat", "/sys/class/net/eth0/mtu"])
            .ok();
        assert_eq!(mtu.trim(), "1450");
    }
}

#[test]
fn n1_2_auto_takes_direct_routes_where_a_probe_answers() {
    if possible() {
        let cluster = Cluster::new("auto", &[0, 0]);
        everybody_reaches_everybody(&cluster, false);
        let mtu = cluster
            .kubectl
            .run(&["exec", "a", "--", "cat", "/sys/class/net/eth0/mtu"])
            .ok();
        assert_eq!(mtu.trim(), "1450");
    }
}

#[test]
fn n1_2_auto_takes_vxlan_on_a_link_that_drops_foreign_sources() {
    if possible() {
        let cluster = Cluster::with("auto", &[0, 0], Links::drop_foreign_sources);
        everybody_reaches_everybody(&cluster, true);
    }
}

#[test]
fn n1_2_auto_takes_vxlan_through_a_router() {
    if possible() {
        let cluster = Cluster::new("auto", &[0, 1]);
        everybody_reaches_everybody(&cluster, true);
    }
}

/// As when a cloud begins to check the addresses of packets, or machines move to one that does.
#[test]
fn n1_2_auto_takes_vxlan_once_a_direct_link_drops_foreign_sources() {
    if possible() {
        let cluster = Cluster::with_fast_probes(&[0, 0]);
        let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
        until_paths(&cluster, [b, a], false);
        assert_eq!(cluster.seen_by("a", b), a);
        cluster.links.drop_foreign_sources();
        until_paths(&cluster, [b, a], true);
        assert_eq!(cluster.seen_by("a", b), a);
        assert_eq!(cluster.seen_by("b", a), b);
    }
}

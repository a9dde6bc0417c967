//! `kennel doctor network` finds what breaks the network of a machine, and says what to do.

use kennel_testkit::machine::{Links, possible};
use kennel_testkit::{Deadline, eventually};

use super::fixture::{CLUSTER, Cluster, KENNEL, Machine, TIMEOUT};

/// The exit code, and the lines.
fn examine(machine: &Machine) -> (Option<i32>, String) {
    let output = machine
        .network()
        .command(KENNEL)
        .args([
            "doctor",
            "network",
            "--cni-bin-dir=/usr/lib/cni",
            "--cluster-dns=127.0.0.1",
            "--cni-conf-dir",
        ])
        .arg(machine.containerd.directory().join("cni"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.code(),
        text + &String::from_utf8_lossy(&output.stderr),
    )
}

fn problems(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with("PROBLEM"))
        .collect()
}

#[test]
fn the_doctor_names_what_is_wrong_and_the_remedy() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("auto", &[0]);
    cluster.pod("a", 0, false);
    let (code, text) = examine(&cluster.machines[0]);
    // Nobody serves DNS at the address that it was given.
    assert_eq!((code, problems(&text).len()), (Some(1), 1), "{text}");
    assert!(
        problems(&text)[0].contains("names: the cluster's DNS at 127.0.0.1 does not answer"),
        "{text}"
    );
    assert!(
        text.contains("ok       MTU: pods 1450, eth0 1500\n"),
        "{text}"
    );
    assert!(
        text.contains("ok       reverse-path filter: strict"),
        "{text}"
    );

    let machine = &mut cluster.machines[0];
    machine.agent.stop();
    machine.run(
        "echo 0 > /proc/sys/net/ipv4/ip_forward; ip link set eth0 mtu 1400; nft delete table ip kennel-network; \
         nft 'table inet docker { chain forward { type filter hook forward priority 0; policy drop; }; }'; \
         ip link add vpn0 type bridge; ip link set vpn0 up; ip route add 10.192.0.128/25 dev vpn0",
    );
    let (code, text) = examine(machine);
    assert_eq!(code, Some(1), "{text}");
    for (what, remedy) in [
        (
            "agent: there is a pod network and no agent",
            "start the agent",
        ),
        ("forwarding: off", "sysctl -w net.ipv4.ip_forward=1"),
        (
            "MTU: the VXLAN device has 1450 and eth0 has 1400",
            "Restart the agent",
        ),
        (
            "masquerading: the nftables table kennel-network is missing",
            "restart the agent",
        ),
        (
            "firewall: table docker, chain forward drops forwarded packets",
            "DOCKER-USER",
        ),
        (
            "routes: the route 10.192.0.128/25 overlaps the pods' range 10.192.0.0/24",
            "another --cluster-cidr",
        ),
    ] {
        let line = problems(&text).into_iter().find(|line| line.contains(what));
        assert!(
            line.is_some_and(|line| line.contains(remedy)),
            "{what}: {text}"
        );
    }
}

#[test]
fn the_doctor_finds_firewalls_that_refuse_by_a_rule_and_closed_ports() {
    if !possible() {
        return;
    }
    let cluster = Cluster::new("vxlan", &[0, 0]);
    let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    assert_eq!(cluster.seen_by("a", b), a);
    let machine = &cluster.machines[0];
    let (_, text) = examine(machine);
    let answers = text.lines().any(|line| {
        line.starts_with("ok       VXLAN: the node with 10.192.") && line.ends_with(" answers")
    });
    assert!(answers, "{text}");
    let until_problem = |script: &str, what: &str| {
        machine.run(script);
        let (code, text) = examine(machine);
        let found = problems(&text).into_iter().any(|line| line.contains(what));
        assert!(found && code == Some(1), "{script}: {text}");
    };
    // As firewalld and iptables-services have it.
    until_problem(
        "nft 'table inet firewalld { chain filter_FORWARD { type filter hook forward priority 10; policy accept; \
         ct state established accept; reject with icmpx admin-prohibited; }; }'",
        "firewall: table firewalld, chain filter_FORWARD drops forwarded packets",
    );
    until_problem(
        "nft delete table inet firewalld; iptables-nft -A FORWARD -j REJECT",
        "firewall: table filter, chain FORWARD drops forwarded packets",
    );
    // The doctor's own remedy.
    machine.run(&format!(
        "iptables-nft -P FORWARD DROP; iptables-nft -I FORWARD -s {CLUSTER} -j ACCEPT; iptables-nft -I FORWARD -d {CLUSTER} -j ACCEPT"
    ));
    let (_, text) = examine(machine);
    assert!(
        text.contains("ok       firewall: forwards packets"),
        "{text}"
    );
    until_problem(
        "nft delete table ip filter; iptables-legacy -P FORWARD DROP",
        "firewall: iptables-legacy, chain FORWARD drops forwarded packets",
    );
    machine.run(&format!(
        "iptables-legacy -A FORWARD -s {CLUSTER} -j ACCEPT; iptables-legacy -A FORWARD -d {CLUSTER} -j ACCEPT"
    ));
    let (_, text) = examine(machine);
    assert!(
        text.contains("ok       firewall: forwards packets"),
        "{text}"
    );
    // What others refuse of theirs is their business.
    machine.run("nft 'table ip6 six { chain forward { type filter hook forward priority 0; policy drop; }; }'");
    let (_, text) = examine(machine);
    assert!(
        text.contains("ok       firewall: forwards packets"),
        "{text}"
    );
    // UDP of VXLAN is closed here.
    until_problem(
        "nft 'table inet closed { chain input { type filter hook input priority 0; policy drop; \
         tcp dport 1-65535 accept; icmp type echo-request accept; }; }'",
        "here, table closed, chain input drops what no rule of it accepts",
    );
}

#[test]
fn the_doctor_compares_the_pods_mtu_with_that_of_the_link() {
    if !possible() {
        return;
    }
    let cluster = Cluster::new("host-gw", &[0, 0]);
    let machine = &cluster.machines[0];
    let (_, text) = examine(machine);
    let expected = "ok       MTU: pods 1500, eth0 1500, direct routes only\n";
    assert!(text.contains(expected), "{text}");
    machine.run("ip link set eth0 mtu 1400; ip link add vpn0 type bridge; echo 2 > /proc/sys/net/ipv4/conf/eth0/rp_filter");
    let (_, text) = examine(machine);
    let found = problems(&text)
        .into_iter()
        .any(|line| line.contains("MTU: each new pod has 1500 and eth0 has 1400"));
    assert!(found, "{text}");
    let expected = "ok       reverse-path filter: strict on vpn0; loose on eth0";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_doctor_finds_the_names_of_a_cluster() {
    if !possible() {
        return;
    }
    let cluster = Cluster::with_proxy("auto", &[0]);
    let machine = &cluster.machines[0];
    machine.agent.wait_for("routing services");
    eventually(Deadline::seconds(TIMEOUT), || {
        let output = machine
            .network()
            .command(KENNEL)
            .args([
                "doctor",
                "network",
                "--cni-bin-dir=/usr/lib/cni",
                "--cni-conf-dir",
            ])
            .arg(machine.containerd.directory().join("cni"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = "ok       names: 10.96.0.10 says that kubernetes.default.svc.cluster.local is 10.96.0.1\n";
        let services = "ok       services: by the nftables table kennel-services\n";
        let is_fine = output.status.success() && text.contains(expected) && text.contains(services);
        is_fine.then_some(()).ok_or(text)
    });
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_machine_without_a_pod_network() {
    if !possible() {
        return;
    }
    let links = Links::new(1);
    let machine = links.machine(0);
    let output = machine
        .command(KENNEL)
        .args(["doctor", "network", "--cni-conf-dir=/nowhere"])
        // The test's own machine may lead to the DNS server of a cluster.
        .arg("--cluster-dns=127.0.0.1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(problems(&text).len(), 1, "{text}");
    assert!(problems(&text)[0].contains("names:"), "{text}");
    assert!(
        text.contains("agent: none manages a pod network on this machine"),
        "{text}"
    );
}

#[test]
fn the_doctor_finds_direct_routes_whose_link_drops_packets_of_pods() {
    if !possible() {
        return;
    }
    let cluster = Cluster::new("auto", &[0, 0]);
    let machine = &cluster.machines[0];
    let other = cluster.machines[1].address();
    let answers = format!("ok       direct routes: the node {other} answers a pod's address\n");
    eventually(Deadline::seconds(TIMEOUT), || {
        let (_, text) = examine(machine);
        text.contains(&answers).then_some(()).ok_or(text)
    });
    cluster.links.drop_foreign_sources();
    let (code, text) = examine(machine);
    let silent = format!("direct routes: no answer to a pod's address from {other}: ");
    let found = problems(&text)
        .into_iter()
        .any(|line| line.contains(&silent));
    assert!(found && code == Some(1), "{text}");
}

//! `kennel doctor network` finds what breaks the network of a machine, and says what to do.

use kennel_testkit::machine::{Links, possible};

use super::fixture::{Cluster, KENNEL, Machine};

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

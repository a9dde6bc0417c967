//! Machines that cannot have the pod network: their routes are in the way, or their kernel refuses. The node says so, and nothing
//! half made is left.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use kennel_testkit::machine::{Containerd, possible};
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{CLUSTER, Cluster, KENNEL, Machine, TIMEOUT, image};
use super::traffic::Traffic;

/// Waits until a node says both that it has no network and that it is not ready, for this reason.
fn until_refused(cluster: &Cluster, machine: &Machine, reason: &str, expected: &str) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let condition = cluster.condition(machine, "NetworkUnavailable", "True");
        let message = condition["message"].as_str().unwrap_or_default();
        let is_expected = condition["reason"] == reason && message.contains(expected);
        is_expected
            .then_some(())
            .ok_or_else(|| format!("{condition}\n{}", machine.agent.log()))
    });
    let ready = cluster.condition(machine, "Ready", "False");
    assert!(
        ready["message"].as_str().unwrap().contains(expected),
        "{ready}"
    );
}

#[test]
fn a_kernel_that_refuses_rules_makes_the_node_not_ready_and_leaves_no_half_network() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("vxlan", &[0]);
    let network = cluster.links.machine(0);
    // Another program has our table, and nobody else may change it.
    let mut owner = network
        .command("nft")
        .arg("-i")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let table = "table ip kennel-network { flags owner; }";
    writeln!(owner.stdin.as_mut().unwrap(), "{table}").unwrap();
    cluster.join_in(network);
    let machine = &cluster.machines[1];
    let refusal = "cannot set up masquerading: Operation not permitted";
    until_refused(&cluster, machine, "PodNetworkKernelRefused", refusal);
    // The device was made before the rules.
    eventually(Deadline::seconds(TIMEOUT), || {
        let traces = machine.traces();
        (traces == "table ip kennel-network\n")
            .then_some(())
            .ok_or(traces)
    });
    // The table goes with its owner.
    owner.kill().unwrap();
    owner.wait().unwrap();
    cluster.ready();
    let (here, there) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    assert_eq!(cluster.seen_by("a", there), here);
}

#[test]
fn an_agent_without_the_right_to_change_networks_says_so_and_makes_nothing() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::with_proxy("auto", &[0]);
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("kennel");
    let script = format!(
        "#!/bin/sh\nexec setpriv --bounding-set=-net_admin --inh-caps=-net_admin {KENNEL} \"$@\"\n"
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let containerd = Containerd::builder()
        .without_pod_network()
        .in_network(cluster.links.machine(0))
        .start();
    cluster.join_as(program, containerd, &[]);
    let machine = &cluster.machines[1];
    let refusal = "Operation not permitted (os error 1); the agent needs the capability NET_ADMIN, or start it with --network=none";
    until_refused(&cluster, machine, "PodNetworkKernelRefused", refusal);
    let services = "services are not routed: cannot write nftables rules: Operation not permitted (os error 1); it takes the \
         capability NET_ADMIN, or --proxy=none";
    eventually(Deadline::seconds(TIMEOUT), || {
        let ready = cluster.condition(machine, "Ready", "False");
        let message = ready["message"].as_str().unwrap_or_default();
        message.contains(services).then_some(()).ok_or(ready)
    });
    assert_eq!(machine.traces(), "");
    assert_eq!(machine.run("nft list ruleset"), "");
}

#[test]
fn a_range_that_overlaps_a_route_of_the_machine_is_refused_with_both_named() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("auto", &[0]);
    let network = cluster.links.machine(0);
    let containerd = Containerd::builder()
        .without_pod_network()
        .in_network(network)
        .start();
    let bridge = ["link", "add", "vpn0", "type", "bridge"];
    let up = ["link", "set", "vpn0", "up"];
    let vpn = ["route", "add", "10.200.0.0/16", "dev", "vpn0"];
    for arguments in [&bridge[..], &up, &vpn] {
        assert!(
            containerd
                .network()
                .command("ip")
                .args(arguments)
                .status()
                .unwrap()
                .success()
        );
    }
    containerd.import(&image());
    cluster.join_with(containerd, &[]);
    let machine = &cluster.machines[1];
    let overlaps = format!(
        "the pods' range {CLUSTER} (--cluster-cidr) overlaps the route 10.200.0.0/16 of this machine: start `kennel up` with \
         another --cluster-cidr"
    );
    eventually(Deadline::seconds(TIMEOUT), || {
        let condition = cluster.condition(machine, "NetworkUnavailable", "True");
        (condition["message"] == overlaps.as_str())
            .then_some(())
            .ok_or(condition)
    });
    let ready = cluster.condition(machine, "Ready", "False");
    assert!(
        ready["message"].as_str().unwrap().contains(&overlaps),
        "{ready}"
    );
    assert_eq!(machine.traces(), "", "no half state");
    // N1.6: a daemon that tolerates this, and has the host's network, starts anyway.
    let daemon = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "host"},
        "spec": {"selector": {"matchLabels": {"app": "host"}}, "template": {
            "metadata": {"labels": {"app": "host"}},
            "spec": {"hostNetwork": true, "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}], "containers": [
                {"name": "main", "image": "kennel.test/peer:1", "imagePullPolicy": "Never"}]}}},
    });
    cluster
        .kubectl
        .run_with_input(&["apply", "-f", "-"], &daemon.to_string())
        .ok();
    eventually(Deadline::seconds(TIMEOUT), || {
        let pods = cluster.get(&["pods", "-l", "app=host"])?;
        let on_node = |pod: &&Value| pod["spec"]["nodeName"] == machine.node();
        let pod = pods["items"].as_array().unwrap().iter().find(on_node);
        let runs = pod.is_some_and(|pod| pod["status"]["phase"] == "Running");
        runs.then_some(()).ok_or_else(|| format!("{pods:#}"))
    });
    cluster.condition(machine, "NetworkUnavailable", "True");
}

/// Such as that of a company's VPN; some take the two halves of all addresses.
#[test]
fn a_route_that_comes_later_is_said_and_ends_no_running_network() {
    if !possible() {
        return;
    }
    let cluster = Cluster::new("host-gw", &[0, 0]);
    let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    assert_eq!(cluster.seen_by("a", b), a);
    let machine = &cluster.machines[0];
    let since = || {
        ["NetworkUnavailable", "Ready"].map(|kind| {
            let status = if kind == "Ready" { "True" } else { "False" };
            cluster.condition(machine, kind, status)["lastTransitionTime"].clone()
        })
    };
    let before = since();
    let traffic = Traffic::start(&cluster, "a", "b", b);
    // The server stays where it is.
    let (server, router) = (
        cluster.links.router().gateway(),
        cluster.links.address(0, 1),
    );
    machine.run(&format!(
        "ip route add {server}/32 via {router}; ip link add vpn0 type bridge; ip link set vpn0 up; \
         ip route add 10.0.0.0/8 dev vpn0; ip route add 0.0.0.0/1 dev vpn0"
    ));
    // Once a minute, the agent looks at routes.
    let said = "overlaps the pods' range";
    eventually(Deadline::seconds(TIMEOUT + 60), || {
        let describe = cluster
            .kubectl
            .run(&["describe", "node", machine.node()])
            .ok();
        let is_said = describe.contains("ClusterCIDROverlaps") && describe.contains(said);
        is_said.then_some(()).ok_or(describe)
    });
    traffic.end();
    assert_eq!(since(), before, "the node was ready all the time");
}

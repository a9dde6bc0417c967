//! Agents that are killed, second agents, foreign configurations, and what a cleanup leaves.

use std::process::Command;

use kennel_testkit::machine::{Containerd, possible};
use kennel_testkit::{Deadline, eventually};

use super::fixture::{CLUSTER, Cluster, KENNEL, PATIENCE, url};

#[test]
fn n1_3_traffic_flows_while_agents_are_killed_and_started() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("auto", &[0, 0]);
    let (a, b) = (cluster.pod("a", 0, false), cluster.pod("b", 1, false));
    assert_eq!(cluster.seen_by("a", b), a);
    // Requests from the pod, one after the other, until the file is there; each failure is a line.
    let script = format!(
        "while [ ! -e /stop ]; do timeout 5 wget -q -O /dev/null {} || echo failed; done; echo end",
        url(b)
    );
    let mut command = cluster.kubectl.command();
    let client = command.args(["exec", "a", "--", "sh", "-c", &script]);
    let client = client.stdout(std::process::Stdio::piped()).spawn().unwrap();
    cluster.machines[1].agent.kill();
    let before =
        cluster.machines[1].run("ip route show proto 75; nft list table ip kennel-network");
    cluster.machines[1].start_again();
    cluster.machines[1]
        .agent
        .wait_for("the pod network is ready");
    let after = cluster.machines[1].run("ip route show proto 75; nft list table ip kennel-network");
    assert_eq!(before, after, "the next agent takes over what it finds");
    eventually(Deadline::seconds(PATIENCE), || {
        let stop = cluster.kubectl.run(&["exec", "a", "--", "touch", "/stop"]);
        (stop.code == 0).then_some(()).ok_or(stop.stderr)
    });
    let output = client.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "end\n",
        "no request failed"
    );
}

#[test]
fn a_second_agent_in_one_network_namespace_is_refused() {
    if !possible() {
        return;
    }
    let cluster = Cluster::new("auto", &[0]);
    let machine = &cluster.machines[0];
    let dir = tempfile::tempdir().unwrap();
    let output = machine
        .network()
        .command(KENNEL)
        .args([
            "agent",
            "--node-name=second",
            "--network=vxlan",
            "--runtime=process",
            "--listen=0.0.0.0:0",
        ])
        .arg("--data-dir")
        .arg(dir.path())
        .args(cluster.server.join_flags())
        .arg(format!(
            "--server=https://{}:{}",
            cluster.links.router().gateway(),
            cluster.server.address().port()
        ))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("another agent manages the pod network of this network namespace"),
        "{said}"
    );
}

#[test]
fn n1_2_a_foreign_configuration_is_left_alone_and_said() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("auto", &[0]);
    // Its pods get their network from the configuration that is there.
    let containerd = Containerd::builder()
        .in_network(cluster.links.machine(0))
        .start();
    let configured = containerd.directory().join("cni/10-pods.conflist");
    let before = std::fs::read(&configured).unwrap();
    cluster.join_with(containerd, &[]);
    let machine = &cluster.machines[1];
    cluster.condition(machine, "Ready", "True");
    machine
        .agent
        .wait_for("10-pods.conflist: the agent leaves the pod network to it");
    assert_eq!(std::fs::read(&configured).unwrap(), before);
    assert_eq!(machine.traces(), "");
    let node = cluster.get(&["node", machine.node()]).unwrap();
    assert_eq!(
        node["spec"]["podCIDR"].as_str(),
        None,
        "it asks for no range"
    );
    eventually(Deadline::seconds(PATIENCE), || {
        let describe = cluster
            .kubectl
            .run(&["describe", "node", machine.node()])
            .ok();
        describe
            .contains("ForeignNetworkConfiguration")
            .then_some(())
            .ok_or(describe)
    });
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
    cluster.join_with(containerd, &[]);
    let machine = &cluster.machines[1];
    let overlaps = format!(
        "the pods' range {CLUSTER} (--cluster-cidr) overlaps the route 10.200.0.0/16 of this machine: start `kennel up` with \
         another --cluster-cidr"
    );
    eventually(Deadline::seconds(PATIENCE), || {
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
}

#[test]
fn a_cleanup_leaves_nothing_of_the_network() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("vxlan", &[0, 0]);
    cluster.pod("a", 0, false);
    let machine = &mut cluster.machines[0];
    assert_ne!(machine.traces(), "");
    machine.agent.stop();
    assert_ne!(
        machine.traces(),
        "",
        "traffic flows while the agent is down"
    );
    let cleanup = |machine: &super::fixture::Machine| -> Command {
        let mut command = machine.network().command(KENNEL);
        command
            .args(["agent", "--cleanup", "--yes", "--data-dir"])
            .arg(machine.agent.data_dir());
        command
    };
    let output = cleanup(machine).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(machine.traces(), "", "{said}");
}

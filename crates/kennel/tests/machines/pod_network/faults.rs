//! Agents that are killed, second agents, foreign configurations, and what a cleanup leaves.

use std::process::Command;
use std::time::Duration;

use kennel_test_support::fresh_seed;
use kennel_testkit::machine::{Containerd, possible};
use kennel_testkit::{Deadline, eventually};

use super::fixture::{Cluster, KENNEL, Machine, Outside, TIMEOUT};
use super::traffic::Traffic;

#[test]
fn n1_3_traffic_flows_while_agents_are_killed_and_started() {
    const KILLS: usize = 6;
    if !possible() {
        return;
    }
    let mut cluster = Cluster::with_proxy("auto", &[0, 0, 1]);
    cluster.pod("a", 0, false);
    let (near, far) = (cluster.pod("near", 1, false), cluster.pod("far", 2, false));
    let network = |machine: &Machine| {
        machine.run(
            "ip route show proto 75 | sort; bridge fdb show dev kennel-vxlan | sort; nft list table ip kennel-network",
        )
    };
    let before: Vec<String> = cluster.machines.iter().map(network).collect();
    let mut random = fastrand::Rng::with_seed(fresh_seed());
    for (to, address) in [("near", near), ("far", far)] {
        let traffic = Traffic::start(&cluster, "a", to, address);
        for _ in 0..KILLS {
            let machine = random.choice(&mut cluster.machines).unwrap();
            machine.agent.kill();
            machine.start_again();
            // Whatever it does then, it is killed in the middle of it.
            std::thread::sleep(Duration::from_millis(random.u64(..1500)));
            machine.agent.kill();
            machine.start_again();
        }
        for machine in &cluster.machines {
            machine.agent.wait_for("the pod network is ready");
            machine.agent.wait_for("routing services");
        }
        traffic.end();
    }
    let after: Vec<String> = cluster.machines.iter().map(network).collect();
    assert_eq!(before, after, "each agent takes over what it finds");
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
    eventually(Deadline::seconds(TIMEOUT), || {
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

/// As every start of a firewall does that replaces all rules.
#[test]
fn rules_that_another_program_deletes_are_written_again() {
    if !possible() {
        return;
    }
    let cluster = Cluster::with_proxy("host-gw", &[0, 0]);
    cluster.pod("a", 0, false);
    let machine = &cluster.machines[0];
    machine.agent.wait_for("routing services");
    let rules = || machine.run("nft list table ip kennel-network");
    let other = cluster.machines[1].address().to_string();
    let before = eventually(Deadline::seconds(TIMEOUT), || {
        let rules = rules();
        let is_whole = rules.contains("masquerade") && rules.contains(&other);
        is_whole.then(|| rules.clone()).ok_or(rules)
    });
    for damage in [
        "nft flush ruleset",
        "nft flush chain ip kennel-network postrouting",
        "nft flush set ip kennel-network direct-nodes",
    ] {
        machine.run(damage);
        eventually(Deadline::seconds(30), || {
            let now = rules();
            (now == before)
                .then_some(())
                .ok_or_else(|| format!("after {damage}: {now}\n{}", machine.agent.log()))
        });
    }
    let _outside = Outside::start(&cluster.links);
    let router = cluster.links.address(0, 1);
    assert_eq!(cluster.seen_by("a", router), machine.address());
}

#[test]
fn a_cleanup_leaves_nothing_of_the_network() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::with_proxy("vxlan", &[0, 0]);
    cluster.pod("a", 0, false);
    let machine = &mut cluster.machines[0];
    assert_ne!(machine.traces(), "");
    machine.agent.wait_for("routing services");
    machine.run("nft add table ip theirs");
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
    assert_eq!(machine.run("nft list ruleset"), "table ip theirs {\n}\n");
}

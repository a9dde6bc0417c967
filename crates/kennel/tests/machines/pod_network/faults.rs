//! Agents that are killed, second agents, foreign configurations, and what a cleanup leaves.

use std::process::Command;
use std::time::Duration;

use kennel_test_support::fresh_seed;
use kennel_testkit::machine::{Containerd, possible};
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Cluster, KENNEL, Machine, Outside, TIMEOUT};
use super::traffic::{PORTS, Traffic};

#[test]
fn n1_3_traffic_flows_while_agents_are_killed_and_started() {
    const KILLS: usize = 12;
    if !possible() {
        return;
    }
    let mut cluster = Cluster::with_proxy("auto", &[0, 0, 1]);
    let a = cluster.pod("a", 0, false);
    let (near, far) = (cluster.pod("near", 1, false), cluster.pod("far", 2, false));
    cluster.pod("served", 2, false);
    let service = cluster.service("served", &PORTS);
    assert_eq!(cluster.seen_by("a", service), a, "over VXLAN, without NAT");
    let network = |machine: &Machine| {
        machine.run(
            "ip route show proto 75 | sort; bridge fdb show dev kennel-vxlan | sort; nft list table ip kennel-network",
        )
    };
    let before: Vec<String> = cluster.machines.iter().map(network).collect();
    let since_before = transitions(&cluster);
    let mut random = fastrand::Rng::with_seed(fresh_seed());
    let targets = [("near", near), ("far", far), ("served", service)];
    let traffic = targets.map(|(to, address)| Traffic::start(&cluster, "a", to, address));
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
    for traffic in traffic {
        traffic.end();
    }
    let after: Vec<String> = cluster.machines.iter().map(network).collect();
    assert_eq!(before, after, "each agent takes over what it finds");
    assert_eq!(
        since_before,
        transitions(&cluster),
        "no node was without a network, or not ready, for a moment"
    );
}

/// Since when nodes have had their networks, and have been ready.
fn transitions(cluster: &Cluster) -> Vec<Value> {
    let mut all = Vec::new();
    for machine in &cluster.machines {
        for (kind, status) in [("NetworkUnavailable", "False"), ("Ready", "True")] {
            let condition = cluster.condition(machine, kind, status);
            all.push(json!({"node": machine.node(), "type": kind, "since": condition["lastTransitionTime"]}));
        }
    }
    all
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

/// Without `--network`, whether there is a pod network to manage is known only when the container runtime answers.
#[test]
fn a_second_agent_that_was_not_asked_for_a_network_is_not_ready() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("auto", &[0]);
    let machine = &cluster.machines[0];
    let before = machine.traces();
    let dir = tempfile::tempdir().unwrap();
    let mut command = machine.network().command(KENNEL);
    command
        .args([
            "agent",
            "--node-name=second",
            "--proxy=none",
            "--runtime=cri",
        ])
        .args(["--listen=0.0.0.0:0", "--eviction-hard=memory.available<1Mi"])
        .arg(format!(
            "--cri-socket={}",
            machine.containerd.socket().display()
        ))
        .arg("--data-dir")
        .arg(dir.path())
        .args(cluster.server.join_flags())
        .arg(format!(
            "--server=https://{}:{}",
            cluster.links.router().gateway(),
            cluster.server.address().port()
        ))
        .env_remove("KENNEL_NETWORK");
    let mut second = command.spawn().unwrap();
    let said = eventually(Deadline::seconds(TIMEOUT), || {
        let node = cluster.get(&["node", "second"])?;
        let conditions = node["status"]["conditions"].as_array().cloned();
        let conditions = conditions.unwrap_or_default();
        let find = |kind: &str, status: &str| {
            let mut all = conditions.iter();
            let found = all.find(|one| one["type"] == kind && one["status"] == status);
            found.cloned().ok_or_else(|| format!("{conditions:#?}"))
        };
        Ok::<_, String>((find("NetworkUnavailable", "True")?, find("Ready", "False")?))
    });
    second.kill().unwrap();
    second.wait().unwrap();
    let other = "another agent manages the pod network of this network namespace";
    assert_eq!(said.0["reason"], "PodNetworkOtherAgent", "{said:?}");
    for condition in [&said.0, &said.1] {
        assert!(
            condition["message"].as_str().unwrap().contains(other),
            "{condition}"
        );
    }
    // The first one's network is as it was.
    assert_eq!(cluster.machines[0].traces(), before);
    cluster.machines[0].start_again();
    cluster.ready();
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

#[test]
fn a_firewall_that_refuses_forwarded_packets_is_said_and_not_changed() {
    if !possible() {
        return;
    }
    let mut cluster = Cluster::new("auto", &[0]);
    let rules = "table inet theirs { chain forward { type filter hook forward priority 0; policy accept; \
                 ct state established accept; counter reject; }; }";
    let network = cluster.links.machine(0);
    assert!(
        network
            .command("nft")
            .arg(rules)
            .status()
            .unwrap()
            .success()
    );
    cluster.join_in(network);
    let machine = &cluster.machines[1];
    cluster.condition(machine, "NetworkUnavailable", "False");
    let expected = "the firewall (table theirs, chain forward) drops forwarded packets that no rule of it accepts";
    eventually(Deadline::seconds(TIMEOUT), || {
        let describe = cluster
            .kubectl
            .run(&["describe", "node", machine.node()])
            .ok();
        let is_said = describe.contains("FirewallDropsForwarded") && describe.contains(expected);
        is_said.then_some(()).ok_or(describe)
    });
    let listed = machine.run("nft list table inet theirs");
    assert!(listed.contains("reject"), "{listed}");
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
    cluster.pod_with_host_port("ported", 0, 9200);
    let machine = &mut cluster.machines[0];
    assert_ne!(machine.traces(), "");
    machine.agent.wait_for("routing services");
    let rules = machine.run("iptables -t nat -S");
    assert!(rules.contains("CNI-HOSTPORT-DNAT"), "{rules}");
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
    let left = machine.run("nft list ruleset; ip -o link show type vxlan; ip route");
    for trace in ["CNI-", "kennel", "10.192.", "vxlan"] {
        assert!(!left.contains(trace), "{trace}: {left}");
    }
    assert!(left.contains("table ip theirs"), "{left}");
    // The chains that every machine with iptables has, without a rule.
    let rules =
        machine.run("nft list ruleset | grep -E 'accept$|drop|jump|goto|masquerade|dnat|mark set'");
    assert_eq!(rules, "", "{said}");
}

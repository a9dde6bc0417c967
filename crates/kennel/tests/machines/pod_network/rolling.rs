//! A DaemonSet that rolls behind its service, while clients ask over VXLAN and agents are killed.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use kennel_test_support::fresh_seed;
use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Cluster, PORT, TIMEOUT};
use super::traffic::{PORTS, Requests, Traffic};

/// The roll, of two pods one after the other.
const ROLL_SECONDS: u64 = 120;
/// Bounds the drain, which ends when nothing leads to the pod.
const GRACE_SECONDS: u32 = 120;
/// Serves until it is asked to end. A first process without a handler for SIGTERM would ignore it.
const SERVE: &str = "trap exit TERM; httpd -f -p 0.0.0.0:8080 -h /www & wait";
/// The pod goes on serving until the test says that nothing leads to it.
const DRAIN: &str = "until [ -e /drained ]; do sleep 0.1; done";

#[test]
fn n5_no_request_fails_while_a_daemon_set_rolls_and_agents_are_killed_over_vxlan() {
    if !possible() {
        return;
    }
    // A router is between the machines.
    let mut cluster = Cluster::with_proxy("vxlan", &[0, 1]);
    let old = daemons(&cluster);
    cluster.pod("a", 0, false);
    cluster.pod("b", 1, false);
    cluster.pod("served", 1, false);
    let ip = cluster.service_of("daemon", &[PORT]);
    let served = cluster.service("served", &PORTS);
    for (pod, address) in [("a", ip), ("b", ip), ("a", served)] {
        cluster.seen_by(pod, address);
    }
    let established = Traffic::start(&cluster, "a", "served", served);
    let clients = ["a", "b"].map(|pod| Requests::start(&cluster, pod, "daemon", ip));

    let mut random = fastrand::Rng::with_seed(fresh_seed());
    let restart = ["rollout", "restart", "daemonset/daemon"];
    cluster.kubectl.run(&restart).ok();
    let mut drained = BTreeSet::new();
    eventually(Deadline::seconds(ROLL_SECONDS), || {
        if let Some((pod, address)) = ending(&cluster)?.filter(|(pod, _)| !drained.contains(pod)) {
            // An agent dies as it learns of the end, or another one does.
            kill(&mut cluster, &mut random);
            until_nothing_leads_to(&cluster, address);
            for client in &clients {
                client.until_goes_on();
            }
            established.until_goes_on();
            let said = ["exec", &pod, "--", "touch", "/drained"];
            eventually(Deadline::seconds(TIMEOUT), || {
                let answer = cluster.kubectl.run(&said);
                (answer.code == 0).then_some(()).ok_or(answer.stderr)
            });
            drained.insert(pod);
        }
        let status = ["rollout", "status", "daemonset/daemon", "--watch=false"];
        let answer = cluster.kubectl.run(&status);
        let is_done = answer.stdout.contains("successfully rolled out");
        is_done.then_some(()).ok_or(answer.stdout)
    });
    assert_eq!(drained, old, "each pod was replaced, and drained before");
    for client in clients {
        client.end();
    }
    established.end();
}

/// A pod on each machine, which goes on serving while it ends. Returns their names.
fn daemons(cluster: &Cluster) -> BTreeSet<String> {
    let sh = |script: &str| json!(["sh", "-c", script]);
    let container = json!({
        "name": "main", "image": "kennel.test/peer:1", "imagePullPolicy": "Never", "command": sh(SERVE),
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"exec": {"command": sh(DRAIN)}}},
    });
    let daemon = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "daemon"},
        "spec": {"selector": {"matchLabels": {"app": "daemon"}}, "template": {
            "metadata": {"labels": {"app": "daemon"}},
            "spec": {"terminationGracePeriodSeconds": GRACE_SECONDS, "containers": [container]}}},
    });
    let applied = cluster
        .kubectl
        .run_with_input(&["apply", "-f", "-"], &daemon.to_string());
    applied.ok();
    let status = ["rollout", "status", "daemonset/daemon", "--timeout=90s"];
    cluster.kubectl.run(&status).ok();
    let pods = cluster.get(&["pods", "-l", "app=daemon"]).unwrap();
    let pods = pods["items"].as_array().unwrap();
    let names: BTreeSet<String> = pods
        .iter()
        .map(|pod| text(&pod["metadata"]["name"]))
        .collect();
    assert_eq!(names.len(), cluster.machines.len(), "{names:?}");
    names
}

/// The name and address of a pod of the DaemonSet that ends.
fn ending(cluster: &Cluster) -> Result<Option<(String, Ipv4Addr)>, String> {
    let pods = cluster.get(&["pods", "-l", "app=daemon"])?;
    let mut pods = pods["items"].as_array().unwrap().iter();
    let ending = pods.find(|pod| pod["metadata"]["deletionTimestamp"].is_string());
    Ok(ending.map(|pod| {
        let address = text(&pod["status"]["podIP"]);
        (text(&pod["metadata"]["name"]), address.parse().unwrap())
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Kills an agent, twice if it chooses so: then it dies as it starts.
fn kill(cluster: &mut Cluster, random: &mut fastrand::Rng) {
    let machine = random.choice(&mut cluster.machines).unwrap();
    for _ in 0..random.usize(1..=2) {
        machine.agent.kill();
        machine.start_again();
    }
}

/// Waits until no rule of a machine leads to a pod.
fn until_nothing_leads_to(cluster: &Cluster, pod: Ipv4Addr) {
    let endpoint = format!("{pod} . {PORT}");
    for machine in &cluster.machines {
        eventually(Deadline::seconds(TIMEOUT), || {
            let rules = machine.run("nft list table ip kennel-services");
            let leads = rules.contains(&endpoint) || !rules.contains("map cluster-endpoints");
            (!leads)
                .then_some(())
                .ok_or_else(|| format!("{}: {rules}\n{}", machine.node(), machine.agent.log()))
        });
    }
}

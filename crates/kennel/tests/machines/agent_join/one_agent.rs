//! One agent at a time is a node, and one node has a data directory.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use serde_json::json;
use tempfile::TempDir;

use super::fixture::{BINARY, Cluster, LEASES, Machine, REQUESTS, cluster};

#[test]
fn one_agent_speaks_for_a_node() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let (mut first, second) = (Machine::new(), Machine::new());
    first.start(&line, "n1");
    cluster.is_ready("n1");
    cluster.renews("n1");
    // In the same directory, and in another one of the same machine.
    let heard = first.refused(&line, "n1");
    assert!(heard.contains("another agent, process"), "{heard}");
    // With the same certificate; a token alone does not make it an existing node.
    second.copy_identity(&first);
    let heard = second.refused(&["agent"], "n1");
    assert!(heard.contains("is already node n1"), "{heard}");
    first.kill();
    // On another machine: it renews its lease.
    let path = format!("{LEASES}/n1");
    let renew_elsewhere = |at: i64| {
        let mut lease = cluster.get(&path);
        lease["metadata"]["annotations"]["kennel.dev/agent"] = "other.boot.1.1".into();
        lease["spec"]["leaseDurationSeconds"] = 5.into();
        let renewed = jiff::Timestamp::from_second(at).unwrap();
        lease["spec"]["renewTime"] = format!("{renewed:.6}").into();
        let answer = cluster
            .admin
            .ask("PUT", &path, lease.to_string().as_bytes());
        assert_eq!(answer.code, 200, "{}", answer.text());
    };
    renew_elsewhere(0);
    let ended = AtomicBool::new(false);
    let heard = std::thread::scope(|scope| {
        scope.spawn(|| {
            // By a clock that is half a century behind.
            for at in (1..240).take_while(|_| !ended.load(Ordering::Relaxed)) {
                renew_elsewhere(at);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let heard = second.refused(&["agent"], "n1");
        ended.store(true, Ordering::Relaxed);
        heard
    });
    assert!(
        heard.contains("an agent on another machine is already node n1"),
        "{heard}"
    );
    // Until it has not renewed it for as long as the lease says.
    first.start(&["agent"], "n1");
    first.says("watching for 5 seconds whether another agent renews the lease of node n1");
    cluster.renews("n1");
    // An agent that stops releases its lease.
    first.stop();
    let lease = cluster.get(&path);
    assert_eq!(lease["metadata"]["annotations"]["kennel.dev/agent"], "");
}

#[test]
fn of_two_agents_that_start_at_once_one_becomes_the_node() {
    let cluster = cluster(&[]);
    let kubeconfig = cluster.kennel.kubeconfig();
    let line = ["agent", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut machines = [Machine::new(), Machine::new()];
    for machine in &mut machines {
        machine.start(&line, "n1");
    }
    let heard = eventually(Deadline::seconds(60), || {
        let mut all = machines.iter_mut();
        let ended = all.find_map(|machine| machine.has_ended().then(|| machine.log()));
        ended.ok_or("both run")
    });
    assert!(heard.contains("is already node n1"), "{heard}");
    cluster.is_ready("n1");
    assert!(machines.iter_mut().any(|machine| !machine.has_ended()));
}

#[test]
fn of_two_machines_that_use_a_token_at_once_one_joins() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machines = [Machine::new(), Machine::new()];
    for (machine, name) in machines.iter_mut().zip(["n1", "n2"]) {
        machine.start(&line, name);
    }
    let heard = eventually(Deadline::seconds(60), || {
        let mut all = machines.iter_mut();
        let ended = all.find_map(|machine| machine.has_ended().then(|| machine.log()));
        ended.ok_or("both run")
    });
    assert!(heard.contains("was denied: the token"), "{heard}");
    let joined = if machines[0].has_ended() { "n2" } else { "n1" };
    cluster.is_ready(joined);
    let nodes = cluster.get("/api/v1/nodes");
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1, "{nodes}");
    assert!(machines.iter_mut().any(|machine| !machine.has_ended()));
}

#[test]
fn an_agent_refuses_the_data_directory_of_a_newer_one() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machine = Machine::new();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    machine.stop();
    let file = machine.data().join("version.json");
    let own = fs::read_to_string(&file).unwrap();
    fs::write(&file, r#"{"version": 99}"#).unwrap();
    for arguments in [&["agent"][..], &["agent", "--cleanup"]] {
        let heard = machine.refused(arguments, "n1");
        let words =
            "its data has version 99, this program knows versions up to 1; use the newer program";
        assert!(heard.contains(words), "{heard}");
    }
    fs::write(&file, own).unwrap();
    machine.start(&["agent"], "n1");
    cluster.renews("n1");
}

#[test]
fn a_cluster_on_one_machine_has_that_machine_as_its_node() {
    let manifests = TempDir::new().unwrap();
    let manifests = manifests.path().display().to_string();
    let more = [
        "--nodes=1",
        "--node-name=own",
        "--runtime=simulated",
        "--log-dir",
    ];
    let more = [
        &["up"],
        &more[..],
        &[&manifests, "--manifest-dir", &manifests],
    ]
    .concat();
    let kennel = Kennel::start(BINARY, &more);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    cluster.is_ready("own");
    // Its certificate is signed without an approval.
    eventually(Deadline::seconds(30), || {
        let log = cluster.kennel.log();
        let got = log.contains("got a new serving certificate");
        got.then_some(()).ok_or(log)
    });
    assert_eq!(cluster.get(REQUESTS)["items"], json!([]));
    // It comes back at once, as the same node.
    let uid = cluster.get("/api/v1/nodes/own")["metadata"]["uid"].clone();
    let kennel = cluster.kennel.restart();
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    cluster.renews("own");
    assert_eq!(cluster.get("/api/v1/nodes/own")["metadata"]["uid"], uid);
    let output = Command::new(BINARY)
        .args(["up", "--nodes", "2"])
        .output()
        .unwrap();
    let heard = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        heard.contains("share its ports") && heard.contains("token create"),
        "{heard}"
    );
}

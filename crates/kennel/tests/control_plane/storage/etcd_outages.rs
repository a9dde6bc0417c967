//! A real etcd that stops or is full: every request is answered in time, and no node is declared dead because nobody could renew
//! its lease.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kennel_test_support::Etcd;
use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};

use crate::server_faults::fixture::{Fixture, KENNEL};

/// A client waits no longer for an answer. A request may take its turn among writes of its resource, and the deadlines of the store.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// The time without a heartbeat after which a node is unreachable.
const GRACE: Duration = Duration::from_secs(20);

fn event(n: usize) -> (&'static str, Value) {
    let event = json!({
        "metadata": {"name": format!("e{n}"), "namespace": "default"}, "reason": "Test", "type": "Normal",
        "involvedObject": {"kind": "Node", "name": "n", "namespace": "default"},
    });
    ("/api/v1/namespaces/default/events", event)
}

fn service(n: usize) -> (&'static str, Value) {
    let service = json!({
        "metadata": {"name": format!("s{n}")}, "spec": {"ports": [{"port": 80}]},
    });
    ("/api/v1/namespaces/default/services", service)
}

#[test]
fn a_stopped_etcd_delays_no_event_and_no_service_beyond_its_deadline() {
    const EACH: usize = 40;
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let server = Fixture::of(Kennel::start(KENNEL, &["server", "--store", &etcd.store()]));
    etcd.signal("STOP");
    let admin = &server.admin;
    std::thread::scope(|scope| {
        for (path, object) in (0..EACH).flat_map(|n| [event(n), service(n)]) {
            scope.spawn(move || {
                let started = Instant::now();
                let reply = admin.ask("POST", path, object.to_string().as_bytes());
                let took = started.elapsed();
                assert!(took < ANSWER_MAX, "{took:?}: {}", reply.text());
                assert!(reply.code >= 500, "{}: {}", reply.code, reply.text());
            });
        }
    });
    etcd.signal("CONT");
    eventually(Deadline::seconds(60), || {
        let (path, object) = service(EACH);
        let reply = admin.ask("POST", path, object.to_string().as_bytes());
        match reply.code {
            201 | 409 => Ok(()),
            _ => Err(reply.text()),
        }
    });
    // Those whose outcome was not known kept their addresses.
    let listed = admin.ask("GET", "/api/v1/services", b"").json();
    let services = listed["items"].as_array().expect("a list").iter();
    let addresses: Vec<_> = services
        .map(|service| service["spec"]["clusterIP"].to_string())
        .collect();
    let distinct: BTreeSet<_> = addresses.iter().collect();
    assert_eq!(distinct.len(), addresses.len(), "{addresses:?}");
}

/// Since when each node is as it is, whether it is ready, and its taints.
fn nodes(kubectl: &Kubectl) -> Vec<String> {
    let nodes = kubectl.get(&["nodes"]).expect("nodes are listed");
    let nodes = nodes["items"].as_array().expect("a list").iter();
    nodes
        .map(|node| {
            let conditions = node["status"]["conditions"].as_array().expect("conditions");
            let ready = conditions.iter().find(|one| one["type"] == "Ready");
            let ready = ready.expect("the condition Ready");
            let (status, since) = (&ready["status"], &ready["lastTransitionTime"]);
            let (name, taints) = (&node["metadata"]["name"], &node["spec"]["taints"]);
            format!("{name} {status} {since} {taints}")
        })
        .collect()
}

/// The heartbeats of all nodes.
fn renewals(kubectl: &Kubectl) -> Vec<String> {
    let leases = kubectl.get(&["leases", "-n", "kube-node-lease"]);
    let leases = leases.expect("leases are listed");
    let leases = leases["items"].as_array().expect("a list").iter();
    leases
        .map(|lease| lease["spec"]["renewTime"].to_string())
        .collect()
}

#[test]
fn nodes_live_on_when_etcd_was_full_for_longer_than_their_grace_period() {
    let Some(etcd) = Etcd::start_with(&["--quota-backend-bytes=16777216"]) else {
        return;
    };
    let grace = GRACE.as_secs().to_string();
    let arguments = [
        "up",
        "--simulate",
        "3",
        "--node-monitor-grace-period",
        &grace,
        "--store",
        &etcd.store(),
    ];
    let server = Fixture::of(Kennel::start(KENNEL, &arguments));
    let kubectl = Kubectl::new(Version::V1_36, &server.kennel.kubeconfig());
    eventually(Deadline::seconds(120), || {
        let nodes = nodes(&kubectl);
        let is_ready = |node: &&String| node.contains("\"True\"") && node.ends_with(" null");
        let ready = nodes.iter().filter(is_ready);
        if ready.count() == 3 {
            Ok(())
        } else {
            Err(nodes.join(", "))
        }
    });
    let before = nodes(&kubectl);

    let big = "x".repeat(900_000);
    let mut replies = (0..40).map(|n| server.create(&format!("big-{n}"), &big));
    let full = replies.find(|reply| reply.code != 201);
    let full = full.expect("it gets full");
    assert_eq!(full.code, 507, "{}", full.text());
    let refused = renewals(&kubectl);
    let since = Instant::now();
    // The lease of the controllers is not renewed either: which one ends first depends on when it was renewed last.
    let words = [
        "so no node is marked Unknown",
        "lost the lease of its controllers",
    ];
    eventually(Deadline::seconds(120), || {
        let log = server.kennel.log();
        let is_noticed = words.iter().any(|one| log.contains(one));
        if is_noticed && since.elapsed() > 2 * GRACE {
            Ok(())
        } else {
            Err(log)
        }
    });

    etcd.ctl(&["del", "/registry/configmaps/default/big-", "--prefix"]);
    let status = etcd.ctl(&["endpoint", "status", "--write-out", "json"]);
    let revision = status.split("\"revision\":").nth(1).expect("a revision");
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    etcd.ctl(&["compact", &revision]);
    etcd.ctl(&["defrag"]);
    etcd.ctl(&["alarm", "disarm"]);
    eventually(Deadline::seconds(120), || {
        let renewals = renewals(&kubectl);
        let is_renewed = renewals.iter().all(|one| !refused.contains(one));
        if is_renewed {
            Ok(())
        } else {
            Err(renewals.join(", "))
        }
    });
    assert_eq!(nodes(&kubectl), before, "{}", server.kennel.log());
    server.is_well("an etcd that was full");
}

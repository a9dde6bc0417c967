//! A damaged DaemonSet and a damaged Node are missing from lists. Nothing that belongs to them is deleted or given to others,
//! neither before nor after their repair.

use std::collections::BTreeSet;

use kennel_testkit::{Deadline, Kennel, eventually};
use serde_json::{Value, json};

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, KENNEL};
use crate::storage::{succeed, tamper};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const NODES: &str = "/api/v1/nodes";
const SET_KEY: &str = "/registry/daemonsets/default/damaged";
const NODE_KEY: &str = "/registry/minions/sim-1";
/// The pod garbage collector waits for 40 seconds before it deletes the pods of a missing node.
const TIMEOUT: u64 = 120;

fn daemon_set(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({"metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        },
    }})
}

fn create(server: &Fixture, path: &str, object: &Value) {
    let created = server
        .admin
        .ask("POST", path, object.to_string().as_bytes());
    assert_eq!(created.code, 201, "{}", created.text());
}

/// The uids of the daemons; none may be ending.
fn daemons(server: &Fixture) -> Result<BTreeSet<String>, String> {
    let list = server.admin.ask("GET", PODS, b"").json();
    let all = list["items"].as_array().expect("a list has items").iter();
    let daemons = all.filter(|pod| pod["metadata"]["labels"]["app"].is_string());
    let uid = |pod: &Value| {
        let meta = &pod["metadata"];
        let runs = meta["deletionTimestamp"].is_null() && pod["status"]["phase"] == "Running";
        let uid = meta["uid"].as_str().expect("pods have uids").to_owned();
        runs.then_some(uid)
            .ok_or(format!("{meta}: {}", pod["status"]["phase"]))
    };
    daemons.map(uid).collect()
}

fn until_gone(server: &Fixture, path: &str) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let answer = server.admin.ask("GET", path, b"");
        (answer.code == 404).then_some(()).ok_or(answer.code)
    });
}

/// Orphans that a garbage collector must find: when they are gone, it has looked at everything else, too.
fn until_dependents_are_collected(server: &Fixture) {
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "never", "uid": "never"}]);
    let metadata = json!({"name": "orphan", "ownerReferences": owner});
    create(server, CONFIGMAPS, &json!({"metadata": metadata}));
    until_gone(server, &format!("{CONFIGMAPS}/orphan"));
}

/// Likewise of the pod garbage collector.
fn until_pods_are_collected(server: &Fixture) {
    create(
        server,
        PODS,
        &json!({"metadata": {"name": "orphan"}, "spec": {
            "nodeName": "never", "containers": [{"name": "main", "image": "none"}],
        }}),
    );
    until_gone(server, &format!("{PODS}/orphan"));
}

#[test]
fn the_pods_of_a_damaged_daemon_set_and_of_a_damaged_node_stay() {
    let first = Fixture::of(Kennel::up(KENNEL, 3));
    for name in ["damaged", "intact"] {
        create(&first, DAEMON_SETS, &daemon_set(name));
    }
    let before = eventually(Deadline::seconds(TIMEOUT), || {
        let pods = daemons(&first)?;
        (pods.len() == 6)
            .then_some(pods)
            .ok_or("not all run".to_owned())
    });
    let kennel = first.kennel.restart_after(|data| {
        let sql = format!(
            "UPDATE kv SET value = CAST(value || 'x' AS BLOB) WHERE key IN ('{SET_KEY}', '{NODE_KEY}')"
        );
        assert_eq!(tamper(data, &sql), 2);
    });
    let server = Fixture::of(kennel);
    let data = server.kennel.data_dir();
    until_dependents_are_collected(&server);
    until_pods_are_collected(&server);
    assert_eq!(
        daemons(&server).as_ref(),
        Ok(&before),
        "{}",
        server.kennel.log()
    );

    for (path, name, key) in [
        (DAEMON_SETS, "damaged", SET_KEY),
        (NODES, "sim-1", NODE_KEY),
    ] {
        let path_of_one = format!("{path}/{name}");
        assert_eq!(
            server.admin.ask("GET", &path_of_one, b"").code,
            500,
            "{name}"
        );
        let raw = succeed("doctor", &data, &["--raw", key]);
        let raw = raw.strip_suffix('x').expect("the byte that was added");
        let mut repaired: Value = serde_json::from_str(raw).unwrap();
        repaired["metadata"]["managedFields"].take();
        create(&server, path, &repaired);
        succeed("doctor", &data, &["--discard", key]);
        let shown = server.admin.ask("GET", &path_of_one, b"").json();
        assert_eq!(
            shown["metadata"]["uid"], repaired["metadata"]["uid"],
            "{name}"
        );
    }
    until_dependents_are_collected(&server);
    assert_eq!(daemons(&server), Ok(before), "{}", server.kennel.log());
    server.is_well("damaged owners");
}

const NETWORKS: &str = "/api/v1/namespaces/kube-node-lease/configmaps";

/// A Node as an agent registers it that connects pods.
fn networked(number: u8) -> Value {
    json!({
        "metadata": {"name": format!("n{number}"), "annotations": {"network.kennel.dev/mode": "auto"}},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("192.0.2.{number}")}]},
    })
}

/// The range in the object of the node's network, once there is one.
fn range(server: &Fixture, node: &str) -> Value {
    eventually(Deadline::seconds(TIMEOUT), || {
        let object = server.admin.ask("GET", &format!("{NETWORKS}/{node}"), b"");
        let range = object.json()["data"]["podCIDR"].clone();
        (object.code == 200 && range.is_string())
            .then_some(range)
            .ok_or(object.text())
    })
}

/// The other nodes route the addresses of its pods to it, so nobody else may have them.
#[test]
fn a_damaged_node_keeps_its_place_in_the_pod_network() {
    let first = Fixture::of(Kennel::start(KENNEL, &["up", "--nodes", "0"]));
    for number in [1, 2] {
        create(&first, NODES, &networked(number));
    }
    let (other, own) = (range(&first, "n1"), range(&first, "n2"));
    let kennel = first.kennel.restart_after(|data| {
        let sql =
            "UPDATE kv SET value = CAST(value || 'x' AS BLOB) WHERE key = '/registry/minions/n2'";
        assert_eq!(tamper(data, sql), 1);
    });
    let server = Fixture::of(kennel);
    create(&server, NODES, &networked(3));
    let new = range(&server, "n3");
    assert!(new != own && new != other, "{new}, {own}, {other}");
    // An object of no node goes, so the controller has looked at all of them.
    let labels = json!({"network.kennel.dev/node": "true"});
    let orphan = json!({"metadata": {"name": "never", "labels": labels}});
    create(&server, NETWORKS, &orphan);
    until_gone(&server, &format!("{NETWORKS}/never"));
    assert_eq!(range(&server, "n2"), own);

    let data = server.kennel.data_dir();
    // A new machine of that name must not find the old one beside it.
    let said = succeed("doctor", &data, &["--discard", "/registry/minions/n2"]);
    let advice = "\n  kennel certs revoke system:node:n2\n";
    assert!(said.ends_with(advice), "{said}");
    until_gone(&server, &format!("{NETWORKS}/n2"));
    server.is_well("a damaged node");
}

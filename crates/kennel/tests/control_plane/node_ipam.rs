//! Pod ranges of nodes, with the real controller: who gets one, what is said when none is left, and what a restart changes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
/// Two ranges.
const CLUSTER: &str = "--cluster-cidr=10.200.0.0/23";
const SECONDS: u64 = 60;

fn kubectl(kennel: &Kennel) -> Kubectl {
    let kubeconfig: PathBuf = kennel.kubeconfig();
    Kubectl::new(Version::V1_32, &kubeconfig)
}

/// A Node that asks for a range, or does not. No agent is behind it.
fn create(kubectl: &Kubectl, name: &str, asks: bool) {
    let mode = if asks { "external" } else { "none" };
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": {"network.kennel.dev/mode": mode}}});
    kubectl
        .run_with_input(&["create", "-f", "-"], &node.to_string())
        .ok();
}

fn range(kubectl: &Kubectl, name: &str) -> String {
    let path = "-o=jsonpath={.spec.podCIDR} {.spec.podCIDRs[*]}";
    kubectl.run(&["get", "node", name, path]).ok()
}

fn until_ranged(kubectl: &Kubectl, name: &str, expected: &str) {
    let expected = format!("{expected} {expected}");
    eventually(Deadline::seconds(SECONDS), || {
        let found = range(kubectl, name);
        (found == expected).then_some(()).ok_or(found)
    });
}

/// The events of this reason: of which node, how often, and the message.
fn refusals(kubectl: &Kubectl) -> Vec<(String, u64, String)> {
    let all = kubectl.run(&["get", "events", "-A", "-o", "json"]).ok();
    let all: Value = serde_json::from_str(&all).unwrap();
    let items = all["items"].as_array().unwrap().iter();
    let refusals = items.filter(|event| event["reason"] == "CIDRNotAvailable");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    refusals
        .map(|event| {
            (
                text(&event["involvedObject"]["name"]),
                event["count"].as_u64().unwrap_or(1),
                text(&event["message"]),
            )
        })
        .collect()
}

#[test]
fn n1_1_ranges_run_out_with_one_event_per_node_and_survive_a_restart() {
    let kennel = Kennel::start(BINARY, &["up", "--nodes=0", CLUSTER]);
    let ctl = kubectl(&kennel);
    create(&ctl, "silent", false);
    create(&ctl, "a", true);
    until_ranged(&ctl, "a", "10.200.0.0/24");
    create(&ctl, "b", true);
    until_ranged(&ctl, "b", "10.200.1.0/24");
    for name in ["c", "d"] {
        create(&ctl, name, true);
    }
    let refused = |names: &[&str]| {
        eventually(Deadline::seconds(SECONDS), || {
            let found = refusals(&ctl);
            let nodes: BTreeSet<&str> = found.iter().map(|one| &*one.0).collect();
            (nodes == names.iter().copied().collect())
                .then(|| found.clone())
                .ok_or_else(|| format!("{found:?}"))
        })
    };
    for (node, _, message) in refused(&["c", "d"]) {
        let expected = format!(
            "Node {node} status is now: CIDRNotAvailable: 2 of 2 ranges of /24 in --cluster-cidr=10.200.0.0/23 are in use; start \
             `kennel up` with a larger --cluster-cidr, or delete Nodes that are gone"
        );
        assert_eq!(message, expected);
    }
    // Changes of the node repeat nothing.
    for number in 0..20 {
        let label = format!("number={number}");
        ctl.run(&["label", "node", "c", "--overwrite", &label]).ok();
    }
    // Behind all of that in the controller's queue.
    ctl.run(&["delete", "node", "a"]).ok();
    until_ranged(&ctl, "c", "10.200.0.0/24");
    create(&ctl, "e", true);
    let found = refused(&["c", "d", "e"]);
    assert!(found.iter().all(|one| one.1 == 1), "{found:?}");
    assert_eq!(range(&ctl, "silent").trim(), "");
    assert_eq!(range(&ctl, "d").trim(), "");

    let kennel = kennel.restart();
    let ctl = kubectl(&kennel);
    // The controller of the new process has said this one behind whatever it has to say of the others.
    create(&ctl, "f", true);
    eventually(Deadline::seconds(SECONDS), || {
        let found = refusals(&ctl);
        found
            .iter()
            .any(|one| one.0 == "f")
            .then_some(())
            .ok_or_else(|| format!("{found:?}"))
    });
    let mut found: Vec<(String, u64)> = refusals(&ctl)
        .into_iter()
        .map(|(node, count, _)| (node, count))
        .collect();
    found.sort();
    let once = ["c", "d", "e", "f"].map(|node| (node.to_owned(), 1));
    assert_eq!(found, once, "one event per node, also after a restart");
    ctl.run(&["delete", "node", "b"]).ok();
    // In the order of names after a restart, and what nodes have stays.
    until_ranged(&ctl, "d", "10.200.1.0/24");
    assert_eq!(range(&ctl, "c"), "10.200.0.0/24 10.200.0.0/24");
}

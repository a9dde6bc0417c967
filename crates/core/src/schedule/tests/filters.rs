//! Each filter lets pods in and keeps them out, and says so in upstream's words.

use serde_json::{Value, json};

use super::desk::{Desk, cpu, pinned_to};

/// One node, which is to refuse for this reason and nothing else.
fn refused(node: Value, spec: &Value, reason: &str, helpful: bool) {
    let mut desk = Desk::with(&[("a", node)]);
    let preemption = if helpful {
        "No preemption victims found for incoming pod"
    } else {
        "Preemption is not helpful for scheduling"
    };
    let expected = format!(
        "p: 0/1 nodes are available: 1 {reason}. preemption: 0/1 nodes are available: 1 {preemption}."
    );
    assert_eq!(desk.place("p", spec), expected);
}

fn taken(node: Value, spec: &Value) {
    let mut desk = Desk::with(&[("a", node)]);
    assert_eq!(desk.place("p", spec), "p -> a", "{spec}");
}

#[test]
fn a_pod_that_asks_for_nothing_goes_anywhere() {
    taken(json!({}), &json!({}));
    taken(
        json!({"taints": [{"key": "x", "effect": "PreferNoSchedule"}]}),
        &json!({}),
    );
}

#[test]
fn taints_and_cordons() {
    let cordoned = json!({"unschedulable": true});
    refused(
        cordoned.clone(),
        &json!({}),
        "node(s) were unschedulable",
        false,
    );
    let key = "node.kubernetes.io/unschedulable";
    let daemon = json!({"tolerations": [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}]});
    taken(cordoned, &daemon);
    for effect in ["NoSchedule", "NoExecute"] {
        let tainted = json!({"taints": [{"key": "x", "value": "y", "effect": effect}]});
        refused(
            tainted.clone(),
            &json!({}),
            "node(s) had untolerated taint(s)",
            false,
        );
        taken(
            tainted,
            &json!({"tolerations": [{"key": "x", "operator": "Exists"}]}),
        );
    }
}

#[test]
fn node_selectors_and_affinity() {
    let reason = "node(s) didn't match Pod's node affinity/selector";
    refused(
        json!({}),
        &json!({"nodeSelector": {"disk": "ssd"}}),
        reason,
        false,
    );
    taken(
        json!({"labels": {"disk": "ssd"}}),
        &json!({"nodeSelector": {"disk": "ssd"}}),
    );
    let spec = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}}});
    refused(json!({}), &spec, reason, false);
    taken(json!({"labels": {"disk": "x"}}), &spec);
}

#[test]
fn s3_12_1_a_pinned_pod_is_told_of_its_node_and_the_others_are_counted() {
    let mut desk = Desk::with(&[
        ("a", json!({})),
        (
            "b",
            json!({"taints": [{"key": "x", "effect": "NoSchedule"}]}),
        ),
        ("c", json!({})),
    ]);
    assert_eq!(
        desk.place("p", &json!({"affinity": pinned_to("a")})),
        "p -> a"
    );
    let unhelpful =
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(
        desk.place("q", &json!({"affinity": pinned_to("b")})),
        format!(
            "q: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't satisfy \
             plugin(s) [NodeAffinity]. {unhelpful}"
        )
    );
    assert_eq!(
        desk.place("r", &json!({"affinity": pinned_to("d")})),
        format!(
            "r: 0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. {unhelpful}"
        )
    );
}

#[test]
fn without_nodes_there_is_nothing_to_count() {
    let mut desk = Desk::with(&[]);
    assert_eq!(
        desk.place("p", &json!({})),
        "p: no nodes available to schedule pods"
    );
    assert_eq!(desk.node("a", &json!({})), ["p -> a"]);
}

#[test]
fn resources() {
    let node = || {
        json!({"allocatable": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi",
        "pods": "2", "example.com/gpu": "1"}})
    };
    let asking = |name: &str, amount: &str| json!([{"resources": {"requests": {name: amount}}}]);
    for (name, fits, never) in [
        ("cpu", "2", "2001m"),
        ("memory", "1Gi", "1025Mi"),
        ("ephemeral-storage", "1Gi", "2Gi"),
        ("example.com/gpu", "1", "2"),
    ] {
        taken(node(), &json!({"containers": asking(name, fits)}));
        let reason = format!("Insufficient {name}");
        refused(
            node(),
            &json!({"containers": asking(name, never)}),
            &reason,
            false,
        );
    }
    let mut desk = Desk::with(&[("a", node())]);
    assert_eq!(
        desk.place("p", &json!({"containers": cpu("1500m")})),
        "p -> a"
    );
    let none =
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(
        desk.place("q", &json!({"containers": cpu("1")})),
        format!("q: 0/1 nodes are available: 1 Insufficient cpu. {none}")
    );
    assert_eq!(
        desk.place("r", &json!({"containers": cpu("500m")})),
        "r -> a"
    );
    assert_eq!(
        desk.place("s", &json!({})),
        format!("s: 0/1 nodes are available: 1 Too many pods. {none}")
    );
}

#[test]
fn ports_of_the_host() {
    let port = |ip: &str| json!([{"ports": [{"hostPort": 80, "hostIP": ip}]}]);
    let mut desk = Desk::plain(&["a"]);
    assert_eq!(
        desk.place("p", &json!({"containers": port("10.0.0.1")})),
        "p -> a"
    );
    assert_eq!(
        desk.place("q", &json!({"containers": port("10.0.0.2")})),
        "q -> a"
    );
    assert_eq!(
        desk.place("r", &json!({"containers": port("")})),
        "r: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. \
         preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    );
    assert_eq!(desk.gone("p"), Vec::<String>::new());
    assert_eq!(desk.gone("q"), ["r -> a"]);
}

#[test]
fn reasons_of_several_nodes_are_counted_together() {
    let mut desk = Desk::with(&[
        (
            "a",
            json!({"taints": [{"key": "x", "effect": "NoSchedule"}]}),
        ),
        (
            "b",
            json!({"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}),
        ),
        ("c", json!({})),
    ]);
    assert_eq!(
        desk.place("big", &json!({"containers": cpu("3")})),
        "big -> c"
    );
    assert_eq!(
        desk.place("p", &json!({"containers": cpu("2")})),
        "p: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. \
         preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, \
         2 Preemption is not helpful for scheduling."
    );
}

#[test]
fn pods_of_others_take_room_too() {
    let mut desk = Desk::plain(&["a"]);
    desk.pod("other", &json!({"containers": cpu("3"), "nodeName": "a"}));
    assert!(
        desk.place("p", &json!({"containers": cpu("2")}))
            .contains("Insufficient cpu")
    );
    assert_eq!(desk.gone("other"), ["p -> a"]);
}

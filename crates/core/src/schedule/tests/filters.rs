//! Each filter accepts and rejects pods, with upstream's messages.

use serde_json::{Value, json};

use super::harness::{Harness, cpu, pinned_to};

/// Checks that one node rejects a pod for this reason alone.
fn refused(node: Value, spec: &Value, reason: &str, helpful: bool) {
    let mut harness = Harness::with(&[("a", node)]);
    let preemption = if helpful {
        "No preemption victims found for incoming pod"
    } else {
        "Preemption is not helpful for scheduling"
    };
    let expected = format!(
        "p: 0/1 nodes are available: 1 {reason}. preemption: 0/1 nodes are available: 1 {preemption}."
    );
    assert_eq!(harness.place("p", spec), expected);
}

fn taken(node: Value, spec: &Value) {
    let mut harness = Harness::with(&[("a", node)]);
    assert_eq!(harness.place("p", spec), "p -> a", "{spec}");
}

#[test]
fn a_pod_without_requirements_goes_anywhere() {
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
fn s3_12_1_a_pinned_pod_gets_the_reason_of_its_node_and_a_count_of_the_others() {
    let mut harness = Harness::with(&[
        ("a", json!({})),
        (
            "b",
            json!({"taints": [{"key": "x", "effect": "NoSchedule"}]}),
        ),
        ("c", json!({})),
    ]);
    assert_eq!(
        harness.place("p", &json!({"affinity": pinned_to("a")})),
        "p -> a"
    );
    let unhelpful =
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(
        harness.place("q", &json!({"affinity": pinned_to("b")})),
        format!(
            "q: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't satisfy \
             plugin(s) [NodeAffinity]. {unhelpful}"
        )
    );
    assert_eq!(
        harness.place("r", &json!({"affinity": pinned_to("d")})),
        format!(
            "r: 0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. {unhelpful}"
        )
    );
}

#[test]
fn without_nodes_there_is_nothing_to_count() {
    let mut harness = Harness::with(&[]);
    assert_eq!(
        harness.place("p", &json!({})),
        "p: no nodes available to schedule pods"
    );
    assert_eq!(harness.node("a", &json!({})), ["p -> a"]);
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
    let mut harness = Harness::with(&[("a", node())]);
    assert_eq!(
        harness.place("p", &json!({"containers": cpu("1500m")})),
        "p -> a"
    );
    let none =
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(
        harness.place("q", &json!({"containers": cpu("1")})),
        format!("q: 0/1 nodes are available: 1 Insufficient cpu. {none}")
    );
    assert_eq!(
        harness.place("r", &json!({"containers": cpu("500m")})),
        "r -> a"
    );
    assert_eq!(
        harness.place("s", &json!({})),
        format!("s: 0/1 nodes are available: 1 Too many pods. {none}")
    );
}

#[test]
fn ports_of_the_host() {
    let port = |ip: &str| json!([{"ports": [{"hostPort": 80, "hostIP": ip}]}]);
    let mut harness = Harness::with_nodes(&["a"]);
    assert_eq!(
        harness.place("p", &json!({"containers": port("10.0.0.1")})),
        "p -> a"
    );
    assert_eq!(
        harness.place("q", &json!({"containers": port("10.0.0.2")})),
        "q -> a"
    );
    assert_eq!(
        harness.place("r", &json!({"containers": port("")})),
        "r: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. \
         preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    );
    assert_eq!(harness.gone("p"), Vec::<String>::new());
    assert_eq!(harness.gone("q"), ["r -> a"]);
}

#[test]
fn reasons_of_several_nodes_are_counted_together() {
    let mut harness = Harness::with(&[
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
        harness.place("big", &json!({"containers": cpu("3")})),
        "big -> c"
    );
    assert_eq!(
        harness.place("p", &json!({"containers": cpu("2")})),
        "p: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. \
         preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, \
         2 Preemption is not helpful for scheduling."
    );
}

#[test]
fn pods_of_other_schedulers_use_resources_too() {
    let mut harness = Harness::with_nodes(&["a"]);
    harness.pod("other", &json!({"containers": cpu("3"), "nodeName": "a"}));
    assert!(
        harness
            .place("p", &json!({"containers": cpu("2")}))
            .contains("Insufficient cpu")
    );
    assert_eq!(harness.gone("other"), ["p -> a"]);
}

//! Scores decide between feasible nodes.

use serde_json::{Value, json};

use super::harness::{Harness, cpu};

fn check(nodes: &[(&str, Value)], spec: &Value, expected: &str) {
    let mut harness = Harness::with(nodes);
    assert_eq!(
        harness.place("p", spec),
        format!("p -> {expected}"),
        "{spec}"
    );
}

#[test]
fn preferred_node_affinity() {
    let nodes = [
        ("a", json!({})),
        ("b", json!({"labels": {"disk": "ssd"}})),
        ("c", json!({})),
    ];
    let prefer = |label: &str| {
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "preference": {"matchExpressions":
                [{"key": label, "operator": "Exists"}]}}]}}})
    };
    check(&nodes, &prefer("disk"), "b");
    check(&nodes, &prefer("nothing"), "a");
}

#[test]
fn prefer_no_schedule_taints() {
    let advised = json!({"taints": [{"key": "x", "effect": "PreferNoSchedule"}]});
    let nodes = [("a", advised), ("b", json!({}))];
    check(&nodes, &json!({}), "b");
    check(
        &nodes,
        &json!({"tolerations": [{"key": "x", "operator": "Exists"}]}),
        "a",
    );
}

#[test]
fn the_emptier_node_and_pods_that_ask_for_nothing_are_spread() {
    let mut harness = Harness::with_nodes(&["a", "b"]);
    assert_eq!(
        harness.place("p", &json!({"containers": cpu("2")})),
        "p -> a"
    );
    assert_eq!(
        harness.place("q", &json!({"containers": cpu("1")})),
        "q -> b"
    );
    let mut harness = Harness::with_nodes(&["a", "b", "c"]);
    let nothing = json!({"containers": [{}]});
    let places: Vec<String> = ["p", "q", "r"]
        .iter()
        .map(|n| harness.place(n, &nothing))
        .collect();
    assert_eq!(places, ["p -> a", "q -> b", "r -> c"]);
}

#[test]
fn balanced_allocation() {
    // Both have a quarter of each left on average, but one of them unevenly.
    let even = json!({"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}});
    let uneven = json!({"allocatable": {"cpu": "2", "memory": "400Gi", "pods": "10"}});
    let spec = json!({"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]});
    check(&[("a", uneven), ("b", even)], &spec, "b");
}

#[test]
fn preferred_pod_affinity() {
    let prefer = |kind: &str| {
        json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}}}}]}}})
    };
    for (kind, expected) in [("podAffinity", "b"), ("podAntiAffinity", "a")] {
        let mut harness = Harness::with_nodes(&["a", "b"]);
        harness.pod("web", &json!({"labels": {"app": "web"}, "nodeName": "b"}));
        assert_eq!(
            harness.place("p", &prefer(kind)),
            format!("p -> {expected}"),
            "{kind}"
        );
    }
}

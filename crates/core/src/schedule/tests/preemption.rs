//! Preemption.

use serde_json::{Value, json};

use super::harness::{Harness, cpu, node_info, pinned_to, pod};
use crate::schedule::{PodView, Scheduler};

fn wants(amount: &str, priority: i64) -> Value {
    json!({"containers": cpu(amount), "priority": priority})
}

/// A node with these pods: name, CPUs, priority, age.
fn harness(pods: &[(&str, &str, i64, i64)]) -> Harness {
    let mut harness = Harness::with_nodes(&["a"]);
    for (name, amount, priority, created) in pods {
        let mut spec = wants(amount, *priority);
        spec["nodeName"] = json!("a");
        spec["created"] = json!(created);
        harness.pod(name, &spec);
    }
    harness
}

fn evicted(harness: &mut Harness, spec: &Value) -> Vec<String> {
    let said = harness.pod("p", spec);
    said.into_iter()
        .filter_map(|line| Some(line.strip_prefix("p evicts ")?.to_owned()))
        .collect()
}

#[test]
fn the_fewest_victims_of_lowest_priority_and_age_are_chosen() {
    let pods = [("low", "1", 1, 0), ("lower", "1", 0, 0), ("mid", "2", 5, 0)];
    assert_eq!(
        evicted(&mut harness(&pods), &wants("1", 10)),
        ["lower from a"]
    );
    assert_eq!(
        evicted(&mut harness(&pods), &wants("2", 10)),
        ["low,lower from a"]
    );
    assert_eq!(
        evicted(&mut harness(&pods), &wants("4", 10)),
        ["mid,low,lower from a"]
    );
    let same = [("old", "2", 0, 1), ("new", "2", 0, 2)];
    assert_eq!(
        evicted(&mut harness(&same), &wants("1", 10)),
        ["new from a"]
    );
}

#[test]
fn pods_of_equal_priority_never_preempt_each_other() {
    let mut harness = harness(&[("q", "4", 5, 0)]);
    let mut daemon = wants("1", 5);
    daemon["affinity"] = pinned_to("a");
    assert!(
        harness
            .place("d", &daemon)
            .contains("1 No preemption victims found for incoming pod")
    );
    assert_eq!(evicted(&mut harness, &wants("1", 6)), ["q from a"]);
}

#[test]
fn a_pinned_pod_preempts_on_its_own_node_only() {
    let mut harness = Harness::with_nodes(&["a", "b"]);
    harness.pod(
        "x",
        &json!({"containers": cpu("4"), "nodeName": "a", "priority": 1}),
    );
    harness.pod("y", &json!({"containers": cpu("4"), "nodeName": "b"}));
    let mut daemon = wants("1", 10);
    daemon["affinity"] = pinned_to("a");
    assert_eq!(evicted(&mut harness, &daemon), ["x from a"]);
}

#[test]
fn the_node_with_the_lowest_eviction_cost_is_chosen() {
    let place = |nodes: &[(&str, i64, i64)]| {
        let names: Vec<&str> = nodes.iter().map(|(name, ..)| *name).collect();
        let mut harness = Harness::with_nodes(&names);
        for (name, priority, created) in nodes {
            harness.pod(
                &format!("on-{name}"),
                &json!({"containers": cpu("4"), "nodeName": name,
                "priority": priority, "created": created}),
            );
        }
        evicted(&mut harness, &wants("1", 10)).join(" ")
    };
    assert_eq!(
        place(&[("a", 5, 0), ("b", 1, 0), ("c", 3, 0)]),
        "on-b from b"
    );
    assert_eq!(
        place(&[("a", 1, 5), ("b", 1, 9), ("c", 1, 7)]),
        "on-b from b",
        "the newest"
    );
}

#[test]
fn preemption_policy_never_is_obeyed() {
    let mut spec = wants("1", 10);
    spec["preemptionPolicy"] = json!("Never");
    let said = harness(&[("q", "4", 0, 0)]).place("p", &spec);
    assert_eq!(
        said,
        "p: 0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to \
         preemptionPolicy=Never."
    );
}

#[test]
fn no_pod_is_evicted_where_it_would_not_help() {
    let mut harness = Harness::with(&[(
        "a",
        json!({"taints": [{"key": "x", "effect": "NoSchedule"}]}),
    )]);
    harness.pod("q", &json!({"containers": cpu("4"), "nodeName": "a"}));
    assert_eq!(evicted(&mut harness, &wants("1", 10)), Vec::<String>::new());
    assert_eq!(
        evicted(&mut self::harness(&[("q", "1", 0, 0)]), &wants("5", 10)),
        Vec::<String>::new()
    );
}

#[test]
fn freed_resources_are_kept_for_the_nominated_pod() {
    let mut harness = harness(&[("q", "4", 0, 0)]);
    assert_eq!(
        harness.pod("p", &wants("4", 10)),
        [
            "p evicts q from a",
            "p (nominated a): 0/1 nodes are available: 1 Insufficient cpu."
        ]
    );
    let mut going = json!({"containers": cpu("4"), "nodeName": "a", "terminating": true});
    going["priority"] = json!(0);
    assert_eq!(harness.pod("q", &going), Vec::<String>::new());
    assert!(
        harness
            .place("thief", &wants("1", 5))
            .contains("Insufficient cpu")
    );
    assert_eq!(harness.gone("q"), ["p -> a"]);
}

#[test]
fn a_pod_that_waits_for_its_victims_preempts_no_others() {
    let mut harness = harness(&[("q", "4", 0, 0), ("r", "0", 0, 0)]);
    assert_eq!(evicted(&mut harness, &wants("4", 10)), ["q from a"]);
    assert_eq!(
        harness.gone("r"),
        [
            "p (nominated a): 0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to \
          a terminating pod on the nominated node."
        ]
    );
    harness.scheduler.evict_failed("p");
    assert_eq!(harness.decide(), Vec::<String>::new());
    harness.scheduler.retry("p");
    assert_eq!(harness.decide()[0], "p evicts q from a");
}

#[test]
fn a_pod_of_higher_priority_takes_over_a_nomination() {
    let mut harness = harness(&[("q", "4", 0, 0)]);
    assert_eq!(evicted(&mut harness, &wants("4", 10)), ["q from a"]);
    let said = harness.pod("boss", &wants("4", 20));
    assert_eq!(said[0], "p no longer nominated");
    assert_eq!(said[1], "boss evicts q from a");
    assert_eq!(harness.gone("q"), ["boss -> a"]);
}

#[test]
fn a_nomination_from_before_is_honoured() {
    let mut harness = Harness::with_nodes(&["a"]);
    harness.pod(
        "q",
        &json!({"containers": cpu("4"), "nodeName": "a", "terminating": true}),
    );
    let mut spec = wants("4", 10);
    spec["nominated"] = json!("a");
    harness.pod("p", &spec);
    assert!(
        harness
            .place("thief", &wants("4", 1))
            .contains("Insufficient cpu")
    );
    assert_eq!(harness.gone("q"), ["p -> a"]);
}

#[test]
fn a_nominated_pod_is_bound_elsewhere_if_it_fits() {
    let mut harness = harness(&[("q", "4", 0, 0)]);
    harness.pod("p", &wants("4", 10));
    assert_eq!(harness.node("b", &json!({})), ["p -> b"]);
    assert_eq!(harness.gone("q"), Vec::<String>::new());
    assert_eq!(harness.place("r", &wants("4", 0)), "r -> a");
}

#[test]
fn a_port_is_freed() {
    let port = |priority: i64| json!({"containers": [{"ports": [{"hostPort": 80}]}], "priority": priority});
    let mut harness = Harness::with_nodes(&["a"]);
    assert_eq!(harness.place("q", &port(0)), "q -> a");
    assert_eq!(harness.place("other", &wants("1", 0)), "other -> a");
    assert_eq!(evicted(&mut harness, &port(1)), ["q from a"]);
}

/// On node a, a terminating victim; on node b, a pod that would cost less to evict.
fn leaving() -> [PodView; 2] {
    let on = |name: &str, node: &str, priority: i64| {
        let spec = json!({"containers": cpu("4"), "nodeName": node, "priority": priority});
        pod(name, &spec)
    };
    let mut leaving = on("q", "a", 5);
    (leaving.terminating, leaving.disrupted) = (true, true);
    [leaving, on("r", "b", 0)]
}

#[test]
fn a_nomination_from_before_is_honoured_though_its_node_is_seen_later() {
    let mut scheduler = Scheduler::new();
    let mut spec = wants("4", 10);
    spec["nominated"] = json!("a");
    scheduler.pod(pod("p", &spec));
    let mut other = wants("5", 10);
    other["nominated"] = json!("vanished");
    scheduler.pod(pod("o", &other));
    for seen in leaving() {
        scheduler.pod(seen);
    }
    for name in ["a", "b"] {
        scheduler.node(node_info(name, &json!({})));
    }
    scheduler.synced();
    let mut harness = Harness { scheduler };
    let said = harness.decide().join(" ");
    assert!(!said.contains("evicts"), "{said}");
    assert_eq!(harness.gone("q"), ["p -> a"]);
    let nodes = harness.scheduler.node_ids.len();
    assert_eq!(nodes, 2, "no node that is not there is kept");
}

#[test]
fn a_nomination_survives_a_failed_binding() {
    let mut harness = harness(&[("q", "4", 0, 0)]);
    harness.pod("p", &wants("4", 10));
    assert_eq!(harness.gone("q"), ["p -> a"]);
    harness.scheduler.bind_failed("p");
    assert!(
        harness
            .place("thief", &wants("1", 5))
            .contains("Insufficient cpu")
    );
    harness.scheduler.retry("p");
    assert_eq!(harness.decide(), ["p -> a"]);
}

#[test]
fn a_relabelled_pod_that_waits_for_its_victims_preempts_no_others() {
    let mut harness = harness(&[("q", "4", 5, 0)]);
    let mut spec = wants("4", 10);
    assert_eq!(evicted(&mut harness, &spec), ["q from a"]);
    for seen in leaving() {
        harness.scheduler.pod(seen);
    }
    harness.node("b", &json!({}));
    spec["labels"] = json!({"new": "label"});
    assert_eq!(evicted(&mut harness, &spec), Vec::<String>::new());
    assert_eq!(harness.gone("q"), ["p -> a"]);
}

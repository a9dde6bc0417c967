//! Unschedulable pods are requeued in order, when something has changed for them, and not before.

use serde_json::{Value, json};

use super::harness::{Harness, cpu, pinned_to};

const NOTHING: [&str; 0] = [];

#[test]
fn pods_are_ordered_by_priority_then_pinned_then_age() {
    let mut harness = Harness::with_nodes(&["a"]);
    harness.pod("full", &json!({"containers": cpu("4"), "priority": 100}));
    let waits = |priority: i64, created: i64, affinity: Value| {
        json!({"containers": cpu("4"), "priority": priority, "created": created,
               "affinity": affinity})
    };
    harness.pod("young", &waits(0, 9, json!({})));
    harness.pod("old", &waits(0, 1, json!({})));
    harness.pod("daemon", &waits(0, 10, pinned_to("a")));
    harness.pod("important", &waits(5, 11, json!({})));
    let mut last = "full".to_owned();
    for expected in ["important", "daemon", "old", "young"] {
        assert_eq!(harness.gone(&last), [format!("{expected} -> a")]);
        last = expected.to_owned();
    }
}

#[test]
fn pods_are_requeued_by_changes_that_their_filter_reads() {
    let tainted = json!({"taints": [{"key": "x", "effect": "NoSchedule"}]});
    let mut harness = Harness::with(&[("a", tainted.clone())]);
    assert!(
        harness
            .place("pinned", &json!({"affinity": pinned_to("a")}))
            .contains("taint")
    );
    assert!(
        harness
            .place("elsewhere", &json!({"affinity": pinned_to("b")}))
            .contains("[NodeAffinity]")
    );
    assert!(harness.place("any", &json!({})).contains("taint"));
    assert_eq!(harness.node("a", &tainted), NOTHING, "nothing has changed");
    assert_eq!(harness.node("a", &json!({})), ["pinned -> a", "any -> a"]);
    assert_eq!(harness.node("b", &json!({})), ["elsewhere -> b"]);
}

#[test]
fn nothing_is_reported_twice() {
    let mut harness = Harness::with_nodes(&["a"]);
    let big = json!({"containers": cpu("5"), "affinity": pinned_to("a")});
    assert!(harness.place("p", &big).contains("Insufficient cpu"));
    assert_eq!(harness.pod("p", &big), NOTHING);
    assert_eq!(
        harness.node("a", &json!({"labels": {"new": "label"}})),
        NOTHING
    );
    let tainted = json!({"taints": [{"key": "x", "effect": "NoSchedule"}]});
    assert_eq!(
        harness.node("a", &tainted).len(),
        1,
        "another reason is reported"
    );
}

#[test]
fn a_node_with_resources_for_two_takes_two() {
    let mut harness = Harness::with_nodes(&["a"]);
    harness.pod("full", &json!({"containers": cpu("4")}));
    for name in ["p", "q", "r"] {
        harness.pod(name, &json!({"containers": cpu("2")}));
    }
    assert_eq!(harness.gone("full"), ["p -> a", "q -> a"]);
    assert_eq!(harness.gone("p"), ["r -> a"]);
}

#[test]
fn pods_of_one_class_get_the_same_message() {
    let mut harness = Harness::with_nodes(&["a", "b"]);
    let big = json!({"containers": cpu("5")});
    let first = harness.place("p", &big);
    assert_eq!(harness.place("q", &big), first.replacen('p', "q", 1));
    assert_eq!(harness.node("c", &json!({})), NOTHING);
    assert!(
        harness.place("r", &big).starts_with("r: 0/3 nodes"),
        "with all nodes there are"
    );
}

#[test]
fn gated_pods_are_not_reported_until_their_gates_are_removed() {
    let mut harness = Harness::with_nodes(&["a"]);
    assert_eq!(
        harness.pod("p", &json!({"schedulingGates": [{"name": "g"}]})),
        NOTHING
    );
    assert_eq!(harness.scheduler.pending(), (0, 0, 1));
    assert_eq!(
        harness.node("a", &json!({"labels": {"new": "label"}})),
        NOTHING
    );
    assert_eq!(harness.pod("p", &json!({})), ["p -> a"]);
    assert_eq!(harness.scheduler.pending(), (0, 0, 0));
}

#[test]
fn a_failed_binding_leaves_nothing_assumed() {
    let mut harness = Harness::with_nodes(&["a"]);
    let spec = json!({"containers": cpu("3")});
    assert_eq!(harness.place("p", &spec), "p -> a");
    assert!(
        harness.place("q", &spec).contains("Insufficient cpu"),
        "its room is taken at once"
    );
    harness.scheduler.bind_failed("p");
    assert_eq!(harness.decide(), ["q -> a"]);
    harness.scheduler.bind_failed("q");
    assert_eq!(harness.decide(), NOTHING, "both rest");
    harness.scheduler.retry("p");
    assert_eq!(harness.decide(), ["p -> a"]);
}

#[test]
fn a_binding_is_assumed_until_it_shows_and_requested_once() {
    let mut harness = Harness::with_nodes(&["a"]);
    let spec = json!({"containers": cpu("3")});
    assert_eq!(harness.place("p", &spec), "p -> a");
    assert_eq!(harness.pod("p", &spec), NOTHING, "old news");
    let mut bound = spec.clone();
    bound["nodeName"] = json!("a");
    assert_eq!(harness.pod("p", &bound), NOTHING);
    harness.scheduler.bind_failed("p");
    assert!(
        harness.place("q", &spec).contains("Insufficient"),
        "what is seen is believed"
    );
    assert!(harness.scheduler.is_up_to_date("p", "a", 1, None, false));
    assert!(!harness.scheduler.is_up_to_date("p", "a", 2, None, false));
    assert_eq!(harness.gone("p"), ["q -> a"]);
}

#[test]
fn pods_may_be_seen_before_their_node() {
    let mut harness = Harness::with(&[]);
    harness.pod("p", &json!({"containers": cpu("3"), "nodeName": "a"}));
    assert!(
        harness
            .place("q", &json!({"containers": cpu("3")}))
            .contains("no nodes available")
    );
    assert_eq!(
        harness.node("a", &json!({})).len(),
        0,
        "it does not fit, which was reported already"
    );
    assert_eq!(harness.gone("p"), ["q -> a"]);
}

#[test]
fn a_node_that_comes_back_takes_its_pods_again() {
    let mut harness = Harness::with_nodes(&["a"]);
    harness.scheduler.node_gone("a");
    let pinned = json!({"affinity": pinned_to("a")});
    assert_eq!(
        harness.place("p", &pinned),
        "p: no nodes available to schedule pods"
    );
    assert_eq!(harness.node("a", &json!({})), ["p -> a"]);
}

#[test]
fn nothing_is_decided_before_the_informers_have_synced() {
    let mut harness = Harness {
        scheduler: crate::schedule::Scheduler::new(),
    };
    assert_eq!(harness.node("a", &json!({})), NOTHING);
    assert_eq!(harness.pod("p", &json!({})), NOTHING);
    harness.scheduler.synced();
    assert_eq!(harness.decide(), ["p -> a"]);
}

#[test]
fn a_lost_report_is_repeated_with_the_current_state() {
    let mut harness = Harness::with_nodes(&["a"]);
    let spec = json!({"containers": cpu("5")});
    let reported = harness.pod("p", &spec);
    assert_eq!(reported.len(), 1);
    harness.scheduler.report_again("p");
    assert_eq!(harness.decide(), reported);
    harness.node("b", &json!({}));
    harness.scheduler.report_again("p");
    let reported = harness.decide().join(" ");
    assert!(reported.contains("0/2 nodes are available"), "{reported}");
    assert_eq!(
        harness.node("c", &json!({"allocatable": {"cpu": "8", "pods": "9"}})),
        ["p -> c"]
    );
    harness.scheduler.report_again("p");
    assert_eq!(harness.decide(), Vec::<String>::new());
}

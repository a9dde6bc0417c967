//! Who waits is looked at when something has changed for them, in order, and not before.

use serde_json::{Value, json};

use super::desk::{Desk, cpu, pinned_to};

const NOTHING: [&str; 0] = [];

#[test]
fn the_more_important_first_then_daemons_then_the_older() {
    let mut desk = Desk::plain(&["a"]);
    desk.pod("full", &json!({"containers": cpu("4"), "priority": 100}));
    let waits = |priority: i64, created: i64, affinity: Value| {
        json!({"containers": cpu("4"), "priority": priority, "created": created,
               "affinity": affinity})
    };
    desk.pod("young", &waits(0, 9, json!({})));
    desk.pod("old", &waits(0, 1, json!({})));
    desk.pod("daemon", &waits(0, 10, pinned_to("a")));
    desk.pod("important", &waits(5, 11, json!({})));
    let mut last = "full".to_owned();
    for expected in ["important", "daemon", "old", "young"] {
        assert_eq!(desk.gone(&last), [format!("{expected} -> a")]);
        last = expected.to_owned();
    }
}

#[test]
fn a_pod_waits_for_what_its_filter_reads() {
    let tainted = json!({"taints": [{"key": "x", "effect": "NoSchedule"}]});
    let mut desk = Desk::with(&[("a", tainted.clone())]);
    assert!(
        desk.place("pinned", &json!({"affinity": pinned_to("a")}))
            .contains("taint")
    );
    assert!(
        desk.place("elsewhere", &json!({"affinity": pinned_to("b")}))
            .contains("[NodeAffinity]")
    );
    assert!(desk.place("any", &json!({})).contains("taint"));
    assert_eq!(desk.node("a", &tainted), NOTHING, "nothing has changed");
    assert_eq!(desk.node("a", &json!({})), ["pinned -> a", "any -> a"]);
    assert_eq!(desk.node("b", &json!({})), ["elsewhere -> b"]);
}

#[test]
fn nothing_is_told_twice() {
    let mut desk = Desk::plain(&["a"]);
    let big = json!({"containers": cpu("5"), "affinity": pinned_to("a")});
    assert!(desk.place("p", &big).contains("Insufficient cpu"));
    assert_eq!(desk.pod("p", &big), NOTHING);
    assert_eq!(
        desk.node("a", &json!({"labels": {"new": "label"}})),
        NOTHING
    );
    let tainted = json!({"taints": [{"key": "x", "effect": "NoSchedule"}]});
    assert_eq!(desk.node("a", &tainted).len(), 1, "another reason is told");
}

#[test]
fn a_node_that_has_room_for_two_takes_two() {
    let mut desk = Desk::plain(&["a"]);
    desk.pod("full", &json!({"containers": cpu("4")}));
    for name in ["p", "q", "r"] {
        desk.pod(name, &json!({"containers": cpu("2")}));
    }
    assert_eq!(desk.gone("full"), ["p -> a", "q -> a"]);
    assert_eq!(desk.gone("p"), ["r -> a"]);
}

#[test]
fn pods_that_ask_the_same_are_told_the_same() {
    let mut desk = Desk::plain(&["a", "b"]);
    let big = json!({"containers": cpu("5")});
    let first = desk.place("p", &big);
    assert_eq!(desk.place("q", &big), first.replacen('p', "q", 1));
    assert_eq!(desk.node("c", &json!({})), NOTHING);
    assert!(
        desk.place("r", &big).starts_with("r: 0/3 nodes"),
        "with all nodes there are"
    );
}

#[test]
fn gated_pods_wait_in_silence_until_their_gates_are_gone() {
    let mut desk = Desk::plain(&["a"]);
    assert_eq!(
        desk.pod("p", &json!({"schedulingGates": [{"name": "g"}]})),
        NOTHING
    );
    assert_eq!(desk.scheduler.pending(), (0, 0, 1));
    assert_eq!(
        desk.node("a", &json!({"labels": {"new": "label"}})),
        NOTHING
    );
    assert_eq!(desk.pod("p", &json!({})), ["p -> a"]);
    assert_eq!(desk.scheduler.pending(), (0, 0, 0));
}

#[test]
fn a_failed_binding_leaves_nothing_assumed() {
    let mut desk = Desk::plain(&["a"]);
    let spec = json!({"containers": cpu("3")});
    assert_eq!(desk.place("p", &spec), "p -> a");
    assert!(
        desk.place("q", &spec).contains("Insufficient cpu"),
        "its room is taken at once"
    );
    desk.scheduler.bind_failed("p");
    assert_eq!(desk.decide(), ["q -> a"]);
    desk.scheduler.bind_failed("q");
    assert_eq!(desk.decide(), NOTHING, "both rest");
    desk.scheduler.retry("p");
    assert_eq!(desk.decide(), ["p -> a"]);
}

#[test]
fn a_binding_counts_until_it_is_seen_and_is_asked_for_once() {
    let mut desk = Desk::plain(&["a"]);
    let spec = json!({"containers": cpu("3")});
    assert_eq!(desk.place("p", &spec), "p -> a");
    assert_eq!(desk.pod("p", &spec), NOTHING, "old news");
    let mut bound = spec.clone();
    bound["nodeName"] = json!("a");
    assert_eq!(desk.pod("p", &bound), NOTHING);
    desk.scheduler.bind_failed("p");
    assert!(
        desk.place("q", &spec).contains("Insufficient"),
        "what is seen is believed"
    );
    assert!(desk.scheduler.knows("p", "a", 1, None, false));
    assert!(!desk.scheduler.knows("p", "a", 2, None, false));
    assert_eq!(desk.gone("p"), ["q -> a"]);
}

#[test]
fn pods_may_be_seen_before_their_node() {
    let mut desk = Desk::with(&[]);
    desk.pod("p", &json!({"containers": cpu("3"), "nodeName": "a"}));
    assert!(
        desk.place("q", &json!({"containers": cpu("3")}))
            .contains("no nodes available")
    );
    assert_eq!(
        desk.node("a", &json!({})).len(),
        0,
        "there is no room, and it is not told anew who was told that there is none"
    );
    assert_eq!(desk.gone("p"), ["q -> a"]);
}

#[test]
fn a_node_that_comes_back_takes_its_pods_again() {
    let mut desk = Desk::plain(&["a"]);
    desk.scheduler.node_gone("a");
    let pinned = json!({"affinity": pinned_to("a")});
    assert_eq!(
        desk.place("p", &pinned),
        "p: no nodes available to schedule pods"
    );
    assert_eq!(desk.node("a", &json!({})), ["p -> a"]);
}

#[test]
fn nothing_is_decided_before_all_is_seen() {
    let mut desk = Desk {
        scheduler: crate::schedule::Scheduler::new(),
    };
    assert_eq!(desk.node("a", &json!({})), NOTHING);
    assert_eq!(desk.pod("p", &json!({})), NOTHING);
    desk.scheduler.synced();
    assert_eq!(desk.decide(), ["p -> a"]);
}

#[test]
fn what_did_not_arrive_is_told_as_it_is_by_then() {
    let mut desk = Desk::plain(&["a"]);
    let spec = json!({"containers": cpu("5")});
    let told = desk.pod("p", &spec);
    assert_eq!(told.len(), 1);
    desk.scheduler.tell_again("p");
    assert_eq!(desk.decide(), told);
    desk.node("b", &json!({}));
    desk.scheduler.tell_again("p");
    let told = desk.decide().join(" ");
    assert!(told.contains("0/2 nodes are available"), "{told}");
    assert_eq!(
        desk.node("c", &json!({"allocatable": {"cpu": "8", "pods": "9"}})),
        ["p -> c"]
    );
    desk.scheduler.tell_again("p");
    assert_eq!(desk.decide(), Vec::<String>::new());
}

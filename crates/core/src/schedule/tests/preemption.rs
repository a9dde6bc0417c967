//! Who goes for whom.

use serde_json::{Value, json};

use super::desk::{Desk, cpu, machine, pinned_to, pod};
use crate::schedule::{PodView, Scheduler};

fn wants(amount: &str, priority: i64) -> Value {
    json!({"containers": cpu(amount), "priority": priority})
}

/// A node with these pods on it: name, processors, priority, age.
fn desk(pods: &[(&str, &str, i64, i64)]) -> Desk {
    let mut desk = Desk::plain(&["a"]);
    for (name, amount, priority, created) in pods {
        let mut spec = wants(amount, *priority);
        spec["nodeName"] = json!("a");
        spec["created"] = json!(created);
        desk.pod(name, &spec);
    }
    desk
}

fn evicted(desk: &mut Desk, spec: &Value) -> Vec<String> {
    let said = desk.pod("p", spec);
    said.into_iter()
        .filter_map(|line| Some(line.strip_prefix("p evicts ")?.to_owned()))
        .collect()
}

#[test]
fn the_fewest_the_lowest_the_newest() {
    let pods = [("low", "1", 1, 0), ("lower", "1", 0, 0), ("mid", "2", 5, 0)];
    assert_eq!(evicted(&mut desk(&pods), &wants("1", 10)), ["lower from a"]);
    assert_eq!(
        evicted(&mut desk(&pods), &wants("2", 10)),
        ["low,lower from a"]
    );
    assert_eq!(
        evicted(&mut desk(&pods), &wants("4", 10)),
        ["mid,low,lower from a"]
    );
    let same = [("old", "2", 0, 1), ("new", "2", 0, 2)];
    assert_eq!(evicted(&mut desk(&same), &wants("1", 10)), ["new from a"]);
}

#[test]
fn equals_never_evict_each_other_not_even_a_daemon() {
    let mut desk = desk(&[("q", "4", 5, 0)]);
    let mut daemon = wants("1", 5);
    daemon["affinity"] = pinned_to("a");
    assert!(
        desk.place("d", &daemon)
            .contains("1 No preemption victims found for incoming pod")
    );
    assert_eq!(evicted(&mut desk, &wants("1", 6)), ["q from a"]);
}

#[test]
fn a_daemon_of_higher_priority_evicts_on_its_own_node_alone() {
    let mut desk = Desk::plain(&["a", "b"]);
    desk.pod(
        "x",
        &json!({"containers": cpu("4"), "nodeName": "a", "priority": 1}),
    );
    desk.pod("y", &json!({"containers": cpu("4"), "nodeName": "b"}));
    let mut daemon = wants("1", 10);
    daemon["affinity"] = pinned_to("a");
    assert_eq!(evicted(&mut desk, &daemon), ["x from a"]);
}

#[test]
fn where_it_harms_least() {
    let place = |nodes: &[(&str, i64, i64)]| {
        let names: Vec<&str> = nodes.iter().map(|(name, ..)| *name).collect();
        let mut desk = Desk::plain(&names);
        for (name, priority, created) in nodes {
            desk.pod(
                &format!("on-{name}"),
                &json!({"containers": cpu("4"), "nodeName": name,
                "priority": priority, "created": created}),
            );
        }
        evicted(&mut desk, &wants("1", 10)).join(" ")
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
    let said = desk(&[("q", "4", 0, 0)]).place("p", &spec);
    assert_eq!(
        said,
        "p: 0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to \
         preemptionPolicy=Never."
    );
}

#[test]
fn nobody_is_evicted_where_it_would_not_help() {
    let mut desk = Desk::with(&[(
        "a",
        json!({"taints": [{"key": "x", "effect": "NoSchedule"}]}),
    )]);
    desk.pod("q", &json!({"containers": cpu("4"), "nodeName": "a"}));
    assert_eq!(evicted(&mut desk, &wants("1", 10)), Vec::<String>::new());
    assert_eq!(
        evicted(&mut self::desk(&[("q", "1", 0, 0)]), &wants("5", 10)),
        Vec::<String>::new()
    );
}

#[test]
fn room_that_was_made_is_kept_for_whom_it_was_made() {
    let mut desk = desk(&[("q", "4", 0, 0)]);
    assert_eq!(
        desk.pod("p", &wants("4", 10)),
        [
            "p evicts q from a",
            "p (nominated a): 0/1 nodes are available: 1 Insufficient cpu."
        ]
    );
    let mut going = json!({"containers": cpu("4"), "nodeName": "a", "terminating": true});
    going["priority"] = json!(0);
    assert_eq!(desk.pod("q", &going), Vec::<String>::new());
    assert!(
        desk.place("thief", &wants("1", 5))
            .contains("Insufficient cpu")
    );
    assert_eq!(desk.gone("q"), ["p -> a"]);
}

#[test]
fn who_waits_for_victims_evicts_no_more() {
    let mut desk = desk(&[("q", "4", 0, 0), ("r", "0", 0, 0)]);
    assert_eq!(evicted(&mut desk, &wants("4", 10)), ["q from a"]);
    assert_eq!(
        desk.gone("r"),
        [
            "p (nominated a): 0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to \
          a terminating pod on the nominated node."
        ]
    );
    desk.scheduler.evict_failed("p");
    assert_eq!(desk.decide(), Vec::<String>::new());
    desk.scheduler.retry("p");
    assert_eq!(desk.decide()[0], "p evicts q from a");
}

#[test]
fn a_still_more_important_pod_takes_the_room_and_the_other_looks_again() {
    let mut desk = desk(&[("q", "4", 0, 0)]);
    assert_eq!(evicted(&mut desk, &wants("4", 10)), ["q from a"]);
    let said = desk.pod("boss", &wants("4", 20));
    assert_eq!(said[0], "p no longer nominated");
    assert_eq!(said[1], "boss evicts q from a");
    assert_eq!(desk.gone("q"), ["boss -> a"]);
}

#[test]
fn a_nomination_from_before_is_honoured() {
    let mut desk = Desk::plain(&["a"]);
    desk.pod(
        "q",
        &json!({"containers": cpu("4"), "nodeName": "a", "terminating": true}),
    );
    let mut spec = wants("4", 10);
    spec["nominated"] = json!("a");
    desk.pod("p", &spec);
    assert!(
        desk.place("thief", &wants("4", 1))
            .contains("Insufficient cpu")
    );
    assert_eq!(desk.gone("q"), ["p -> a"]);
}

#[test]
fn room_elsewhere_is_taken_and_the_nomination_given_up() {
    let mut desk = desk(&[("q", "4", 0, 0)]);
    desk.pod("p", &wants("4", 10));
    assert_eq!(desk.node("b", &json!({})), ["p -> b"]);
    assert_eq!(desk.gone("q"), Vec::<String>::new());
    assert_eq!(desk.place("r", &wants("4", 0)), "r -> a");
}

#[test]
fn a_port_is_freed() {
    let port = |priority: i64| json!({"containers": [{"ports": [{"hostPort": 80}]}], "priority": priority});
    let mut desk = Desk::plain(&["a"]);
    assert_eq!(desk.place("q", &port(0)), "q -> a");
    assert_eq!(desk.place("other", &wants("1", 0)), "other -> a");
    assert_eq!(evicted(&mut desk, &port(1)), ["q from a"]);
}

/// On node a, a victim that leaves; on node b, one that could be evicted at less harm.
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
        scheduler.node(machine(name, &json!({})));
    }
    scheduler.synced();
    let mut desk = Desk { scheduler };
    let said = desk.decide().join(" ");
    assert!(!said.contains("evicts"), "{said}");
    assert_eq!(desk.gone("q"), ["p -> a"]);
    let nodes = desk.scheduler.node_ids.len();
    assert_eq!(nodes, 2, "no node that is not there is kept");
}

#[test]
fn room_that_was_made_is_kept_when_the_binding_fails() {
    let mut desk = desk(&[("q", "4", 0, 0)]);
    desk.pod("p", &wants("4", 10));
    assert_eq!(desk.gone("q"), ["p -> a"]);
    desk.scheduler.bind_failed("p");
    assert!(
        desk.place("thief", &wants("1", 5))
            .contains("Insufficient cpu")
    );
    desk.scheduler.retry("p");
    assert_eq!(desk.decide(), ["p -> a"]);
}

#[test]
fn who_is_relabelled_while_its_victims_leave_evicts_no_more() {
    let mut desk = desk(&[("q", "4", 5, 0)]);
    let mut spec = wants("4", 10);
    assert_eq!(evicted(&mut desk, &spec), ["q from a"]);
    for seen in leaving() {
        desk.scheduler.pod(seen);
    }
    desk.node("b", &json!({}));
    spec["labels"] = json!({"new": "label"});
    assert_eq!(evicted(&mut desk, &spec), Vec::<String>::new());
    assert_eq!(desk.gone("q"), ["p -> a"]);
}

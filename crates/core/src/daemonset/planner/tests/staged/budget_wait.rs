//! Daemons that fail before their turn use up `maxUnavailable` (R3.3), and everything that people read says so.

use super::super::super::super::view::Strategy;
use super::cluster::{Cluster, rolling};
use super::{PROGRESSING, STABLE};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::state::Phase;

const CANARY: (&str, &str) = ("stages", "nodes(pool=canary), 100%");

/// Nodes on template 0, of which node-0 is the canary, and these fail.
fn failing(nodes: usize, failing: &[usize], policy: &[(&str, &str)]) -> Cluster {
    let mut cluster = Cluster::new(nodes, &[&[CANARY], policy].concat());
    cluster.label("node-0", "pool", "canary");
    for number in failing {
        let node = format!("node-{number}");
        cluster.sick.insert(node.clone());
        cluster.edit_pods(&node, |pod| pod.ready_since = None);
    }
    cluster.run();
    cluster
}

fn message(cluster: &Cluster) -> String {
    let conditions = &cluster.fake.sets[&cluster.uid].conditions;
    conditions.get("Progressing").unwrap().message.clone()
}

#[test]
fn r3_3_daemons_that_fail_before_their_turn_use_up_the_budget_and_are_named() {
    let mut cluster = failing(4, &[2], &[]);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1), Vec::<String>::new());
    let hash = cluster.hash(1).unwrap();
    let waits = format!(
        "{hash}: stage 1 of 2 (nodes(pool=canary)); \
         waits: maxUnavailable is 1 and the pod on node node-2 is not available"
    );
    assert_eq!(message(&cluster), waits);
    // A new controller says the same, and says it no longer when the budget is free.
    cluster.restart();
    assert_eq!(message(&cluster), waits);
    cluster.sick.clear();
    cluster.run();
    assert!(
        !message(&cluster).contains("waits"),
        "{}",
        message(&cluster)
    );
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r3_3_a_budget_that_is_larger_than_what_fails_goes_on() {
    let mut cluster = failing(4, &[2], &[]);
    cluster.set_strategy(rolling(2));
    cluster.annotate(&[("stages", "nodes(pool=canary) 1h, 100%")]);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1), ["node-0"]);
    assert!(
        !message(&cluster).contains("waits"),
        "{}",
        message(&cluster)
    );
}

#[test]
fn r3_3_with_max_surge_daemons_that_fail_before_their_turn_hold_nothing_up() {
    let mut cluster = failing(4, &[2], &[]);
    cluster.set_strategy(Strategy::RollingUpdate {
        max_unavailable: Some(IntOrPercent::Int(0)),
        max_surge: Some(IntOrPercent::Int(1)),
    });
    cluster.annotate(&[("stages", "nodes(pool=canary) 1h, 100%")]);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1), ["node-0"]);
    assert!(
        !message(&cluster).contains("waits"),
        "{}",
        message(&cluster)
    );
}

#[test]
fn r3_3_nodes_that_the_rollout_has_in_between_are_no_reason_to_wait() {
    let mut cluster = failing(4, &[], &[]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1), ["node-0"]);
    assert!(
        !message(&cluster).contains("waits"),
        "{}",
        message(&cluster)
    );
    cluster.annotate(&[("stages", "100%")]);
    cluster.run();
    assert!(
        !message(&cluster).contains("waits"),
        "{}",
        message(&cluster)
    );
}

#[test]
fn r5_2_a_progress_deadline_names_the_nodes_that_use_up_the_budget() {
    let mut cluster = failing(4, &[2], &[("progress-deadline", "1m")]);
    cluster.roll_out(1);
    cluster.forget();
    cluster.advance(60);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(reason.code, "DeadlineExceeded");
    let expected = "no further node became healthy for 1m; maxUnavailable is 1 and the pod on node node-2 is not \
                    available, so 1 node waits; see kennel rollout status ds -n default";
    assert_eq!(reason.message, expected);
    let paused = cluster.events.iter().find(|(r, _)| r == "RolloutPaused");
    assert!(paused.unwrap().1.contains(expected), "{paused:?}");
    assert!(
        message(&cluster).contains(expected),
        "{}",
        message(&cluster)
    );
}

#[test]
fn r5_2_ten_of_the_nodes_that_use_up_the_budget_are_named_and_the_others_counted() {
    let sick: Vec<usize> = (2..14).collect();
    let mut cluster = failing(15, &sick, &[("progress-deadline", "1m")]);
    cluster.roll_out(1);
    cluster.advance(60);
    let reason = cluster.record(1).state.unwrap().reason.unwrap().message;
    assert_eq!(reason.matches("node-").count(), 10, "{reason}");
    assert!(
        reason.contains(" and 2 more are not available, so 1 node waits; "),
        "{reason}"
    );
    assert!(!reason.contains("node-0"), "{reason}");
}

#[test]
fn r3_3_a_promotion_in_full_replaces_what_fails_at_once() {
    let mut cluster = failing(4, &[2], &[]);
    cluster.roll_out(1);
    // What fails is repaired by the release.
    cluster.sick.clear();
    cluster.broken.insert(0);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("promote", &format!("{hash}/full"))]);
    cluster.run();
    assert_eq!(cluster.on(1).len(), 4);
    assert_eq!(cluster.phase(1).0, STABLE);
}

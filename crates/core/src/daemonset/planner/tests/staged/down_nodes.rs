//! Nodes that are down, with the taints of such nodes (R4).

use std::collections::BTreeSet;

use super::super::super::super::view::Readiness;
use super::cluster::{Cluster, rolling};
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::state::Phase;

const ROLLBACK: (&str, &str) = ("on-failure", "rollback");

#[test]
fn r4_half_of_the_nodes_die_in_the_middle_of_a_stage() {
    let policy = [("stages", "6 1h, 100%"), ROLLBACK];
    let mut undisturbed = Cluster::new(10, &policy);
    undisturbed.roll_out(1);
    let first: BTreeSet<String> = undisturbed.on(1).into_iter().collect();

    let mut cluster = Cluster::new(10, &policy);
    cluster.change_template(1);
    while cluster.on(1).len() < 3 {
        cluster.go_on();
    }
    let cut = cluster.record(1).state.unwrap().cut;
    let dead = [&cluster.on(1)[..1], &cluster.on(0)[..4]].concat();
    cluster.set_ready(&dead, Readiness::Unknown);
    cluster.advance(1_200);
    // The living nodes of the stage have it, no other has, and nobody is blamed.
    let living: BTreeSet<String> = first
        .iter()
        .filter(|n| !dead.contains(n))
        .cloned()
        .collect();
    let reached = cluster.on(1).into_iter();
    let reached: BTreeSet<String> = reached.filter(|node| !dead.contains(node)).collect();
    assert_eq!(reached, living);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.record(1).state.unwrap().cut, cut);
    cluster.advance(2_400);
    assert_eq!(cluster.phase(1).0, STABLE, "{:?}", cluster.events);
    assert_eq!(cluster.told("NodeFailed"), 0);
    cluster.set_ready(&dead, Readiness::Ready);
    assert_eq!(cluster.counts(), [(1, 10)].into());
}

#[test]
fn r4_a_target_that_takes_half_of_its_stage_down_goes_back() {
    let mut cluster = Cluster::new(10, &[("stages", "6 1h, 100%"), ROLLBACK]);
    cluster.roll_out(1);
    let dead = cluster.on(1)[..3].to_vec();
    cluster.advance(60);
    cluster.set_ready(&dead, Readiness::NotReady);
    cluster.advance(119);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
    assert_eq!(cluster.told("NodeFailed"), 3);
    // Nothing of it stays, not even where stable's pods cannot start yet.
    assert_eq!(cluster.on(1).len(), 0);
    assert_eq!(cluster.phase(1).1, Some((1, Phase::Held)));
    cluster.set_ready(&dead, Readiness::Ready);
    assert_eq!(cluster.counts(), [(0, 10)].into());
}

/// Templates 4 and 9 tolerate everything, as network daemons do.
fn tolerant() -> Cluster {
    let mut cluster = Cluster::new(6, &[("stages", "100%")]);
    cluster.roll_out(4);
    assert_eq!(cluster.counts(), [(4, 6)].into());
    cluster.annotate(&[("stages", "3 1h, 100%")]);
    cluster.run();
    cluster
}

#[test]
fn r4_1_missing_pods_are_made_and_old_ones_replaced_on_nodes_that_are_not_ready() {
    let mut cluster = tolerant();
    let all: Vec<String> = (0..6).map(|number| format!("node-{number}")).collect();
    cluster.set_ready(&all, Readiness::NotReady);
    cluster.roll_out(9);
    let (admitted, others) = (cluster.on(9), cluster.on(4));
    assert_eq!((admitted.len(), others.len()), (3, 3));
    for (node, number) in [(&admitted[0], 9), (&others[0], 4)] {
        cluster.remove_pods(node);
        assert_eq!(cluster.hashes_on(node), [cluster.hash(number).unwrap()]);
    }
}

#[test]
fn r4_1_nodes_that_do_not_answer_get_what_is_theirs_when_they_return() {
    let mut cluster = tolerant();
    let all: Vec<String> = (0..6).map(|number| format!("node-{number}")).collect();
    cluster.set_ready(&all, Readiness::Unknown);
    cluster.remove_pods("node-0");
    cluster.roll_out(9);
    assert_eq!(cluster.counts(), [(4, 5)].into());
    assert_eq!(cluster.on(9).len(), 0);
    cluster.set_ready(&all, Readiness::Ready);
    assert_eq!((cluster.on(4).len(), cluster.on(9).len()), (3, 3));
}

#[test]
fn r4_1_where_taints_keep_pods_away_what_a_node_has_stays() {
    let mut cluster = Cluster::new(6, &[("stages", "3 1h, 100%")]);
    cluster.roll_out(1);
    let (one, other) = (cluster.on(1)[0].clone(), cluster.on(0)[0].clone());
    let kept = [cluster.pods_on(&one), cluster.pods_on(&other)];
    cluster.set_ready(&[one.clone(), other.clone()], Readiness::NotReady);
    cluster.advance(60);
    assert_eq!([cluster.pods_on(&one), cluster.pods_on(&other)], kept);
    // The template does not tolerate it: a missing pod waits, and so does a newer template.
    cluster.remove_pods(&other);
    assert_eq!(cluster.pods_on(&other).len(), 0);
    cluster.roll_out(2);
    assert_eq!(cluster.pods_on(&one), kept[0]);
    assert_eq!(cluster.phase(2), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.set_ready(&[one.clone(), other.clone()], Readiness::Ready);
    assert_eq!(cluster.hashes_on(&one), [cluster.hash(2).unwrap()]);
    assert_eq!(cluster.hashes_on(&other), [cluster.hash(0).unwrap()]);
}

#[test]
fn r4_1_with_count_down_nodes_use_budget_and_hold_a_stage_up() {
    let mut cluster = Cluster::new(5, &[("stages", "100%"), ("down-nodes", "count")]);
    let down = |cluster: &mut Cluster, ready: Readiness| {
        cluster.edit_node("node-1", |node| node.ready = ready);
        cluster.edit_pods("node-1", |pod| pod.ready_since = None);
        cluster.run();
    };
    cluster.sick.insert("node-1".to_owned());
    down(&mut cluster, Readiness::NotReady);
    cluster.roll_out(1);
    cluster.advance(590);
    // Its pod is replaced, as upstream replaces what is not available first; then it uses up the budget.
    assert_eq!(cluster.on(1), ["node-1"]);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    cluster.sick.clear();
    down(&mut cluster, Readiness::Ready);
    assert_eq!(cluster.counts(), [(1, 5)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r4_2_the_taints_of_a_node_that_went_down_do_not_hide_it() {
    for ready in [Readiness::NotReady, Readiness::Unknown] {
        for down_nodes in ["skip", "count"] {
            let policy = [
                ("stages", "2 1h, 100%"),
                ROLLBACK,
                ("down-nodes", down_nodes),
            ];
            let mut cluster = Cluster::new(6, &policy);
            cluster.roll_out(1);
            let victim = cluster.on(1)[0].clone();
            cluster.advance(30);
            cluster.set_ready(&[victim], ready);
            cluster.advance(119);
            assert_eq!(cluster.phase(1).0, PROGRESSING);
            cluster.advance(1);
            assert_eq!(cluster.phase(1).0, FAILED, "{ready:?} {down_nodes}");
            let reason = cluster.record(1).state.unwrap().reason.unwrap();
            assert_eq!(reason.code, "NodeDown");
        }
    }
}

#[test]
fn r4_2_cordoned_and_deleted_nodes_are_not_blamed() {
    let policy = [("stages", "2 1h, 100%"), ROLLBACK];
    let start = || {
        let mut cluster = Cluster::new(6, &policy);
        cluster.roll_out(1);
        cluster.advance(30);
        let victim = cluster.on(1)[0].clone();
        (cluster, victim)
    };
    // Somebody works on it.
    let (mut cluster, victim) = start();
    cluster.edit_node(&victim, |node| node.unschedulable = true);
    cluster.set_ready(&[victim], Readiness::NotReady);
    cluster.advance(900);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    // The autoscaler takes it away.
    let (mut cluster, victim) = start();
    cluster.set_ready(std::slice::from_ref(&victim), Readiness::NotReady);
    cluster.advance(60);
    cluster.remove_node(&victim);
    cluster.advance(900);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    assert_eq!(cluster.told("NodeFailed"), 0);
}

#[test]
fn r4_2_after_a_restart_an_old_pod_is_not_blamed() {
    let mut cluster = Cluster::new(6, &[("stages", "2 1h, 100%"), ROLLBACK]);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    cluster.advance(1_200);
    cluster.restart();
    cluster.advance(30);
    cluster.set_ready(&[victim], Readiness::NotReady);
    cluster.advance(600);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
}

/// A rollout on six nodes, of whose first stage one node goes down with so many others. Then the controller is killed.
fn killed_after_nodes_went_down(age_of_pods: u64, others: usize) -> Cluster {
    let mut cluster = Cluster::new(6, &[("stages", "2 3h, 100%"), ROLLBACK]);
    cluster.roll_out(1);
    let down = [&cluster.on(1)[..1], &cluster.on(0)[..others]].concat();
    cluster.advance(age_of_pods);
    cluster.set_ready(&down, Readiness::NotReady);
    cluster.advance(60);
    cluster.restart();
    cluster
}

#[test]
fn r4_2_a_new_controller_blames_the_target_for_a_node_that_went_down_before() {
    let mut cluster = killed_after_nodes_went_down(30, 0);
    // It waits for two minutes of its own.
    cluster.advance(119);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    cluster.advance(1);
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(reason.code, "NodeDown");
}

#[test]
fn r4_2_a_new_controller_blames_nobody_for_an_outage_or_after_the_window() {
    for (age_of_pods, others) in [(30, 1), (601, 0)] {
        let mut cluster = killed_after_nodes_went_down(age_of_pods, others);
        cluster.advance(900);
        assert_eq!(cluster.phase(1).0, PROGRESSING, "{age_of_pods} {others}");
        assert_eq!(cluster.told("NodeFailed"), 0);
    }
}

/// A rollout whose first stage has two nodes and forgives one failure, the second stage all. One of the two goes down.
fn one_taken_down(ready: Readiness, down_nodes: &str) -> (Cluster, String) {
    let policy = [
        ("stages", "2 5m, 100%"),
        ("max-failures", "1"),
        ("down-nodes", down_nodes),
    ];
    let mut cluster = Cluster::new(6, &policy);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    cluster.advance(30);
    cluster.set_ready(std::slice::from_ref(&victim), ready);
    cluster.advance(120);
    assert_eq!(cluster.told("NodeFailed"), 1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    (cluster, victim)
}

#[test]
fn r4_2_a_node_that_was_taken_down_uses_budget_whatever_taints_it_has() {
    for ready in [Readiness::NotReady, Readiness::Unknown] {
        for down_nodes in ["skip", "count"] {
            let (mut cluster, victim) = one_taken_down(ready, down_nodes);
            let mut wider = one_taken_down(ready, down_nodes).0;
            cluster.advance(150);
            assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
            // `maxUnavailable` is 1: no further node is put at risk while the first is down.
            let first = cluster.on(1);
            cluster.advance(1_799);
            assert_eq!(cluster.on(1), first, "{ready:?} {down_nodes}");
            assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
            cluster.advance(1);
            assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Paused))));
            let reason = cluster.record(1).state.unwrap().reason.unwrap();
            let message = reason.message;
            assert!(
                message.contains("; 5 are not yet (commonest cause: "),
                "{message}"
            );
            // The one that holds the others up comes first.
            assert!(message.contains(&format!("): {victim}, ")), "{message}");
            // A person accepts that.
            cluster.promote(1, 2);
            assert_eq!(cluster.phase(1).0, STABLE, "{ready:?} {down_nodes}");
            assert_eq!(cluster.on(1).len(), 6);
            // With another node's worth of budget the rollout goes on beside it.
            wider.set_strategy(rolling(2));
            wider.run();
            wider.advance(150);
            assert_eq!(wider.phase(1).0, STABLE, "{ready:?} {down_nodes}");
        }
    }
}

#[test]
fn r4_2_a_node_that_returns_uses_no_budget_any_more() {
    let (mut cluster, victim) = one_taken_down(Readiness::NotReady, "skip");
    cluster.advance(150);
    assert_eq!(cluster.on(1).len(), 2);
    cluster.set_ready(&[victim], Readiness::Ready);
    assert_eq!(cluster.phase(1).0, STABLE);
    assert_eq!(cluster.counts(), [(1, 6)].into());
}

#[test]
fn r4_2_blame_lasts_as_long_as_the_node_is_down() {
    let (mut cluster, _) = one_taken_down(Readiness::NotReady, "skip");
    cluster.set_strategy(rolling(6));
    // Long after the window a second one goes down: that is one too many.
    cluster.annotate(&[("stages", "2 2h, 100%")]);
    cluster.advance(3_600);
    let other = cluster.on(1)[1].clone();
    cluster.remove_pods(&other);
    cluster.advance(30);
    cluster.set_ready(&[other], Readiness::NotReady);
    cluster.advance(119);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
}

#[test]
fn r4_2_a_node_that_was_taken_down_does_not_hold_up_the_way_back() {
    for ready in [Readiness::NotReady, Readiness::Unknown] {
        let mut cluster = Cluster::new(6, &[("stages", "4 1h, 100%"), ROLLBACK]);
        cluster.roll_out(1);
        let victim = cluster.on(1)[0].clone();
        cluster.advance(30);
        cluster.set_ready(&[victim], ready);
        cluster.advance(120);
        assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
        assert_eq!(cluster.on(0).len(), 5, "{ready:?}");
    }
}

//! Rollouts without progress (R5.2): what counts as progress, and across restarts.

use std::time::Duration;

use super::cluster::Cluster;
use super::{PROGRESSING, STABLE};
use crate::rollout::state::Phase;

const PATIENT: (&str, &str) = ("healthy-deadline", "9h");

/// Six nodes, of which three are healthy. The second stage has begun, and no further pod becomes ready.
fn half_way() -> Cluster {
    let mut cluster = Cluster::new(6, &[("stages", "3 manual, 100%"), PATIENT]);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1).len(), 3);
    cluster.sick = cluster.on(0).into_iter().collect();
    cluster.promote(1, 1);
    cluster
}

/// Lets the pod of the target that is not ready become ready.
fn heal_one(cluster: &mut Cluster) {
    let on = cluster.on(1);
    let sick = on.into_iter().find(|node| cluster.sick.contains(node));
    let sick = sick.expect("one node is being updated");
    cluster.sick.remove(&sick);
    cluster.run();
}

#[track_caller]
fn is_stuck(cluster: &Cluster) {
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Paused))));
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(reason.code, "DeadlineExceeded");
}

#[test]
fn r5_2_nodes_that_leave_do_not_hide_progress() {
    let mut cluster = half_way();
    let healthy = cluster.on(1);
    for node in healthy
        .iter()
        .filter(|node| !cluster.sick.contains(*node))
        .take(2)
        .cloned()
        .collect::<Vec<_>>()
    {
        cluster.remove_node(&node);
    }
    // Never more than three at once are healthy, but every twenty minutes one more is.
    for _ in 0..3 {
        cluster.advance(1_200);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
        heal_one(&mut cluster);
    }
    assert_eq!(cluster.phase(1).0, STABLE, "{:?}", cluster.events);
}

#[test]
fn r5_2_a_node_that_becomes_healthy_again_is_no_progress() {
    let mut cluster = half_way();
    let on = cluster.on(1);
    let flapping = on
        .iter()
        .find(|node| !cluster.sick.contains(*node))
        .unwrap()
        .clone();
    for _ in 0..2 {
        cluster.advance(800);
        cluster.edit_pods(&flapping, |pod| pod.ready_since = None);
        cluster.run();
    }
    cluster.advance(199);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
    cluster.advance(1);
    is_stuck(&cluster);
}

#[test]
fn r5_2_a_restart_does_not_start_the_progress_deadline_over() {
    let mut cluster = half_way();
    for _ in 0..2 {
        cluster.advance(14 * 60);
        cluster.restart();
    }
    cluster.advance(299);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
    cluster.advance(1);
    is_stuck(&cluster);
    // The last progress was twenty minutes ago.
    let mut cluster = half_way();
    cluster.advance(20 * 60);
    heal_one(&mut cluster);
    cluster.advance(20 * 60);
    cluster.restart();
    cluster.advance(10 * 60 - 1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
    cluster.advance(1);
    is_stuck(&cluster);
}

#[test]
fn r5_2_the_time_without_a_controller_does_not_end_the_rollout_at_once() {
    let mut cluster = half_way();
    cluster.advance(300);
    cluster.annotate(&[("pause", "night")]);
    cluster.advance(300);
    // The controller is dead for hours, in which the pause is lifted.
    let hours = Duration::from_hours(5);
    (cluster.fake.now, cluster.steady) = (cluster.fake.now + hours, cluster.steady + hours);
    cluster.unannotate(&["pause"]);
    cluster.restart();
    cluster.advance(60);
    for _ in 0..3 {
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Updating))));
        heal_one(&mut cluster);
    }
    assert_eq!(cluster.phase(1).0, STABLE);
}

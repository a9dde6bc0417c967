//! What counts towards `healthy-deadline` (R5.1, R4.1), and that a new controller starts every wait over (R8.1).

use super::super::super::super::view::{Readiness, Waiting};
use super::cluster::Cluster;
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::state::Phase;

const ROLLBACK: (&str, &str) = ("on-failure", "rollback");

fn set_min_ready_seconds(cluster: &mut Cluster, seconds: i64) {
    let uid = cluster.uid.clone();
    cluster
        .fake
        .edit_set(&uid, |set| set.min_ready_seconds = seconds);
    cluster.run();
}

/// Two nodes of six have the target, which bakes.
fn baking() -> (Cluster, String) {
    let mut cluster = Cluster::new(6, &[("stages", "2 2h, 100%"), ROLLBACK]);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    (cluster, victim)
}

/// Keeps the pod on a node from being ready.
fn sicken(cluster: &mut Cluster, node: &str) {
    cluster.sick.insert(node.to_owned());
    cluster.edit_pods(node, |pod| pod.ready_since = None);
    cluster.run();
}

#[test]
fn r5_1_after_a_restart_a_daemon_that_was_available_has_the_whole_deadline_again() {
    let (mut cluster, victim) = baking();
    cluster.advance(1_200);
    sicken(&mut cluster, &victim);
    cluster.advance(1);
    cluster.restart();
    cluster.advance(599);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.told("NodeFailed"), 0);
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
}

#[test]
fn r5_1_a_new_controller_starts_the_wait_for_a_daemon_over() {
    let mut cluster = Cluster::new(4, &[("stages", "2, 100%"), ROLLBACK]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(590);
    cluster.restart();
    cluster.advance(599);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
}

#[test]
fn r8_1_a_restart_during_a_bake_does_not_fail_a_node_that_is_down() {
    for ready in [Readiness::Unknown, Readiness::NotReady] {
        let (mut cluster, victim) = baking();
        // Long after the blame window.
        cluster.advance(1_200);
        cluster.set_ready(std::slice::from_ref(&victim), ready);
        sicken(&mut cluster, &victim);
        cluster.restart();
        cluster.advance(1_200);
        assert_eq!(
            cluster.phase(1),
            (PROGRESSING, Some((1, Phase::Baking))),
            "{ready:?}"
        );
        // The bake goes on, and the rollout with it.
        cluster.advance(2 * 3_600);
        assert_eq!(cluster.phase(1).0, STABLE, "{ready:?}");
        assert_eq!(cluster.told("NodeFailed"), 0, "{ready:?}");
    }
}

#[test]
fn r8_1_a_restart_within_min_ready_seconds_fails_nothing() {
    let mut cluster = Cluster::new(4, &[("stages", "100%"), ROLLBACK]);
    set_min_ready_seconds(&mut cluster, 1_200);
    cluster.advance(1_200);
    cluster.roll_out(1);
    // Its pod is older than the deadline, ready, and not available yet.
    cluster.advance(900);
    cluster.restart();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    cluster.advance(4 * 1_200);
    assert_eq!(cluster.phase(1).0, STABLE);
    assert_eq!(cluster.told("NodeFailed"), 0);
}

#[test]
fn r5_1_a_daemon_that_becomes_unavailable_again_has_the_deadline_once_more() {
    let (mut cluster, victim) = baking();
    cluster.advance(1_200);
    sicken(&mut cluster, &victim);
    cluster.advance(500);
    // It recovers, so the next time counts from zero.
    cluster.sick.clear();
    cluster.run();
    cluster.advance(60);
    sicken(&mut cluster, &victim);
    cluster.advance(599);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(reason.code, "NotAvailable");
}

#[test]
fn r5_1_min_ready_seconds_do_not_count_towards_the_deadline() {
    let mut cluster = Cluster::new(3, &[("stages", "100%"), ROLLBACK]);
    set_min_ready_seconds(&mut cluster, 900);
    cluster.advance(900);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(590);
    cluster.broken.clear();
    cluster.run();
    // Ready for longer than the deadline before it is available.
    cluster.advance(899);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    assert_eq!(cluster.told("NodeFailed"), 0);
    cluster.advance(1);
    assert_eq!(cluster.on(1).len(), 2);
}

#[test]
fn r5_1_time_not_ready_adds_up_until_a_daemon_is_available() {
    let mut cluster = Cluster::new(3, &[("stages", "100%"), ROLLBACK]);
    set_min_ready_seconds(&mut cluster, 300);
    cluster.advance(300);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    let node = cluster.on(1)[0].clone();
    for _ in 0..2 {
        cluster.advance(290);
        let now = cluster.fake.timestamp();
        cluster.edit_pods(&node, |pod| pod.ready_since = Some(now));
        cluster.run();
        cluster.advance(200);
        cluster.edit_pods(&node, |pod| pod.ready_since = None);
        cluster.run();
    }
    // 580 seconds so far.
    cluster.advance(19);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
}

#[test]
fn r5_1_time_down_does_not_count_towards_the_deadline() {
    let (mut cluster, victim) = baking();
    cluster.advance(1_200);
    sicken(&mut cluster, &victim);
    cluster.advance(400);
    cluster.set_ready(std::slice::from_ref(&victim), Readiness::NotReady);
    cluster.advance(3_600);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.set_ready(&[victim], Readiness::Ready);
    cluster.advance(199);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
}

#[test]
fn r4_1_a_failed_node_that_goes_down_does_not_count_as_failed() {
    let policy = [("stages", "3 3h, 100%"), ("max-failures", "1"), ROLLBACK];
    let mut cluster = Cluster::new(6, &policy);
    cluster.roll_out(1);
    let on = cluster.on(1);
    cluster.advance(1_200);
    sicken(&mut cluster, &on[0]);
    cluster.advance(600);
    assert_eq!(cluster.told("NodeFailed"), 1);
    cluster.set_ready(&on[..1], Readiness::NotReady);
    sicken(&mut cluster, &on[1]);
    cluster.advance(600);
    // One has failed and one is down.
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    // It returns as it went.
    cluster.set_ready(&on[..1], Readiness::Ready);
    assert_eq!(cluster.phase(1).0, FAILED);
}

#[test]
fn r5_1_containers_that_cannot_be_made_fail_their_node_after_half_a_minute() {
    for (waiting, code) in [
        (Waiting::InvalidImageName, "InvalidImageName"),
        (
            Waiting::CreateContainerConfigError,
            "CreateContainerConfigError",
        ),
        (Waiting::CreateContainerError, "CreateContainerError"),
        (Waiting::RunContainerError, "RunContainerError"),
    ] {
        let mut cluster = Cluster::new(3, &[("stages", "1 1h, 100%"), ROLLBACK]);
        cluster.broken.insert(1);
        cluster.roll_out(1);
        let node = cluster.on(1)[0].clone();
        cluster.edit_pods(&node, |pod| pod.health.waiting = waiting);
        cluster.run();
        cluster.advance(29);
        assert_eq!(cluster.phase(1).0, PROGRESSING, "{code}");
        // A new controller waits anew.
        cluster.restart();
        cluster.advance(29);
        assert_eq!(cluster.phase(1).0, PROGRESSING, "{code}");
        cluster.advance(1);
        assert_eq!(cluster.phase(1).0, FAILED, "{code}");
        let reason = cluster.record(1).state.unwrap().reason.unwrap();
        assert_eq!(reason.code, code);
    }
}

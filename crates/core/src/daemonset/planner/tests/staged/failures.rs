//! When a node has failed (R5.1), and when a rollout has (R5.2).

use super::super::super::super::view::{Phase as PodPhase, Waiting};
use super::cluster::Cluster;
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::state::Phase;

const ROLLBACK: (&str, &str) = ("on-failure", "rollback");

fn code(cluster: &Cluster) -> String {
    let state = cluster.record(1).state.unwrap();
    state.reason.unwrap().code
}

#[test]
fn r5_1_a_pod_that_has_failed_fails_its_node() {
    let mut cluster = Cluster::new(4, &[("stages", "2 1h, 100%"), ROLLBACK]);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    cluster.edit_pods(&victim, |pod| {
        (pod.phase, pod.ready_since) = (PodPhase::Failed, None);
    });
    cluster.run();
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    assert_eq!(code(&cluster), "PodFailed");
    assert_eq!(cluster.counts(), [(0, 4)].into());
}

#[test]
fn r5_1_a_pod_that_cannot_be_created_fails_its_node() {
    let mut cluster = Cluster::new(4, &[("stages", "100%"), ROLLBACK]);
    // Stable's can be created again: a quota that the new requests exceed.
    cluster.refused = (0..4).map(|number| format!("node-{number}")).collect();
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 3)].into());
    cluster.advance(29);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
    assert_eq!(code(&cluster), "CannotCreatePod");
    assert!(cluster.told("FailedCreate") > 1, "{:?}", cluster.reasons());
    cluster.refused.clear();
    cluster.advance(120);
    assert_eq!(cluster.counts(), [(0, 4)].into());
}

#[test]
fn r5_1_a_creation_that_succeeds_in_time_fails_nothing() {
    let mut cluster = Cluster::new(4, &[("stages", "100%"), ROLLBACK]);
    cluster.refused = (0..4).map(|number| format!("node-{number}")).collect();
    cluster.roll_out(1);
    cluster.advance(25);
    cluster.refused.clear();
    cluster.advance(60);
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r5_2_without_one_more_healthy_node_a_rollout_fails() {
    let policy = [("stages", "100%"), ("healthy-deadline", "3h")];
    let mut cluster = Cluster::new(4, &policy);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    assert_eq!(cluster.on(1).len(), 1);
    cluster.advance(1_200);
    // It becomes healthy after all: the deadline counts from there for the next.
    cluster.broken.clear();
    let rest = cluster.on(0);
    cluster.sick.extend(rest);
    cluster.run();
    assert_eq!(cluster.on(1).len(), 2);
    cluster.advance(1_799);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    cluster.advance(1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    assert_eq!(code(&cluster), "DeadlineExceeded");
    let message = cluster.record(1).state.unwrap().reason.unwrap().message;
    assert!(
        message.contains("for 30m; 3 are not yet: node-"),
        "{message}"
    );
    let stalled = ("Stalled".to_owned(), "DeadlineExceeded".to_owned());
    assert_eq!(cluster.conditions(), [stalled]);
}

#[test]
fn r5_2_the_reason_of_a_progress_deadline_names_nodes_cause_and_command() {
    let policy = [("stages", "100%"), ("progress-deadline", "1m")];
    let mut cluster = Cluster::new(14, &policy);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    let begun = cluster.on(1);
    cluster.edit_pods(&begun[0], |pod| pod.health.waiting = Waiting::ImagePull);
    cluster.run();
    cluster.advance(60);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(reason.code, "DeadlineExceeded");
    // The node that holds the others up comes first, and no more than ten are named.
    let start = "no further node became healthy for 1m; 14 are not yet (commonest cause: ImagePullBackOff): ";
    let names = reason.message.strip_prefix(start).expect(&reason.message);
    assert!(names.starts_with(&format!("{}, ", begun[0])), "{names}");
    assert_eq!(names.matches("node-").count(), 10, "{names}");
    let end = " and 4 more; see kennel rollout status ds -n default";
    assert!(names.ends_with(end), "{names}");
}

#[test]
fn r5_2_bakes_and_gates_do_not_use_up_the_progress_deadline() {
    let mut cluster = Cluster::new(4, &[("stages", "1 2h, 2 manual, 100%")]);
    cluster.roll_out(1);
    cluster.advance(7_199);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(7_200);
    let waits = (PROGRESSING, Some((2, Phase::AwaitingPromotion)));
    assert_eq!(cluster.phase(1), waits);
    cluster.promote(1, 2);
    assert_eq!(cluster.phase(1).0, STABLE);
}

/// A rollout to six nodes of which two never become healthy.
fn two_sick(max_failures: &str) -> Cluster {
    let policy = [("stages", "100%"), ("max-failures", max_failures), ROLLBACK];
    let mut cluster = Cluster::new(6, &policy);
    for number in [2, 5] {
        cluster.sick.insert(format!("node-{number}"));
    }
    cluster.roll_out(1);
    cluster.advance(1_300);
    cluster
}

#[test]
fn r5_2_failures_within_the_limit_do_not_fail_a_rollout() {
    // A third of six nodes; percentages are rounded down.
    for enough in ["2", "34%", "100%"] {
        let cluster = two_sick(enough);
        assert_eq!(cluster.phase(1).0, STABLE, "{enough}");
        assert_eq!(cluster.on(1).len(), 6, "{enough}");
        assert_eq!(cluster.told("NodeFailed"), 2, "{enough}");
    }
    for too_few in ["1", "33%", "0"] {
        let cluster = two_sick(too_few);
        assert_eq!(cluster.phase(1).0, FAILED, "{too_few}");
        let reason = cluster.record(1).state.unwrap().reason.unwrap();
        assert_eq!(reason.code, "NotAvailable");
        let names = if too_few == "0" {
            "1 node has"
        } else {
            "2 nodes have"
        };
        assert!(reason.message.starts_with(names), "{}", reason.message);
        assert!(reason.message.contains("kennel rollout status ds"));
    }
}

#[test]
fn r5_4_on_the_way_back_what_is_not_available_is_replaced_at_once() {
    let policy = [
        ("stages", "5 1h, 100%"),
        ("max-failures", "3"),
        ("healthy-deadline", "1m"),
    ];
    let mut undisturbed = Cluster::new(8, &policy);
    undisturbed.roll_out(1);
    let first = undisturbed.on(1);
    let (sick, well) = first.split_at(3);
    let mut cluster = Cluster::new(8, &policy);
    // No new pod becomes ready there, of whatever revision.
    cluster.sick.extend(sick.iter().cloned());
    cluster.roll_out(1);
    cluster.advance(200);
    assert_eq!(cluster.on(1), first);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    // Three are replaced although one uses up the budget; that holds back what is available.
    assert_eq!(cluster.on(1), well);
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::RollingBack))));
    cluster.advance(3_600);
    assert_eq!(cluster.on(1), well);
    cluster.sick.clear();
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 8)].into());
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
}

/// A cluster on whose last node no daemon becomes ready.
fn one_sick(nodes: usize, sick: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(nodes, &[("stages", "100%"), ("on-failure", "rollback")]);
    for node in sick {
        cluster.sick.insert((*node).to_owned());
        cluster.edit_pods(node, |pod| pod.ready_since = None);
    }
    cluster.run();
    cluster
}

#[test]
fn r5_5_a_new_controller_knows_which_daemons_failed_before() {
    let mut cluster = one_sick(3, &["node-1"]);
    // The failing daemon is deleted, and the controller dies before the new one is created.
    cluster.refused.insert("node-1".to_owned());
    cluster.roll_out(1);
    assert_eq!(cluster.pods_on("node-1").len(), 0);
    let state = cluster.record(1).state.unwrap();
    assert_eq!(state.failing, ["node-1".to_owned()].into());
    cluster.refused.clear();
    cluster.restart();
    cluster.advance(1_200);
    assert_eq!(cluster.counts(), [(1, 3)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
    assert!(cluster.record(1).state.unwrap().failing.is_empty());
}

#[test]
fn r5_5_a_state_names_a_bounded_number_of_failing_nodes() {
    let names: Vec<String> = (0..120).map(|number| format!("node-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut cluster = one_sick(120, &names);
    cluster.annotate(&[("stages", "1 1h, 100%")]);
    cluster.roll_out(1);
    assert_eq!(cluster.record(1).state.unwrap().failing.len(), 100);
}

//! Staged rollouts beside another controller, which fills every gap with the target (R11). The fixture fails a test in
//! which the assistant requests anything but deletions, states and conditions.

use super::super::super::super::HASH_LABEL;
use super::super::super::super::options::Options;
use super::super::super::super::view::{Readiness, Strategy};
use super::cluster::{Cluster, rolling};
use super::{PROGRESSING, STABLE, check_conditions};
use crate::int_or_percent::IntOrPercent;
use crate::rollout::state::Phase;

const BUDGET_OF_TWO: Strategy = Strategy::OnDelete {
    max_unavailable: Some(IntOrPercent::Int(2)),
};

fn assisted(nodes: usize, policy: &[(&str, &str)]) -> Cluster {
    Cluster::assisted(nodes, policy, Strategy::ON_DELETE)
}

#[test]
fn r11_pods_are_deleted_in_stages_within_the_budget_and_come_back_with_the_target() {
    let mut cluster = assisted(10, &[("stages", "1 5m, 50% manual, 100%")]);
    assert_eq!(cluster.counts(), [(0, 10)].into());
    assert_eq!(cluster.phase(0), (STABLE, Some((0, Phase::Complete))));
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 9), (1, 1)].into());
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(299);
    assert_eq!(cluster.counts(), [(0, 9), (1, 1)].into());
    cluster.advance(1);
    assert_eq!(cluster.counts(), [(0, 5), (1, 5)].into());
    let waits = "AwaitingPromotion";
    check_conditions(&cluster, &[("Progressing", waits), ("Reconciling", waits)]);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("promote", &format!("{hash}/2"))]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 10)].into());
    assert_eq!(cluster.phase(1), (STABLE, Some((3, Phase::Complete))));
    assert_eq!(cluster.most_unavailable, 1);
}

#[test]
fn r11_the_budget_is_max_unavailable() {
    let mut cluster = Cluster::assisted(10, &[("stages", "100%")], BUDGET_OF_TWO);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(1, 10)].into());
    assert_eq!(cluster.most_unavailable, 2);
}

#[test]
fn r11_the_order_of_nodes_is_that_of_a_controller_of_its_own() {
    let policy = [("stages", "3 1h, 100%")];
    let (mut alone, mut beside) = (Cluster::new(9, &policy), assisted(9, &policy));
    alone.roll_out(1);
    beside.roll_out(1);
    assert_eq!(alone.on(1), beside.on(1));
}

#[test]
fn r11_a_failure_pauses_and_a_person_promotes_or_changes_the_template() {
    let mut cluster = assisted(6, &[("stages", "3, 100%")]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(600);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    assert_eq!(cluster.counts(), [(0, 5), (1, 1)].into());
    check_conditions(&cluster, &[("Stalled", "PausedOnFailure")]);
    // The way back is the template of before, whose verdict is stable.
    cluster.roll_out(0);
    assert_eq!(cluster.counts(), [(0, 6)].into());
    assert_eq!(cluster.phase(0).0, STABLE);
}

#[test]
fn r11_abort_only_stops() {
    let mut cluster = assisted(4, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    cluster.advance(7_200);
    assert_eq!(cluster.counts(), [(0, 2), (1, 2)].into());
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(reason.code, "Aborted");
}

#[test]
fn r11_pause_holds_the_stages() {
    let mut cluster = assisted(4, &[("stages", "1 1m, 100%")]);
    cluster.roll_out(1);
    cluster.annotate(&[("pause", "night")]);
    cluster.run();
    cluster.advance(600);
    assert_eq!(cluster.counts(), [(0, 3), (1, 1)].into());
    cluster.unannotate(&["pause"]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 4)].into());
}

#[test]
fn r11_freeze_stops_deletions_and_says_that_creations_go_on() {
    let mut cluster = assisted(4, &[("stages", "100%")]);
    cluster.annotate(&[("freeze", "incident")]);
    cluster.run();
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 4)].into());
    assert_eq!(cluster.reasons(), ["FreezeIncomplete", "RolloutStarted"]);
    check_conditions(&cluster, &[("Stalled", "Frozen")]);
}

#[test]
fn r11_gaps_are_filled_with_the_target_and_those_nodes_are_judged() {
    let mut cluster = assisted(4, &[("stages", "1 1h, 100%"), ("max-restarts", "0")]);
    cluster.roll_out(1);
    let hash = cluster.hash(0).unwrap();
    let mut pods = cluster.fake.pods.values();
    let lost = pods.find(|pod| pod.labels[HASH_LABEL] == hash).unwrap();
    let (lost, node) = (lost.uid.clone(), lost.target().unwrap().clone());
    cluster.fake.remove_pod(&lost, false);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 2), (1, 2)].into());
    assert!(cluster.on(1).contains(&node.to_string()));
    let mut pods = cluster.fake.pods.values();
    let new = pods.find(|pod| pod.target() == Some(&node)).unwrap();
    let new = new.uid.clone();
    cluster
        .fake
        .edit_pod(&new, false, |pod| pod.health.restarts = 1);
    cluster.run();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
}

#[test]
fn r11_down_nodes_are_skipped() {
    let mut cluster = assisted(5, &[("stages", "100%")]);
    cluster.edit_node("node-1", |node| node.ready = Readiness::Unknown);
    cluster.run();
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 1), (1, 4)].into());
    assert_eq!(cluster.phase(1), (STABLE, Some((1, Phase::Complete))));
}

#[test]
fn r11_a_restarted_assistant_goes_on_where_the_last_one_stopped() {
    let mut cluster = assisted(6, &[("stages", "1 5m, 50% 5m, 100%")]);
    cluster.roll_out(1);
    cluster.advance(200);
    cluster.restart();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(99);
    assert_eq!(cluster.counts(), [(0, 5), (1, 1)].into());
    cluster.advance(2);
    assert_eq!(cluster.counts(), [(0, 3), (1, 3)].into());
    cluster.restart();
    cluster.advance(302);
    assert_eq!(cluster.counts(), [(1, 6)].into());
}

#[test]
fn r11_what_does_not_work_is_refused_and_nothing_is_deleted() {
    for (key, value) in [
        ("on-failure", "rollback"),
        ("stages-on-create", "true"),
        ("pin-config", "true"),
    ] {
        let mut cluster = assisted(3, &[("stages", "1, 100%"), (key, value)]);
        cluster.roll_out(1);
        cluster.advance(10);
        assert_eq!(cluster.counts(), [(0, 3)].into(), "{key}");
        check_conditions(&cluster, &[("Stalled", "PolicyInvalid")]);
        cluster.unannotate(&[key]);
        cluster.run();
        assert_eq!(cluster.counts(), [(1, 3)].into(), "{key}");
    }
}

#[test]
fn r11_with_assist_other_strategies_are_left_alone_and_an_event_says_so() {
    let mut cluster = Cluster::assisted(4, &[("stages", "1 1h, 100%")], rolling(1));
    // The other controller updates it as ever.
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(1, 4)].into());
    assert_eq!(cluster.record(1).verdict, None);
    check_conditions(&cluster, &[]);
    cluster.set_strategy(Strategy::ON_DELETE);
    cluster.run();
    cluster.roll_out(2);
    assert_eq!(cluster.counts(), [(1, 3), (2, 1)].into());
    cluster.set_strategy(rolling(1));
    cluster.run();
    assert_eq!(cluster.counts(), [(2, 4)].into());
    assert!(cluster.reasons().contains(&"PolicyIgnored"));
    check_conditions(&cluster, &[]);
}

#[test]
fn r11_with_assist_nothing_is_written_without_a_policy() {
    let mut cluster = assisted(3, &[]);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 3)].into());
    assert_eq!(cluster.record(1).verdict, None);
    cluster.annotate(&[("stages", "100%")]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 3)].into());
    cluster.unannotate(&["stages"]);
    cluster.run();
    assert!(cluster.conditions().is_empty());
}

#[test]
fn r11_without_assist_a_policy_on_on_delete_is_ignored_with_an_event() {
    let policy = [("stages", "1, 100%"), ("on-failure", "rollback")];
    let mut cluster = Cluster::with(3, &policy, Strategy::ON_DELETE, Options::default());
    cluster.roll_out(1);
    cluster.advance(60);
    assert_eq!(cluster.counts(), [(0, 3)].into());
    assert_eq!(cluster.record(1).verdict, None);
    let victim = cluster.fake.pods.keys().next().unwrap().clone();
    cluster.fake.remove_pod(&victim, false);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 2), (1, 1)].into());
    check_conditions(&cluster, &[]);
    cluster.restart();
    assert_eq!(cluster.reasons(), ["PolicyIgnored"]);
}

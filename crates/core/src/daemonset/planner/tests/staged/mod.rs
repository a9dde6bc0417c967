//! Whole staged rollouts (R1 to R6 and R8) in a cluster in memory.

mod assist;
mod budget_wait;
mod clocks;
mod cluster;
mod commands;
mod conditions;
mod config;
mod config_histories;
mod down_nodes;
mod failures;
mod lost_revisions;
mod namespaces;
mod operations;
mod order;
mod policy_changes;
mod progress;
mod progress_deadline;
mod selection;
mod state_writes;
mod superseded;
mod two_controllers;
mod waits;

use cluster::Cluster;

use super::super::super::HASH_LABEL;
use super::super::super::event::CheckAnswer;
use super::super::super::required::{taint, waits};
use super::super::super::view::{Readiness, Waiting};
use crate::rollout::state::{Phase, Verdict};

const STABLE: Option<Verdict> = Some(Verdict::Stable);
const PROGRESSING: Option<Verdict> = Some(Verdict::Progressing);
const FAILED: Option<Verdict> = Some(Verdict::Failed);

#[test]
fn r2_the_first_revision_is_stable_at_once() {
    let cluster = Cluster::new(5, &[("stages", "1, 100%")]);
    assert_eq!(cluster.counts(), [(0, 5)].into());
    assert_eq!(cluster.phase(0), (STABLE, Some((0, Phase::Complete))));
}

#[test]
fn r3_stages_follow_each_other_within_the_budget() {
    let mut cluster = Cluster::new(10, &[("stages", "1 5m, 50% manual, 100%")]);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 9), (1, 1)].into());
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(299);
    assert_eq!(cluster.counts(), [(0, 9), (1, 1)].into());
    cluster.advance(1);
    assert_eq!(cluster.counts(), [(0, 5), (1, 5)].into());
    let waits = (PROGRESSING, Some((2, Phase::AwaitingPromotion)));
    assert_eq!(cluster.phase(1), waits);
    cluster.advance(3_600);
    assert_eq!(cluster.phase(1), waits);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("promote", &format!("{hash}/2"))]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 10)].into());
    assert_eq!(cluster.phase(1), (STABLE, Some((3, Phase::Complete))));
    assert_eq!(cluster.most_unavailable, 1);
    assert_eq!(
        cluster.reasons(),
        [
            "RolloutStarted",
            "StageHealthy",
            "StageStarted",
            "StageHealthy",
            "AwaitingPromotion",
            "StageStarted",
            "StageHealthy",
            "RolloutComplete"
        ]
    );
}

#[test]
fn r9_2_events_are_emitted_although_the_watch_is_faster_than_the_answer() {
    let mut cluster = Cluster::new(4, &[("stages", "1 5m, 100%")]);
    cluster.watch_first = true;
    cluster.roll_out(1);
    cluster.advance(300);
    assert_eq!(cluster.phase(1), (STABLE, Some((2, Phase::Complete))));
    assert_eq!(
        cluster.reasons(),
        [
            "RolloutStarted",
            "StageHealthy",
            "StageStarted",
            "StageHealthy",
            "RolloutComplete"
        ]
    );
}

#[test]
fn r5_4_a_bad_release_goes_back_by_itself_and_is_held() {
    let mut cluster = Cluster::new(10, &[("stages", "2, 100%"), ("on-failure", "rollback")]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 9), (1, 1)].into());
    cluster.advance(599);
    assert_eq!(cluster.counts(), [(0, 9), (1, 1)].into());
    cluster.advance(1);
    assert_eq!(cluster.counts(), [(0, 10)].into());
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    cluster.restart();
    cluster.advance(60);
    assert_eq!(cluster.counts(), [(0, 10)].into());
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    let state = cluster.record(1).state.unwrap();
    assert_eq!(state.reason.unwrap().code, "NotAvailable");
    assert_eq!(
        cluster.reasons(),
        [
            "RolloutStarted",
            "NodeFailed",
            "RolloutFailed",
            "RollingBack",
            "RolledBack"
        ]
    );
}

#[test]
fn r5_3_a_failure_pauses_and_a_person_promotes() {
    let mut cluster = Cluster::new(6, &[("stages", "3, 100%")]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(600);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    assert_eq!(cluster.counts(), [(0, 5), (1, 1)].into());
    let hash = cluster.hash(1).unwrap();
    cluster.broken.clear();
    cluster.annotate(&[("promote", &format!("{hash}/full"))]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 6)].into());
    assert_eq!(cluster.phase(1), (STABLE, Some((2, Phase::Complete))));
}

#[test]
fn r5_6_a_stable_revision_is_returned_to_without_stages() {
    let mut cluster = Cluster::new(6, &[("stages", "1 1h, 100%")]);
    cluster.roll_out(1);
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 6)].into());
    cluster.roll_out(0);
    assert_eq!(cluster.counts(), [(0, 6)].into());
    assert_eq!(cluster.phase(0).0, STABLE);
}

#[test]
fn r2_nodes_that_are_not_admitted_get_stable() {
    let mut cluster = Cluster::new(4, &[("stages", "1 1h, 100%")]);
    cluster.roll_out(1);
    for number in 4..8 {
        cluster.fake.add_node(&format!("node-{number}"));
    }
    cluster.run();
    let counts = cluster.counts();
    assert_eq!(counts.values().sum::<usize>(), 8);
    assert!(counts[&0] >= 5, "{counts:?}");
    let victim = cluster.fake.pods.values().find(|pod| {
        Some(pod.labels[super::super::super::HASH_LABEL].as_str()) == cluster.hash(0).as_deref()
    });
    let victim = victim.unwrap().uid.clone();
    cluster.fake.remove_pod(&victim, false);
    cluster.run();
    assert_eq!(cluster.counts(), counts);
}

#[test]
fn r3_7_a_stage_by_label_follows_the_label() {
    let mut cluster = Cluster::new(4, &[("stages", "nodes(pool=canary) 1h, 100%")]);
    let label = |cluster: &mut Cluster, name: &str| {
        cluster.edit_node(name, |node| {
            drop(node.labels.insert("pool".into(), "canary".into()));
        });
        cluster.run();
    };
    label(&mut cluster, "node-2");
    cluster.roll_out(1);
    assert_eq!(cluster.on(1), ["node-2"]);
    label(&mut cluster, "node-0");
    assert_eq!(cluster.on(1), ["node-0", "node-2"]);
    cluster.edit_node("node-2", |node| node.labels.clear());
    cluster.run();
    assert_eq!(cluster.on(1), ["node-0"]);
}

#[test]
fn r3_7_each_of_several_stages_by_label_follows_its_own() {
    let stages = ("stages", "nodes(zone=a) 1h, nodes(zone=b) 1h, 100%");
    let mut cluster = Cluster::new(6, &[stages]);
    for (number, zone) in ["a", "a", "a", "b", "b", "c"].into_iter().enumerate() {
        cluster.label(&format!("node-{number}"), "zone", zone);
    }
    cluster.run();
    cluster.roll_out(1);
    assert_eq!(cluster.on(1), ["node-0", "node-1", "node-2"]);
    let lose = |cluster: &mut Cluster, name: &str| {
        cluster.edit_node(name, |node| node.labels.clear());
        cluster.run();
    };
    lose(&mut cluster, "node-0");
    assert_eq!(cluster.on(1), ["node-1", "node-2"]);
    cluster.advance(3_600);
    let both = ["node-1", "node-2", "node-3", "node-4"];
    assert_eq!(cluster.on(1), both);
    // The label of the stage before is followed no longer.
    lose(&mut cluster, "node-1");
    assert_eq!(cluster.on(1), both);
    lose(&mut cluster, "node-3");
    assert_eq!(cluster.on(1), ["node-1", "node-2", "node-4"]);
    cluster.restart();
    assert_eq!(cluster.on(1), ["node-1", "node-2", "node-4"]);
    cluster.label("node-5", "zone", "b");
    cluster.run();
    assert_eq!(cluster.on(1).len(), 4);
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 6)].into());
}

#[test]
fn r3_8_a_stage_by_label_without_nodes_waits() {
    let mut cluster = Cluster::new(3, &[("stages", "nodes(pool=canary), 100%")]);
    cluster.roll_out(1);
    cluster.advance(10);
    assert_eq!(
        cluster.phase(1),
        (PROGRESSING, Some((1, Phase::AwaitingPromotion)))
    );
    assert_eq!(cluster.counts(), [(0, 3)].into());
}

#[test]
fn r4_1_down_nodes_neither_hold_a_stage_up_nor_use_budget() {
    let mut cluster = Cluster::new(5, &[("stages", "100%")]);
    cluster.edit_node("node-1", |node| node.ready = Readiness::Unknown);
    cluster.edit_node("node-3", |node| node.ready = Readiness::Unknown);
    cluster.run();
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 2), (1, 3)].into());
    assert_eq!(cluster.phase(1), (STABLE, Some((1, Phase::Complete))));
    cluster.edit_node("node-1", |node| node.ready = Readiness::Ready);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 1), (1, 4)].into());
}

#[test]
fn r4_2_a_node_that_the_target_takes_down_is_blamed() {
    let policy = [("stages", "2 1h, 100%"), ("on-failure", "rollback")];
    let mut cluster = Cluster::new(6, &policy);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    cluster.advance(30);
    cluster.edit_node(&victim, |node| node.ready = Readiness::NotReady);
    cluster.run();
    cluster.advance(119);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    cluster.advance(1);
    assert_eq!(cluster.phase(1).0, FAILED);
}

#[test]
fn r4_2_an_outage_is_not_the_releases_fault() {
    let policy = [("stages", "2 1h, 100%"), ("on-failure", "rollback")];
    let mut cluster = Cluster::new(6, &policy);
    cluster.roll_out(1);
    let victim = cluster.on(1)[0].clone();
    let other = cluster.on(0)[0].clone();
    cluster.advance(30);
    for name in [victim, other] {
        cluster.edit_node(&name, |node| node.ready = Readiness::NotReady);
    }
    cluster.run();
    cluster.advance(600);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
}

#[test]
fn r5_1_restarts_beyond_the_limit_fail_a_node() {
    let policy = [("stages", "1 1h, 100%"), ("on-failure", "rollback")];
    let mut cluster = Cluster::new(3, &policy);
    cluster.roll_out(1);
    let restart = |cluster: &mut Cluster, restarts: u32| {
        let hash = cluster.hash(1).unwrap();
        let pods = cluster.fake.pods.values();
        let of = pods.filter(|pod| pod.labels[super::super::super::HASH_LABEL] == hash);
        let uids: Vec<_> = of.map(|pod| pod.uid.clone()).collect();
        for uid in uids {
            cluster
                .fake
                .edit_pod(&uid, false, |pod| pod.health.restarts = restarts);
        }
        cluster.run();
    };
    restart(&mut cluster, 2);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    restart(&mut cluster, 3);
    assert_eq!(cluster.phase(1).0, FAILED);
    assert_eq!(cluster.counts(), [(0, 3)].into());
}

#[test]
fn r5_1_what_does_not_heal_by_waiting_fails_a_node() {
    let policy = [("stages", "1 1h, 100%"), ("on-failure", "rollback")];
    for (waiting, seconds) in [(Waiting::InvalidImageName, 30), (Waiting::ImagePull, 120)] {
        let mut cluster = Cluster::new(3, &policy);
        cluster.broken.insert(1);
        cluster.roll_out(1);
        let hash = cluster.hash(1).unwrap();
        let pods = cluster.fake.pods.values();
        let of = pods.filter(|pod| pod.labels[super::super::super::HASH_LABEL] == hash);
        let uid = of.map(|pod| pod.uid.clone()).next().unwrap();
        cluster
            .fake
            .edit_pod(&uid, false, |pod| pod.health.waiting = waiting);
        cluster.run();
        cluster.advance(seconds - 1);
        assert_eq!(cluster.phase(1).0, PROGRESSING, "{waiting:?}");
        cluster.advance(1);
        assert_eq!(cluster.phase(1).0, FAILED, "{waiting:?}");
    }
}

#[test]
fn r5_5_a_daemon_that_failed_before_its_turn_is_excused() {
    let policy = [("stages", "100%"), ("on-failure", "rollback")];
    let mut cluster = Cluster::new(3, &policy);
    let victim = cluster.fake.pods.values().next().unwrap().clone();
    cluster.sick.insert(victim.target().unwrap().to_string());
    cluster
        .fake
        .edit_pod(&victim.uid, false, |pod| pod.ready_since = None);
    cluster.run();
    cluster.roll_out(1);
    cluster.advance(1_200);
    assert_eq!(cluster.counts(), [(1, 3)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r6_abort_goes_back_and_retry_starts_again() {
    let mut cluster = Cluster::new(4, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 4)].into());
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    cluster.annotate(&[("retry", &format!("{hash}/1"))]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 2), (1, 2)].into());
    assert_eq!(cluster.record(1).state.unwrap().attempt, 2);
}

#[test]
fn r6_2_freeze_beats_a_way_back_which_beats_pause() {
    let mut cluster = Cluster::new(4, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("freeze", "x"), ("pause", "y"), ("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 2), (1, 2)].into());
    cluster.unannotate(&["freeze"]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 4)].into());
}

#[test]
fn r6_3_pause_works_without_a_policy() {
    let mut cluster = Cluster::new(4, &[]);
    cluster.annotate(&[("pause", "night")]);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 4)].into());
    cluster.unannotate(&["pause"]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 4)].into());
    assert_eq!(cluster.phase(1), (None, None));
}

#[test]
fn r1_2_an_unreadable_policy_pauses() {
    let mut cluster = Cluster::new(4, &[("stages", "1, 100%")]);
    cluster.annotate(&[("stages", "some")]);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 4)].into());
    cluster.annotate(&[("stages", "100%")]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 4)].into());
}

#[test]
fn r1_4_the_verdict_outlives_the_policy() {
    let mut cluster = Cluster::new(4, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    cluster.unannotate(&["stages", "abort"]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 4)].into());
    cluster.annotate(&[("policy", "none")]);
    cluster.run();
    assert_eq!(cluster.counts(), [(1, 4)].into());
}

#[test]
fn r8_1_a_restart_neither_repeats_a_stage_nor_shortens_a_bake() {
    let mut cluster = Cluster::new(10, &[("stages", "2 10m, 5 10m, 100%")]);
    cluster.roll_out(1);
    let first = cluster.on(1);
    cluster.advance(300);
    cluster.restart();
    assert_eq!(cluster.on(1), first);
    cluster.advance(299);
    assert_eq!(cluster.on(1), first);
    cluster.advance(2);
    assert_eq!(cluster.on(1).len(), 5);
    assert!(first.iter().all(|node| cluster.on(1).contains(node)));
}

#[test]
fn r2_1_a_template_that_selects_no_node_waits_for_a_person() {
    let mut cluster = Cluster::new(4, &[("stages", "100%")]);
    cluster.roll_out(3);
    assert_eq!(cluster.counts(), [(0, 4)].into());
    assert_eq!(
        cluster.phase(3),
        (PROGRESSING, Some((0, Phase::AwaitingPromotion)))
    );
}

#[test]
fn r5_7_a_newer_template_supersedes_a_rollout() {
    let mut cluster = Cluster::new(6, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 4), (1, 2)].into());
    // Nothing is said before it is written, however often it is tried.
    cluster.refuses_states = true;
    cluster.roll_out(2);
    cluster.advance(10);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    assert_eq!(cluster.told("RolloutSuperseded"), 0);
    cluster.refuses_states = false;
    cluster.advance(60);
    let counts = cluster.counts();
    assert_eq!(counts[&2], 2, "{counts:?}");
    assert_eq!(cluster.phase(1).0, Some(Verdict::Superseded));
    assert_eq!(cluster.record(2).state.unwrap().stable, cluster.hash(0));
    assert_eq!(cluster.told("RolloutSuperseded"), 1);
}

fn check_conditions(cluster: &Cluster, expected: &[(&str, &str)]) {
    let found = cluster.conditions();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn r9_1_conditions_follow_the_phases() {
    let policy = [
        ("stages", "1 5m, 50% manual, 100%"),
        ("on-failure", "rollback"),
    ];
    let mut cluster = Cluster::new(4, &policy);
    check_conditions(&cluster, &[]);
    cluster.roll_out(1);
    check_conditions(
        &cluster,
        &[("Progressing", "Baking"), ("Reconciling", "Baking")],
    );
    cluster.annotate(&[("pause", "night")]);
    cluster.run();
    check_conditions(&cluster, &[]);
    cluster.unannotate(&["pause"]);
    cluster.run();
    cluster.advance(300);
    let waits = "AwaitingPromotion";
    check_conditions(&cluster, &[("Progressing", waits), ("Reconciling", waits)]);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    check_conditions(&cluster, &[("Stalled", "RolledBack")]);
    cluster.annotate(&[("stages", "?")]);
    cluster.run();
    check_conditions(&cluster, &[("Stalled", "PolicyInvalid")]);
}

#[test]
fn r1_4_conditions_go_with_the_policy() {
    let mut cluster = Cluster::new(2, &[("stages", "100%")]);
    let count = |cluster: &Cluster| cluster.fake.sets.values().next().unwrap().conditions.len();
    assert_eq!(count(&cluster), 3);
    cluster.unannotate(&["stages"]);
    cluster.run();
    assert_eq!(count(&cluster), 0);
}

#[test]
fn r7_a_check_is_asked_at_the_end_of_each_bake() {
    let check = ("check", "webhook https://gate.example/ok");
    let mut cluster = Cluster::new(4, &[("stages", "1 5m, 100%"), check]);
    cluster.roll_out(1);
    assert_eq!(cluster.asked.len(), 0);
    cluster.advance(300);
    assert_eq!(cluster.asked.len(), 2);
    assert_eq!(cluster.asked[0].revision, cluster.hash(1).unwrap().into());
    assert!(
        cluster.asked[0].state.contains("\"stage\":1"),
        "{}",
        cluster.asked[0].state
    );
    assert_eq!(cluster.counts(), [(1, 4)].into());
}

#[test]
fn r7_a_failed_check_fails_the_rollout() {
    let check = ("check", "prometheus errors < 1");
    let policy = [("stages", "1, 100%"), ("on-failure", "rollback"), check];
    let mut cluster = Cluster::new(4, &policy);
    cluster.answer = CheckAnswer::Failed("errors is 7".into());
    cluster.roll_out(1);
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
    let reason = cluster.record(1).state.unwrap().reason.unwrap();
    assert_eq!(
        (&*reason.code, &*reason.message),
        ("CheckFailed", "errors is 7")
    );
}

#[test]
fn r7_an_inconclusive_check_is_asked_three_times_and_then_pauses() {
    let check = ("check", "prometheus errors < 1");
    let policy = [("stages", "1, 100%"), ("on-failure", "rollback"), check];
    let mut cluster = Cluster::new(4, &policy);
    cluster.answer = CheckAnswer::Inconclusive("no answer".into());
    cluster.roll_out(1);
    assert_eq!(cluster.asked.len(), 1);
    cluster.advance(59);
    assert_eq!(cluster.asked.len(), 1);
    cluster.advance(61);
    assert_eq!(cluster.asked.len(), 3);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
    assert_eq!(cluster.counts(), [(0, 3), (1, 1)].into());
    assert_eq!(
        cluster.reasons(),
        [
            "RolloutStarted",
            "CheckInconclusive",
            "CheckInconclusive",
            "RolloutPaused"
        ]
    );
}

#[test]
fn r7_a_person_promotes_a_stage_that_its_check_has_paused() {
    for answer in [
        CheckAnswer::Inconclusive("no answer".into()),
        CheckAnswer::Failed("errors is 7".into()),
    ] {
        let check = ("check", "prometheus errors < 1");
        let mut cluster = Cluster::new(4, &[("stages", "1 5m, 100% 5m"), check]);
        cluster.answer = answer;
        cluster.roll_out(1);
        cluster.advance(300 + 120);
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
        let hash = cluster.hash(1).unwrap();
        cluster.annotate(&[("promote", &format!("{hash}/1"))]);
        cluster.run();
        // The stage bakes once, and its check is not asked again.
        assert_eq!(cluster.phase(1), (PROGRESSING, Some((2, Phase::Baking))));
        cluster.answer = CheckAnswer::Passed;
        cluster.advance(300);
        assert_eq!(cluster.phase(1), (STABLE, Some((2, Phase::Complete))));
    }
}

#[test]
fn r12_3_a_node_that_joins_during_a_rollout_waits_for_the_revision_that_it_is_driven_to() {
    let mut cluster = Cluster::new(3, &[("stages", "1 manual, 100%")]);
    cluster.require();
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(0, 2), (1, 1)].into());
    cluster.broken.insert(1);
    for number in 3..6 {
        let name = format!("node-{number}");
        cluster.fake.add_node(&name);
        cluster.edit_node(&name, |node| node.taints = vec![taint()]);
    }
    cluster.run();
    let waits = cluster.fake.nodes.values().filter(|node| waits(node));
    let waiting: Vec<&str> = waits.map(|node| &*node.name).collect();
    let pods = |of: u32| {
        let hash = cluster.hash(of).unwrap();
        let pods = cluster.fake.pods.values();
        let pods = pods.filter(move |pod| pod.labels[HASH_LABEL] == hash);
        pods.filter_map(|pod| pod.target().map(std::string::ToString::to_string))
    };
    // Those driven to stable have it and wait no longer; one that joins before the cut waits for the broken target.
    for node in ["node-3", "node-4", "node-5"] {
        let of_stable = pods(0).any(|on| on == node);
        assert_eq!(waiting.contains(&node), !of_stable, "{node}: {waiting:?}");
    }
    assert!(pods(0).count() > 2, "{:?}", cluster.counts());
}

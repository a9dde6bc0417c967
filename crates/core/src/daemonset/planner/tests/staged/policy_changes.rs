//! Policies that change in the middle of a rollout (R1.3), and which revision is stable (R2).

use super::super::super::super::options::Options;
use super::super::super::super::reference_model::fake_cluster::template;
use super::super::super::super::view::Strategy;
use super::cluster::{Cluster, rolling};
use super::{FAILED, PROGRESSING, STABLE};
use crate::rollout::PREFIX;
use crate::rollout::state::Phase;

#[test]
fn r1_3_nodes_keep_the_target_although_the_stage_is_smaller_now() {
    let mut cluster = Cluster::new(10, &[("stages", "6 1h, 100%")]);
    cluster.roll_out(1);
    let first = cluster.on(1);
    assert_eq!(first.len(), 6);
    let revisions = cluster.fake.revisions.len();
    cluster.annotate(&[("stages", "2 1h, 100%")]);
    cluster.run();
    cluster.advance(3_599);
    assert_eq!(cluster.on(1), first);
    assert_eq!(cluster.fake.revisions.len(), revisions);
    cluster.advance(1);
    assert_eq!(cluster.phase(1), (STABLE, Some((2, Phase::Complete))));
    assert_eq!(cluster.counts(), [(1, 10)].into());
}

#[test]
fn r1_3_a_cut_from_before_spread_holds_for_values_that_nodes_get_later() {
    let mut cluster = Cluster::new(6, &[("stages", "3 1h, 100%")]);
    cluster.roll_out(1);
    let (first, state) = (cluster.on(1), cluster.record(1).state.unwrap());
    cluster.annotate(&[("spread", "zone")]);
    cluster.run();
    cluster.label(&first[0], "zone", "b");
    cluster.run();
    assert_eq!(cluster.on(1), first);
    assert_eq!(cluster.record(1).state.unwrap().cut, state.cut);
}

#[test]
fn r1_3_a_larger_stage_takes_more_nodes_and_its_bake_goes_on() {
    let mut cluster = Cluster::new(10, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let first = cluster.on(1);
    cluster.advance(1_800);
    cluster.annotate(&[("stages", "5 1h, 100%")]);
    cluster.run();
    let more = cluster.on(1);
    assert_eq!(more.len(), 5);
    assert!(first.iter().all(|node| more.contains(node)));
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(1_799);
    assert_eq!(cluster.on(1), more);
    cluster.advance(1);
    assert_eq!(cluster.counts(), [(1, 10)].into());
}

#[test]
fn r1_3_a_larger_stage_without_a_bake_is_reached_before_the_next_begins() {
    let mut cluster = Cluster::new(10, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let rest = cluster.on(0);
    cluster.sick.extend(rest);
    cluster.annotate(&[("stages", "5, 100%")]);
    cluster.run();
    assert_eq!(cluster.phase(1).1.unwrap().0, 1);
    assert_eq!(cluster.counts(), [(0, 7), (1, 3)].into());
    cluster.advance(600);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Paused))));
}

#[test]
fn r1_3_a_policy_with_fewer_stages_still_judges_the_rest() {
    let policy = [("stages", "1, 3, 5 1h, 100%"), ("on-failure", "rollback")];
    let mut cluster = Cluster::new(10, &policy);
    cluster.roll_out(1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((3, Phase::Baking))));
    let rest = cluster.on(0);
    cluster.sick.extend(rest);
    cluster.annotate(&[("stages", "2, 100%")]);
    cluster.run();
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    assert_eq!(cluster.counts(), [(0, 4), (1, 6)].into());
    cluster.advance(599);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    cluster.sick.clear();
    cluster.broken.insert(1);
    cluster.advance(1);
    assert_eq!(cluster.phase(1), (FAILED, Some((3, Phase::Held))));
    assert_eq!(cluster.counts(), [(0, 10)].into());
}

#[test]
fn r1_3_a_gate_before_the_end_reaches_every_node_although_its_stage_is_the_last_now() {
    let mut cluster = Cluster::new(6, &[("stages", "1, 3 manual, 100%")]);
    cluster.roll_out(1);
    let waits = (PROGRESSING, Some((2, Phase::AwaitingPromotion)));
    assert_eq!(cluster.phase(1), waits);
    cluster.annotate(&[("stages", "1, 100% manual")]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 3), (1, 3)].into());
    cluster.promote(1, 2);
    // The last stage has a gate of its own.
    assert_eq!(cluster.counts(), [(1, 6)].into());
    assert_eq!(cluster.phase(1), waits);
}

#[test]
fn r1_3_what_to_do_on_failure_counts_from_its_change() {
    let mut cluster = Cluster::new(6, &[("stages", "3, 100%")]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(300);
    cluster.annotate(&[("on-failure", "rollback"), ("healthy-deadline", "6m")]);
    cluster.run();
    cluster.advance(59);
    assert_eq!(cluster.phase(1).0, PROGRESSING);
    cluster.advance(1);
    assert_eq!(cluster.phase(1), (FAILED, Some((1, Phase::Held))));
}

#[test]
fn r1_3_spread_in_the_middle_takes_no_node_back() {
    let mut cluster = Cluster::new(9, &[("stages", "4 1h, 100%")]);
    for number in 0..9 {
        let zone = ["a", "b", "c"][number % 3];
        cluster.label(&format!("node-{number}"), "zone", zone);
    }
    cluster.run();
    cluster.roll_out(1);
    let first = cluster.on(1);
    cluster.annotate(&[("spread", "zone")]);
    cluster.run();
    let now = cluster.on(1);
    assert!(first.iter().all(|node| now.contains(node)), "{now:?}");
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 9)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
}

const ON_CREATE: [(&str, &str); 3] = [
    ("stages", "2 1h, 100%"),
    ("stages-on-create", "true"),
    ("on-failure", "rollback"),
];

#[test]
fn r2_with_stages_on_create_nodes_that_are_not_admitted_get_nothing() {
    let mut cluster = Cluster::new(5, &ON_CREATE);
    assert_eq!(cluster.counts(), [(0, 2)].into());
    assert_eq!(cluster.phase(0), (PROGRESSING, Some((1, Phase::Baking))));
    assert_eq!(cluster.record(0).state.unwrap().stable, None);
    cluster.restart();
    let victim = cluster.on(0)[0].clone();
    cluster.remove_pods(&victim);
    assert_eq!(cluster.counts(), [(0, 2)].into());
    cluster.advance(3_601);
    assert_eq!(cluster.counts(), [(0, 5)].into());
    assert_eq!(cluster.phase(0), (STABLE, Some((2, Phase::Complete))));
}

/// A first creation in stages whose pods restart too often.
fn failed_creation() -> Cluster {
    let mut cluster = Cluster::new(5, &ON_CREATE);
    for node in cluster.on(0) {
        cluster.edit_pods(&node, |pod| pod.health.restarts = 3);
    }
    cluster.run();
    assert_eq!(cluster.phase(0), (PROGRESSING, Some((1, Phase::Paused))));
    cluster
}

#[test]
fn r2_with_stages_on_create_a_failure_pauses() {
    let mut cluster = failed_creation();
    assert_eq!(cluster.counts(), [(0, 2)].into());
    let hash = cluster.hash(0).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 2)].into());
    assert_eq!(cluster.phase(0), (PROGRESSING, Some((1, Phase::Paused))));
}

#[test]
fn r2_a_first_creation_in_stages_is_nobodys_stable_when_it_is_superseded() {
    let mut cluster = failed_creation();
    cluster.roll_out(1);
    assert_eq!(cluster.record(1).state.unwrap().stable, None);
    assert_eq!(cluster.counts(), [(1, 2)].into());
    cluster.advance(3_600);
    assert_eq!(cluster.counts(), [(1, 5)].into());
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r2_stable_is_the_one_that_the_superseded_rollout_named() {
    let mut cluster = Cluster::new(6, &[("stages", "2 1h, 100%")]);
    for number in [1, 2, 4] {
        cluster.roll_out(number);
        let state = cluster.record(number).state.unwrap();
        assert_eq!(state.stable, cluster.hash(0), "{number}");
        assert_eq!(cluster.counts(), [(0, 4), (number, 2)].into());
    }
    let victim = cluster.on(0)[0].clone();
    cluster.remove_pods(&victim);
    assert_eq!(cluster.counts(), [(0, 4), (4, 2)].into());
}

#[test]
fn r2_without_a_state_stable_is_what_most_pods_carry() {
    // With as many pods, the higher number.
    for (updated, stable) in [(1, 0), (2, 1), (3, 1)] {
        let options = Options::default();
        let mut cluster = Cluster::with(4, &[], Strategy::ON_DELETE, options);
        cluster.roll_out(1);
        for number in 0..updated {
            cluster.remove_pods(&format!("node-{number}"));
        }
        assert_eq!(cluster.on(1).len(), updated);
        let uid = cluster.uid.clone();
        cluster.fake.edit_set(&uid, |set| {
            set.strategy = rolling(1);
            set.template = template(2);
            let all = std::sync::Arc::make_mut(&mut set.annotations);
            all.insert(format!("{PREFIX}stages"), "1 1h, 100%".to_owned());
        });
        cluster.run();
        let state = cluster.record(2).state.unwrap();
        assert_eq!(state.stable, cluster.hash(stable), "{updated} pods of 1");
    }
}

#[test]
fn r2_a_policy_that_finds_the_target_on_all_pods_calls_it_stable() {
    let mut cluster = Cluster::new(4, &[]);
    assert_eq!(cluster.phase(0), (None, None));
    cluster.annotate(&[("stages", "1 1h, 100%")]);
    cluster.run();
    assert_eq!(cluster.phase(0), (STABLE, Some((0, Phase::Complete))));
    assert_eq!(cluster.reasons().len(), 0, "{:?}", cluster.events);
}

/// A cluster whose target was aborted, with a way back that is over or goes on.
fn aborted(is_over: bool) -> Cluster {
    let mut cluster = Cluster::new(4, &[("stages", "2 1h, 100%")]);
    cluster.roll_out(1);
    let hash = cluster.hash(1).unwrap();
    cluster.annotate(&[("abort", &hash)]);
    while cluster.phase(1).0 != FAILED {
        cluster.go_on();
    }
    if is_over {
        cluster.run();
    }
    let phase = if is_over {
        Phase::Held
    } else {
        Phase::RollingBack
    };
    assert_eq!(cluster.phase(1), (FAILED, Some((1, phase))));
    cluster
}

#[test]
fn r5_6_policy_none_releases_a_held_target_for_good() {
    for is_over in [true, false] {
        for restarts in [true, false] {
            let mut cluster = aborted(is_over);
            cluster.annotate(&[("policy", "none")]);
            cluster.run();
            assert_eq!(cluster.counts(), [(1, 4)].into());
            if restarts {
                cluster.restart();
            }
            cluster.forget();
            // Weeks later the policy counts again; the command that has failed it is still there.
            cluster.unannotate(&["policy"]);
            cluster.run();
            cluster.advance(60);
            assert_eq!(cluster.counts(), [(1, 4)].into(), "{is_over} {restarts}");
            assert_eq!(cluster.phase(1), (STABLE, Some((0, Phase::Complete))));
            assert_eq!(cluster.reasons(), Vec::<&str>::new());
        }
    }
}

#[test]
fn r5_6_a_release_that_the_policy_ends_early_goes_on_in_stages() {
    let mut cluster = aborted(true);
    cluster.sick.extend(cluster.on(0));
    cluster.annotate(&[("policy", "none")]);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 3), (1, 1)].into());
    cluster.unannotate(&["policy"]);
    cluster.run();
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Updating))));
    let state = cluster.record(1).state.unwrap();
    assert_eq!((state.attempt, state.stable), (2, cluster.hash(0)));
}

#[test]
fn r6_freeze_deletes_no_revision() {
    let mut cluster = Cluster::new(2, &[("stages", "100%")]);
    let uid = cluster.uid.clone();
    cluster.roll_out(1);
    cluster.roll_out(2);
    cluster.annotate(&[("freeze", "incident")]);
    cluster
        .fake
        .edit_set(&uid, |set| set.revision_history_limit = 0);
    cluster.run();
    cluster.advance(60);
    assert_eq!(cluster.fake.revisions.len(), 3);
    cluster.unannotate(&["freeze"]);
    cluster.run();
    assert_eq!(cluster.fake.revisions.len(), 1);
}

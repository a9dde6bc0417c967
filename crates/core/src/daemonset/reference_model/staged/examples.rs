//! Short histories of what an operator may do, for rules that random histories seldom reach.

use super::super::fake_cluster::Kind;
use super::kills::rolling;
use super::rollouts::Rollouts;
use crate::rollout::state::{Phase, Verdict};

fn three_nodes(policy: &[(&str, &str)]) -> Rollouts {
    Rollouts::new(0, 3, rolling(1, 0), policy, false)
}

fn phase(rollouts: &Rollouts, template: u32) -> (Option<Verdict>, Option<Phase>) {
    let record = rollouts.record(template);
    (record.verdict, record.state.map(|state| state.phase))
}

#[test]
fn r1_2_a_first_creation_proceeds_with_an_unreadable_policy() {
    let rollouts = three_nodes(&[("stages", "lots")]);
    assert_eq!(rollouts.available(0), 3, "{:#?}", rollouts.log);
}

#[test]
fn r2_1_a_node_that_a_stable_target_no_longer_selects_loses_its_pod() {
    let mut rollouts = three_nodes(&[("stages", "100%")]);
    let label = |rollouts: &mut Rollouts, zone: Option<&str>| {
        for number in 0..3 {
            let name: super::super::Uid = format!("node-{number}").into();
            let node = rollouts.cluster.nodes.get_mut(&name).unwrap();
            match zone.filter(|_| number < 2) {
                Some(zone) => drop(node.labels.insert("zone".into(), zone.into())),
                None => drop(node.labels.remove("zone")),
            }
            rollouts.cluster.changed(Kind::Nodes, &name, false);
        }
    };
    label(&mut rollouts, Some("a"));
    // Template 3 selects `zone=a`.
    rollouts.change_template(3);
    rollouts.settle();
    assert_eq!(phase(&rollouts, 3).0, Some(Verdict::Stable));
    assert_eq!(rollouts.available(3), 2);
    label(&mut rollouts, None);
    rollouts.settle();
    assert_eq!(rollouts.available(3), 0, "{:#?}", rollouts.log);
}

#[test]
fn r3_8_a_stage_by_label_without_a_node_waits_after_other_stages() {
    let mut rollouts = three_nodes(&[("stages", "1, nodes(pool=canary) 1m, 100%")]);
    rollouts.change_template(1);
    rollouts.settle();
    let waits = (Some(Verdict::Progressing), Some(Phase::AwaitingPromotion));
    assert_eq!(phase(&rollouts, 1), waits);
    assert_eq!(rollouts.available(1), 1);
}

#[test]
fn r5_2_a_pause_does_not_use_up_the_progress_deadline() {
    let mut rollouts = three_nodes(&[("stages", "100%"), ("progress-deadline", "30m")]);
    rollouts.annotate(&[("pause", "night")]);
    rollouts.change_template(1);
    rollouts.settle();
    assert_eq!(rollouts.available(0), 3);
    rollouts.unannotate("pause");
    rollouts.settle();
    let complete = (Some(Verdict::Stable), Some(Phase::Complete));
    assert_eq!(phase(&rollouts, 1), complete, "{:#?}", rollouts.log);
}

#[test]
fn r5_6_a_template_that_goes_back_to_a_stable_without_a_verdict_ends_the_rollout() {
    let mut rollouts = three_nodes(&[]);
    assert_eq!(rollouts.available(0), 3);
    // A release that brings its policy with it.
    rollouts.annotate(&[("stages", "1 1h, 100% 1h")]);
    rollouts.change_template(1);
    rollouts.run();
    assert_eq!((rollouts.available(0), rollouts.available(1)), (2, 1));
    rollouts.change_template(0);
    rollouts.run();
    assert_eq!(rollouts.available(0), 3, "{:#?}", rollouts.log);
    assert_eq!(phase(&rollouts, 0).0, Some(Verdict::Stable));
}

#[test]
fn r5_8_stable_outlives_a_restart_in_the_last_bake() {
    let mut rollouts = three_nodes(&[("stages", "100% 1h"), ("on-failure", "rollback")]);
    let uid = rollouts.uid.clone();
    rollouts
        .cluster
        .edit_set(&uid, |set| set.revision_history_limit = 0);
    rollouts.change_template(1);
    rollouts.run();
    assert_eq!(phase(&rollouts, 1).1, Some(Phase::Baking));
    rollouts.kill();
    rollouts.run();
    assert!(rollouts.hash(0).is_some(), "{:#?}", rollouts.log);
    let hash = rollouts.hash(1).unwrap();
    rollouts.annotate(&[("abort", &hash)]);
    rollouts.settle();
    assert_eq!(rollouts.available(0), 3);
}

#[test]
fn r6_a_retry_begins_with_stage_one() {
    let mut rollouts = three_nodes(&[("stages", "1 5m, 100%")]);
    rollouts.broken.insert(1);
    rollouts.change_template(1);
    rollouts.settle();
    assert_eq!(phase(&rollouts, 1).1, Some(Phase::Paused));
    rollouts.broken.clear();
    rollouts.run();
    let hash = rollouts.hash(1).unwrap();
    rollouts.annotate(&[("retry", &format!("{hash}/1"))]);
    rollouts.run();
    let state = rollouts.record(1).state.unwrap();
    assert_eq!((state.attempt, state.stage), (2, 1), "{:#?}", rollouts.log);
    assert_eq!(rollouts.available(1), 1);
}

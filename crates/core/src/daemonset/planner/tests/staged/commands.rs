//! Commands that are repeated, left behind, or come too early (R6.1).

use std::collections::BTreeSet;

use super::cluster::Cluster;
use super::{PROGRESSING, STABLE};
use crate::rollout::state::Phase;

const IGNORED: &str = "CommandIgnored";

fn waits(
    stage: usize,
) -> (
    Option<crate::rollout::state::Verdict>,
    Option<(usize, Phase)>,
) {
    (PROGRESSING, Some((stage, Phase::AwaitingPromotion)))
}

#[test]
fn r6_1_a_command_that_is_repeated_does_nothing() {
    let mut cluster = Cluster::new(6, &[("stages", "1 manual, 2 manual, 100%")]);
    cluster.roll_out(1);
    cluster.promote(1, 1);
    assert_eq!(cluster.phase(1), waits(2));
    cluster.promote(1, 1);
    cluster.restart();
    cluster.advance(600);
    assert_eq!(cluster.phase(1), waits(2));
    assert_eq!(cluster.told(IGNORED), 0);
    cluster.promote(1, 2);
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r6_1_a_command_that_is_left_behind_is_told_of_once() {
    let mut cluster = Cluster::new(6, &[("stages", "1 manual, 3 manual, 100%")]);
    cluster.roll_out(1);
    cluster.promote(1, 1);
    let old = cluster.hash(1).unwrap();
    cluster.roll_out(2);
    assert_eq!(cluster.phase(2), waits(1));
    assert_eq!(cluster.told(IGNORED), 1, "{:?}", cluster.events);
    let (_, text) = cluster.events.iter().find(|(r, _)| r == IGNORED).unwrap();
    assert!(text.contains(&format!("promote: \"{old}/1\"")), "{text}");
    let stalled = |cluster: &Cluster| cluster.conditions().iter().any(|(k, _)| k == "Stalled");
    assert!(!stalled(&cluster), "never PolicyInvalid");
    // Neither a newer template nor a new controller tells it again.
    cluster.roll_out(4);
    cluster.restart();
    cluster.advance(60);
    assert_eq!(cluster.told(IGNORED), 1, "{:?}", cluster.events);
    assert_eq!(cluster.phase(4), waits(1));
}

#[test]
fn r6_1_a_command_that_names_nothing_present_is_told_of_once() {
    let mut cluster = Cluster::new(4, &[("stages", "1 manual, 100%")]);
    cluster.annotate(&[("abort", "nothing"), ("retry", "?"), ("promote", "")]);
    cluster.run();
    cluster.advance(60);
    assert_eq!(cluster.told(IGNORED), 3, "{:?}", cluster.events);
    cluster.roll_out(1);
    assert_eq!(cluster.phase(1), waits(1));
    assert_eq!(cluster.told(IGNORED), 3, "{:?}", cluster.events);
}

#[test]
fn r6_1_a_command_that_comes_too_early_is_not_kept() {
    let mut cluster = Cluster::new(6, &[("stages", "1 5m, 3 manual, 100%")]);
    cluster.roll_out(1);
    cluster.promote(1, 2);
    assert_eq!(cluster.told(IGNORED), 1);
    assert_eq!(cluster.phase(1), (PROGRESSING, Some((1, Phase::Baking))));
    cluster.advance(300);
    assert_eq!(cluster.phase(1), waits(2));
    // Nor does a new controller carry it out.
    cluster.restart();
    cluster.advance(60);
    assert_eq!(cluster.phase(1), waits(2));
    assert_eq!(cluster.told(IGNORED), 1);
    // Taken away and given again, it counts.
    cluster.unannotate(&["promote"]);
    cluster.run();
    cluster.promote(1, 2);
    assert_eq!(cluster.phase(1).0, STABLE);
}

#[test]
fn r6_1_a_new_controller_does_not_tell_again_of_what_did_nothing() {
    let mut cluster = Cluster::new(4, &[("stages", "1 manual, 100%")]);
    let restarted = |cluster: &mut Cluster, told: usize| {
        cluster.run();
        assert_eq!(cluster.told(IGNORED), told, "{:?}", cluster.events);
        cluster.restart();
        cluster.advance(60);
        assert_eq!(cluster.told(IGNORED), told, "{:?}", cluster.events);
    };
    // While nothing is rolled out.
    cluster.annotate(&[("abort", "nothing"), ("retry", "?")]);
    restarted(&mut cluster, 2);
    // In the middle of a rollout, which stays as it is.
    cluster.roll_out(1);
    let state = cluster.record(1).state.unwrap();
    cluster.annotate(&[("promote", "nothing/1")]);
    restarted(&mut cluster, 3);
    assert_eq!(cluster.phase(1), waits(1));
    assert_eq!(cluster.record(1).state.unwrap().since, state.since);
    // Nor do a newer template and the one that was stable before.
    cluster.roll_out(2);
    restarted(&mut cluster, 3);
    cluster.roll_out(0);
    restarted(&mut cluster, 3);
    assert_eq!(cluster.counts(), [(0, 4)].into());
}

#[test]
fn r6_1_a_command_for_a_later_target_is_not_kept() {
    let mut cluster = Cluster::new(4, &[("stages", "1 manual, 100%")]);
    cluster.roll_out(1);
    cluster.roll_out(0);
    cluster.promote(1, 1);
    assert_eq!(cluster.told(IGNORED), 1, "{:?}", cluster.events);
    cluster.restart();
    cluster.roll_out(1);
    assert_eq!(cluster.phase(1), waits(1));
    assert_eq!(cluster.told(IGNORED), 1, "{:?}", cluster.events);
}

#[test]
fn r6_1_a_command_that_is_given_again_is_told_of_again() {
    let mut cluster = Cluster::new(4, &[("stages", "1 manual, 100%")]);
    for told in 1..4 {
        cluster.annotate(&[("abort", "nothing")]);
        cluster.run();
        cluster.advance(60);
        assert_eq!(cluster.told(IGNORED), told, "{:?}", cluster.events);
        cluster.unannotate(&["abort"]);
        cluster.run();
    }
}

#[test]
fn r6_1_failures_are_accepted_again_when_the_command_is_given_again() {
    let mut cluster = Cluster::new(6, &[("stages", "5, 100%")]);
    cluster.broken.insert(1);
    cluster.roll_out(1);
    cluster.advance(600);
    let paused = (PROGRESSING, Some((1, Phase::Paused)));
    assert_eq!((cluster.phase(1), cluster.on(1).len()), (paused, 1));
    cluster.promote(1, 1);
    cluster.advance(600);
    // The next node fails as well; that the command is still there accepts nothing.
    assert_eq!((cluster.phase(1), cluster.on(1).len()), (paused, 2));
    cluster.unannotate(&["promote"]);
    cluster.run();
    cluster.promote(1, 1);
    assert_eq!(
        (cluster.phase(1).1.unwrap().1, cluster.on(1).len()),
        (Phase::Updating, 3)
    );
}

#[test]
fn r6_1_a_command_without_a_policy_is_told_of_once() {
    let mut cluster = Cluster::new(3, &[]);
    cluster.annotate(&[("abort", "x"), ("promote", "x/full")]);
    cluster.run();
    assert_eq!(cluster.told(IGNORED), 2, "{:?}", cluster.events);
    let (_, text) = cluster.events.iter().find(|(r, _)| r == IGNORED).unwrap();
    assert_eq!(
        text,
        "rollout.kennel.dev/abort: \"x\" does nothing: no rollout policy applies"
    );
    cluster.advance(60);
    cluster.roll_out(1);
    assert_eq!(cluster.counts(), [(1, 3)].into());
    assert_eq!(cluster.told(IGNORED), 2, "{:?}", cluster.events);
    // Upstream's behaviour: nothing is written for it.
    assert_eq!(cluster.phase(1), (None, None));
    assert_eq!(cluster.conditions(), []);
    cluster.annotate(&[("abort", "y"), ("policy", "none")]);
    cluster.run();
    assert_eq!(cluster.told(IGNORED), 3, "{:?}", cluster.events);
    // A new controller tells it in the same words, and the event that exists is not written again.
    cluster.restart();
    let ignored = cluster
        .events
        .iter()
        .filter(|(reason, _)| reason == IGNORED);
    let texts: BTreeSet<String> = ignored.map(|(_, text)| text.clone()).collect();
    assert_eq!(texts.len(), 3, "{:?}", cluster.events);
    assert_eq!(texts, cluster.told_once);
}

#[test]
fn r6_1_what_was_carried_out_is_not_told_of_when_the_policy_goes() {
    let mut cluster = Cluster::new(3, &[("stages", "1 manual, 100%")]);
    cluster.roll_out(1);
    cluster.promote(1, 1);
    assert_eq!(cluster.phase(1).0, STABLE);
    cluster.unannotate(&["stages"]);
    cluster.run();
    assert_eq!(cluster.told(IGNORED), 0, "{:?}", cluster.events);
}

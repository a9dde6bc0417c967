//! The annotations of commands (R6), and what is refused.

use super::fixture::{Fixture, state};
use crate::rollout::request::{Request, RolloutCommand, request};
use crate::rollout::state::{Cut, Phase, Verdict};

fn in_phase(phase: Phase) -> Fixture {
    let fixture = Fixture::new(3).annotate("stages", "1 5m, 100%");
    match phase {
        Phase::RollingBack | Phase::Held => {
            fixture.record(Verdict::Failed, state(phase, 1, Cut::Nothing))
        }
        Phase::Complete => fixture.record(Verdict::Stable, state(phase, 2, Cut::Nothing)),
        _ => fixture.progressing(phase, 1, Cut::Nothing),
    }
}

fn written(request: &Request) -> Vec<(&str, Option<&str>)> {
    let annotations = request.annotations.iter();
    let annotations = annotations.map(|(key, value)| (key.as_str(), value.as_deref()));
    annotations.collect()
}

fn writes(fixture: &Fixture, command: &RolloutCommand, expected: &[(&str, Option<&str>)]) {
    let request = request(&fixture.outline(), command).unwrap();
    let keys = expected
        .iter()
        .map(|(key, value)| (format!("rollout.kennel.dev/{key}"), *value));
    let keys: Vec<(String, Option<&str>)> = keys.collect();
    let expected: Vec<(&str, Option<&str>)> = keys.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    assert_eq!(written(&request), expected);
}

fn refuses(fixture: &Fixture, command: &RolloutCommand, words: &str) {
    let refusal = request(&fixture.outline(), command)
        .unwrap_err()
        .to_string();
    assert!(refusal.contains(words), "{refusal}");
}

const PROMOTE: RolloutCommand = RolloutCommand::Promote { full: false };
const FULL: RolloutCommand = RolloutCommand::Promote { full: true };

#[test]
fn r6_1_promote_names_revision_and_stage() {
    for phase in [Phase::Baking, Phase::AwaitingPromotion, Phase::Paused] {
        writes(&in_phase(phase), &PROMOTE, &[("promote", Some("new/1"))]);
    }
    writes(
        &in_phase(Phase::Updating),
        &FULL,
        &[("promote", Some("new/full"))],
    );
    refuses(
        &in_phase(Phase::Updating),
        &PROMOTE,
        "--full sends the target to all nodes now",
    );
    refuses(
        &in_phase(Phase::Complete),
        &PROMOTE,
        "the rollout of new is complete",
    );
    refuses(
        &in_phase(Phase::Held),
        &FULL,
        "kennel rollout retry ds/agent tries it again",
    );
}

#[test]
fn r6_1_abort_names_the_revision() {
    for phase in [
        Phase::Updating,
        Phase::Baking,
        Phase::AwaitingPromotion,
        Phase::Paused,
    ] {
        writes(
            &in_phase(phase),
            &RolloutCommand::Abort,
            &[("abort", Some("new"))],
        );
    }
    refuses(
        &in_phase(Phase::Complete),
        &RolloutCommand::Abort,
        "kubectl rollout undo goes back",
    );
    refuses(
        &in_phase(Phase::RollingBack),
        &RolloutCommand::Abort,
        "there is nothing to abort",
    );
}

#[test]
fn r6_1_retry_names_the_attempt_and_clears_what_is_left_behind() {
    let held = in_phase(Phase::Held)
        .annotate("abort", "new")
        .annotate("promote", "new/1");
    let expected = [("abort", None), ("promote", None), ("retry", Some("new/1"))];
    writes(&held, &RolloutCommand::Retry, &expected);
    writes(
        &in_phase(Phase::Paused),
        &RolloutCommand::Retry,
        &[("retry", Some("new/1"))],
    );
    refuses(
        &in_phase(Phase::Baking),
        &RolloutCommand::Retry,
        "it is in phase Baking",
    );
}

#[test]
fn r6_1_what_was_carried_out_is_not_asked_for_again() {
    let again = in_phase(Phase::Baking).seen("promote", "new/1");
    refuses(
        &again,
        &PROMOTE,
        "take it away first: kubectl annotate ds/agent rollout.kennel.dev/promote-",
    );
}

#[test]
fn r6_3_pause_and_freeze_work_without_a_policy() {
    let fixture = Fixture::new(1);
    let reason = || "night".to_owned();
    writes(
        &fixture,
        &RolloutCommand::Pause { reason: reason() },
        &[("pause", Some("night"))],
    );
    writes(
        &fixture,
        &RolloutCommand::Freeze { reason: reason() },
        &[("freeze", Some("night"))],
    );
    let both = fixture.annotate("pause", "night").annotate("freeze", "x");
    writes(
        &both,
        &RolloutCommand::Resume,
        &[("freeze", None), ("pause", None)],
    );
    refuses(
        &Fixture::new(1),
        &RolloutCommand::Resume,
        "it is neither paused nor frozen",
    );
    refuses(
        &in_phase(Phase::Paused),
        &RolloutCommand::Resume,
        "promote accepts the failures",
    );
}

#[test]
fn without_a_policy_or_a_state_it_says_what_is_missing() {
    refuses(&Fixture::new(1), &PROMOTE, "ds/agent has no rollout policy");
    let unstarted = Fixture::new(1).annotate("stages", "1");
    refuses(
        &unstarted,
        &RolloutCommand::Abort,
        "no controller has written its state",
    );
}

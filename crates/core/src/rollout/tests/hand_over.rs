//! Which DaemonSets another controller may take over, and what commands say beside one.

use serde_json::json;

use super::fixture::{ALL, Fixture, state};
use crate::daemonset::view::Strategy;
use crate::rollout::hand_over::obstacle;
use crate::rollout::request::{RolloutCommand, request};
use crate::rollout::state::{Cut, Phase, Verdict};
use crate::rollout::status::Status;

fn staged() -> Fixture {
    Fixture::new(4).annotate("stages", "1 1h, 100%")
}

fn complete() -> Fixture {
    let done = state(Phase::Complete, 2, ALL);
    staged().record(Verdict::Stable, done).updated(4)
}

fn on_delete(mut fixture: Fixture) -> Fixture {
    fixture.set.strategy = Strategy::parse(&json!({"type": "OnDelete"}));
    fixture
}

#[test]
fn r9_4_a_finished_rollout_is_handed_over() {
    assert_eq!(obstacle(&complete().outline()), None);
    assert_eq!(obstacle(&complete().annotate("pause", "x").outline()), None);
    // Without a policy both controllers do the same.
    assert_eq!(obstacle(&Fixture::new(4).outline()), None);
    let off = Fixture::new(4).annotate("policy", "none");
    assert_eq!(obstacle(&off.outline()), None);
}

#[test]
fn r9_4_an_unfinished_rollout_and_a_held_target_are_not_handed_over() {
    let cut = || Cut::Node(staged().order()[0].clone());
    for phase in [
        Phase::Updating,
        Phase::Baking,
        Phase::AwaitingPromotion,
        Phase::Paused,
    ] {
        let fixture = staged().progressing(phase, 1, cut()).updated(1);
        assert!(obstacle(&fixture.outline()).is_some(), "{phase}");
    }
    for phase in [Phase::RollingBack, Phase::Held] {
        let fixture = staged().record(Verdict::Failed, state(phase, 1, cut()));
        let why = obstacle(&fixture.outline()).unwrap();
        assert!(why.starts_with("new has failed"), "{why}");
        assert!(obstacle(&on_delete(fixture).outline()).is_some());
        // The verdict outlives the policy.
        let bare = Fixture::new(4).record(Verdict::Failed, state(phase, 1, cut()));
        assert!(obstacle(&bare.outline()).is_some());
    }
    assert!(obstacle(&staged().outline()).is_some(), "not started");
    let invalid = complete().annotate("stages", "some");
    assert!(obstacle(&invalid.outline()).is_some());
    let frozen = Fixture::new(4).annotate("freeze", "x");
    assert!(obstacle(&frozen.outline()).is_some());
    let paused = Fixture::new(4).annotate("pause", "x");
    assert_eq!(
        obstacle(&paused.outline()).is_some(),
        paused.set.status.updated < paused.set.status.desired
    );
}

#[test]
fn r11_on_delete_waits_for_nobody() {
    let cut = Cut::Node(staged().order()[0].clone());
    let fixture = on_delete(staged().progressing(Phase::Baking, 1, cut).updated(1));
    assert_eq!(obstacle(&fixture.outline()), None);
}

#[test]
fn r11_abort_promises_no_way_back() {
    let cut = Cut::Node(staged().order()[0].clone());
    let fixture = on_delete(staged().progressing(Phase::Baking, 1, cut).updated(1));
    let effect = request(&fixture.outline(), &RolloutCommand::Abort)
        .unwrap()
        .effect
        .to_string();
    assert!(
        effect.starts_with("aborted: no further node gets new;"),
        "{effect}"
    );
    let status = Status::of(&fixture.outline(), |_| None).text();
    assert!(
        status.contains("# stop it; nodes keep what they have"),
        "{status}"
    );
}

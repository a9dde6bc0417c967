//! Pause, freeze and resume.

use super::fixture::{Fixture, WATCH};

#[test]
fn r6_pause_and_freeze_are_shown_and_undone() {
    let fixture = Fixture::new(3, &[("stages", "1 manual, 100%")]);
    let shown = fixture.check(&["pause", "ds/agent", "--reason", "night"], 0);
    assert!(shown.contains("daemonset/agent paused: "), "{shown}");
    fixture.apply("2");
    fixture.wait_for("phase", "PausedByHand");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 4);
    assert!(shown.contains("(night)"), "{shown}");
    assert!(fixture.nodes_with("2").is_empty());
    fixture.check(&["freeze", "ds/agent"], 0);
    fixture.wait_for("phase", "Frozen");
    fixture.check(&["resume", "ds/agent"], 0);
    let shown = fixture.check(&["resume", "ds/agent"], 1);
    assert!(shown.contains("it is neither paused nor frozen"), "{shown}");
    fixture.check(&["status", "ds/agent", WATCH], 4);
    assert_eq!(fixture.nodes_with("2").len(), 1);
    fixture.check(&["abort", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 1);
    fixture.check(&["retry", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 4);
    fixture.check(&["promote", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 0);
}

#[test]
fn without_a_policy_there_is_nothing_to_promote() {
    let fixture = Fixture::new(1, &[]);
    let shown = fixture.check(&["status", "ds/agent"], 0);
    assert!(shown.contains("complete (no rollout policy)"), "{shown}");
    let shown = fixture.check(&["promote", "ds/agent"], 1);
    assert!(shown.contains("has no rollout policy"), "{shown}");
    let plan = fixture.plan("2");
    assert_eq!(plan["course"], "unstaged");
    fixture.check(&["pause", "ds/agent"], 0);
    fixture.apply("2");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 4);
    assert!(shown.contains("paused by hand"), "{shown}");
}

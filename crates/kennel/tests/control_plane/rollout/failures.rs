//! Releases that fail: held by themselves or by hand, retried.

use super::fixture::{Fixture, WATCH};

const CRASHES: &str = "
pods:
- image: \"*:broken\"
  ready: 1h
  exits: {after: 100ms, code: 1}
";

const POLICY: [(&str, &str); 3] = [
    ("stages", "1, 100%"),
    ("max-restarts", "0"),
    ("on-failure", "rollback"),
];

#[test]
fn r5_4_a_bad_release_goes_back_by_itself_and_is_held() {
    let fixture = Fixture::with(CRASHES, 4, &POLICY);
    fixture.apply("broken");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(shown.contains(" has failed and is held (1 node"), "{shown}");
    assert_eq!(fixture.nodes_with("1").len(), 4);
    let why = fixture.cluster.why(&["ds/agent"]);
    assert!(
        why.stdout
            .contains("has failed (TooManyRestarts) and is held"),
        "{}",
        why.stdout
    );
    let history = fixture.check(&["history", "ds/agent"], 0);
    assert!(history.contains("failed (target)  1 "), "{history}");

    let refused = fixture.check(&["abort", "ds/agent"], 1);
    assert!(
        refused.contains("kennel rollout retry ds/agent tries it again"),
        "{refused}"
    );
    fixture.check(&["retry", "ds/agent"], 0);
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(shown.contains("(attempt 2)"), "{shown}");
    let plan = fixture.json(&["plan", "ds/agent"]);
    assert_eq!(plan["course"], "held");
}

#[test]
fn r5_4_a_release_that_breaks_one_node_in_fifty_goes_back() {
    let policy = [
        ("stages", "1%, 100%"),
        ("max-restarts", "0"),
        ("on-failure", "rollback"),
    ];
    let fixture = Fixture::with_flags(&["--scenario", "bad-release"], "", 150, &policy);
    fixture.apply("2");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(shown.contains(" has failed and is held"), "{shown}");
    assert_eq!(fixture.nodes_with("1").len(), 150);
    // The repaired release is good on the same nodes.
    fixture.apply("2.1");
    fixture.check(&["status", "ds/agent", WATCH], 0);
    assert_eq!(fixture.nodes_with("2.1").len(), 150);
}

/// A recorder writes 25 events on one object at once; the pods of 40 nodes alone have more.
#[test]
fn r9_2_events_of_a_rollout_are_not_dropped_behind_those_of_its_pods() {
    let policy = [
        ("stages", "1, 100%"),
        ("max-restarts", "0"),
        ("max-failures", "1"),
        ("on-failure", "rollback"),
    ];
    let fixture = Fixture::with(CRASHES, 40, &policy);
    fixture.apply("broken");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(shown.contains(" has failed and is held"), "{shown}");
    assert_eq!(fixture.nodes_with("1").len(), 40);
    fixture.wait_for_event("RolloutStarted", "stage 1 of 2 (1)");
    fixture.wait_for_event("StageStarted", "stage 2 of 2 (100%)");
    fixture.wait_for_event("RolloutFailed", "has failed in stage 2 of 2 (100%): ");
    fixture.wait_for_event("RollingBack", "every node goes back to ");
    fixture.wait_for_event("RolledBack", "no node has it any more");
    // Nor are those of what a person does.
    fixture.check(&["retry", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 1);
    fixture.wait_for_event("StageStarted", "stage 1 of 2 (1)");
    let command = "rollout.kennel.dev/promote=0000000000/1";
    let kubectl = &fixture.cluster.kubectl;
    kubectl.run(&["annotate", "ds", "agent", command]).ok();
    fixture.wait_for_event("CommandIgnored", "promote");
}

#[test]
fn r5_3_a_paused_failure_is_promoted_or_aborted() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let fixture = Fixture::with(CRASHES, 3, &policy);
    fixture.apply("broken");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(
        shown.contains("failed and paused in stage 1 of 2 (1)"),
        "{shown}"
    );
    assert!(shown.contains("accept the failures and go on"), "{shown}");
    let shown = fixture.check(&["resume", "ds/agent"], 1);
    assert!(shown.contains("promote accepts the failures"), "{shown}");
    fixture.check(&["abort", "ds/agent"], 0);
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(shown.contains("is held (aborted by hand)"), "{shown}");
    assert_eq!(fixture.nodes_with("1").len(), 3);
    // The template is as it was applied.
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    let image = fixture
        .cluster
        .kubectl
        .run(&["get", "ds", "agent", "-o", image])
        .ok();
    assert_eq!(image, "example.com/agent:broken");
}

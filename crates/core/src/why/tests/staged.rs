//! Nodes of a DaemonSet with a rollout policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Timestamp;
use serde_json::json;

use super::super::{Cause, Verdict};
use super::fixture::{Fixture, NOW, old, ready};
use crate::daemonset::HASH_LABEL;
use crate::daemonset::history::data;
use crate::rollout::state::{Accepted, Cut, Phase, Reason, Record, State, Verdict as Judged};

const RUNS: Verdict = Verdict::Runs;

/// A rollout from `old` to `new` in this state; every node has an available pod of `old`.
fn staged(verdict: Judged, phase: Phase, cut: Cut) -> Fixture {
    let mut fixture = Fixture::new();
    let mut stable = fixture.0.revisions[0].clone();
    (stable.name, stable.uid, stable.revision) = ("agent-old".into(), "uid-old".into(), 1);
    stable.labels = [(HASH_LABEL.to_owned(), "old".to_owned())].into();
    stable.data = data::of_template(&json!({"spec": {"containers": []}})).into();
    fixture.0.revisions.push(stable);
    fixture.0.revisions[0].record = Record {
        verdict: Some(verdict),
        state: Some(State {
            owner: "uid-agent".into(),
            stable: Some("old".into()),
            attempt: 1,
            stage: 1,
            cut,
            phase,
            since: Timestamp::from_secs(NOW),
            reason: Some(Reason {
                code: "Aborted".into(),
                message: "aborted by hand".into(),
            }),
            accepted: Accepted::None,
            seen: BTreeMap::new(),
            stages: Vec::new(),
            failing: BTreeSet::new(),
        }),
    };
    let fixture = annotate(fixture, "stages", "1, 2 manual, 100%");
    fixture
        .pod(old("p1", "n1"))
        .pod(old("p2", "n2"))
        .pod(old("p3", "n3"))
}

fn annotate(fixture: Fixture, key: &str, value: &str) -> Fixture {
    fixture.set(|set| {
        let mut annotations = (*set.annotations).clone();
        annotations.insert(format!("rollout.kennel.dev/{key}"), value.to_owned());
        set.annotations = Arc::new(annotations);
    })
}

/// The nodes in the order of the rollout.
fn order(fixture: &Fixture) -> Vec<String> {
    let answer = fixture.answer();
    let mut nodes: Vec<_> = answer
        .nodes
        .iter()
        .map(|n| (n.place, n.node.clone()))
        .collect();
    nodes.sort();
    nodes.into_iter().map(|(_, node)| node).collect()
}

#[test]
fn r9_4_a_node_waits_for_its_stage() {
    let mut fixture = staged(Judged::Progressing, Phase::Updating, Cut::Nothing);
    let order = order(&fixture);
    let third = fixture.on(&order[2]);
    assert_eq!((third.verdict, third.cause), (RUNS, Cause::WaitsForStage));
    assert_eq!(
        third.message,
        "runs stable: stage 1 of 3 reaches 1, these come with stage 3"
    );
    assert_eq!(third.place, Some(3));
    fixture.0.only = Some(order[2].clone());
    let expected =
        "runs stable: stage 1 of 3 reaches 1, this node is 3rd of 3 and comes with stage 3";
    assert_eq!(fixture.on(&order[2]).message, expected);
}

#[test]
fn r3_3_a_node_in_its_turn_says_which_nodes_use_up_the_budget() {
    let fixture = staged(Judged::Progressing, Phase::Updating, Cut::Nothing);
    let order = order(&fixture);
    let mut fixture = staged(
        Judged::Progressing,
        Phase::Updating,
        Cut::Node(order[0].clone()),
    );
    let pods = &mut fixture.0.pods;
    let failing = pods
        .iter_mut()
        .find(|pod| pod.view.bound_to.as_deref() == Some(order[2].as_str()));
    failing.unwrap().view.ready_since = None;
    let first = fixture.on(&order[0]);
    assert_eq!((first.verdict, first.cause), (RUNS, Cause::WaitsForBudget));
    let third = &order[2];
    let message = format!(
        "runs the old template and waits for its turn: maxUnavailable allows 1 node without an available pod, \
         and that is {third}"
    );
    assert_eq!(first.message, message);
    let note = format!(
        "rollout: stage 1 of 3 (1), 0 of 1 nodes healthy; \
         waits: maxUnavailable is 1 and the pod on node {third} is not available"
    );
    assert_eq!(fixture.answer().notes[0].message, note);
}

#[test]
fn the_note_says_where_the_rollout_stands() {
    let fixture = staged(Judged::Progressing, Phase::Updating, Cut::Nothing);
    let first = order(&fixture)[0].clone();
    let fixture = staged(Judged::Progressing, Phase::Updating, Cut::Node(first));
    let notes = fixture.answer().notes;
    assert_eq!(notes[0].code, "rollout");
    assert_eq!(
        notes[0].message,
        "rollout: stage 1 of 3 (1), 0 of 1 nodes healthy"
    );
}

#[test]
fn r5_4_nodes_of_a_failed_revision() {
    let mut fixture = staged(Judged::Failed, Phase::RollingBack, Cut::Nothing);
    fixture.0.pods[1] = ready("p2", "n2");
    let message = "runs stable: new has failed (Aborted) and is held";
    fixture.check(RUNS, Cause::RevisionFailed, message);
    let message = "runs new, which has failed (Aborted): it goes back to stable within the budget";
    assert_eq!(fixture.on("n2").message, message);
}

#[test]
fn r2_1_a_node_is_judged_by_the_template_that_it_is_driven_to() {
    let fixture = staged(Judged::Progressing, Phase::Updating, Cut::Nothing);
    let fixture = fixture.set(|set| {
        let mut template = (*set.template).clone();
        template["spec"]["nodeSelector"] = json!({"pool": "none"});
        set.template = Arc::new(template);
    });
    let mut fixture = fixture;
    let template = fixture.0.daemon_set.template.clone();
    fixture.0.revisions[0].data = data::of_template(&template).into();
    assert_eq!(fixture.on("n1").verdict, RUNS);
}

#[test]
fn pause_freeze_and_an_unreadable_policy_are_named() {
    let fixture = || staged(Judged::Progressing, Phase::Updating, Cut::Nothing);
    let paused = annotate(fixture(), "pause", "night");
    let message = "runs the old template; its rollout is paused: night";
    paused.check(RUNS, Cause::RolloutPaused, message);
    let frozen = annotate(paused, "freeze", "look");
    let message = "runs the old template; it is frozen: look";
    frozen.check(RUNS, Cause::RolloutPaused, message);
    let invalid = annotate(fixture(), "on-failure", "cry");
    let message = "runs the old template; its rollout policy cannot be read: \
                   rollout.kennel.dev/on-failure: \"cry\" is not allowed: must be \"pause\" or \"rollback\"";
    invalid.check(RUNS, Cause::RolloutPaused, message);
}

//! Changes: previewed, carried out, and refused.

use kennel_testkit::{Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{AGENT, Fixture};

const ALLOWED: &[&str] = &["--allow-changes"];

fn change() -> String {
    format!("{AGENT}/rollout")
}

fn annotation(fixture: &Fixture, key: &str) -> Value {
    let set = fixture
        .rollout
        .cluster
        .kubectl
        .get(&["ds", "agent"])
        .unwrap();
    set["metadata"]["annotations"][format!("rollout.kennel.dev/{key}")].clone()
}

#[test]
fn a_manual_stage_is_promoted_as_the_preview_says() {
    let fixture = Fixture::new(4, &[("stages", "1 manual, 100%")], ALLOWED);
    fixture.rollout.apply("2");
    fixture.rollout.wait_for("phase", "AwaitingPromotion");
    let preview = fixture.get(&format!("{}/preview?verb=promote", change()));
    assert_eq!(preview["possible"], true, "{preview}");
    assert_eq!(
        preview["command"],
        "kennel rollout promote ds/agent -n default"
    );
    let target = preview["target"].clone();
    let wrong = json!({"verb": "promote", "target": "0123456789"});
    let wrong = fixture.visitor.post(&change(), &wrong);
    assert_eq!(
        (wrong.status, wrong.json()["code"].clone()),
        (409, "Changed".into())
    );
    assert!(annotation(&fixture, "promote").is_null());

    let promote = json!({"verb": "promote", "target": target});
    let done = fixture.visitor.post(&change(), &promote);
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(done.json()["effect"], preview["effect"]);
    fixture
        .rollout
        .check(&["status", "ds/agent", "--timeout=60s"], 0);
    let again = fixture.visitor.post(&change(), &promote);
    assert_eq!(
        (again.status, again.json()["code"].clone()),
        (409, "Refused".into())
    );
}

#[test]
fn pause_keeps_the_reason_and_resume_takes_it_away() {
    let fixture = Fixture::new(1, &[], ALLOWED);
    let pause = json!({"verb": "pause", "reason": "<script>alert(1)</script>"});
    assert_eq!(fixture.visitor.post(&change(), &pause).status, 200);
    assert_eq!(annotation(&fixture, "pause"), "<script>alert(1)</script>");
    assert_eq!(
        fixture
            .visitor
            .post(&change(), &json!({"verb": "resume"}))
            .status,
        200
    );
    assert!(annotation(&fixture, "pause").is_null());
    let bad = |body: Value| fixture.visitor.post(&change(), &body).status;
    assert_eq!(bad(json!({"verb": "pause", "reason": "two\nlines"})), 400);
    assert_eq!(
        bad(json!({"verb": "pause", "reason": "x".repeat(201)})),
        400
    );
    assert_eq!(bad(json!({"verb": "delete"})), 400);
    assert_eq!(bad(json!({"verb": "pause", "force": true})), 400);
    assert_eq!(
        bad(json!({"verb": "pause", "reason": "x".repeat(10_000)})),
        413
    );
}

#[test]
fn an_aborted_rollout_goes_back_and_is_retried() {
    let fixture = Fixture::new(3, &[("stages", "1 manual, 100%")], ALLOWED);
    fixture.rollout.apply("2");
    fixture.rollout.wait_for("phase", "AwaitingPromotion");
    assert_eq!(
        fixture
            .visitor
            .post(&change(), &json!({"verb": "abort"}))
            .status,
        200
    );
    fixture.rollout.wait_for("phase", "Held");
    assert_eq!(
        fixture
            .visitor
            .post(&change(), &json!({"verb": "retry"}))
            .status,
        200
    );
    fixture.rollout.wait_for("phase", "AwaitingPromotion");
    assert_eq!(
        fixture
            .visitor
            .post(&change(), &json!({"verb": "promoteFull"}))
            .status,
        200
    );
    fixture
        .rollout
        .check(&["status", "ds/agent", "--timeout=60s"], 0);
}

#[test]
fn undo_writes_the_template_of_the_previous_revision() {
    let fixture = Fixture::new(2, &[], ALLOWED);
    let nothing = fixture.visitor.post(&change(), &json!({"verb": "undo"}));
    assert_eq!(nothing.status, 409, "{}", nothing.text());
    fixture.rollout.apply("2");
    fixture
        .rollout
        .check(&["status", "ds/agent", "--timeout=60s"], 0);
    let preview = fixture.get(&format!("{}/preview?verb=undo", change()));
    assert_eq!(
        preview["command"],
        "kubectl rollout undo ds/agent -n default"
    );
    let done = fixture.visitor.post(&change(), &json!({"verb": "undo"}));
    assert_eq!(done.status, 200, "{}", done.text());
    eventually(Deadline::seconds(60), || {
        let nodes = fixture.rollout.nodes_with("1");
        (nodes.len() == 2).then_some(()).ok_or(format!("{nodes:?}"))
    });
}

//! What single requests answer: why, logs, history, differences, nodes.

use serde_json::json;

use super::fixture::{AGENT, Fixture};

#[test]
fn a_node_is_explained_as_kennel_why_does() {
    let fixture = Fixture::new(2, &[], &[]);
    fixture.kubectl(&["taint", "node", "sim-1", "dedicated=db:NoSchedule"]);
    fixture.kubectl(&["delete", "pod", "--all", "--grace-period=0", "--force"]);
    fixture
        .rollout
        .cluster
        .verdict("sim-1", "excluded", "taint");
    let why = fixture.get(&format!("{AGENT}/nodes/sim-1/why"));
    assert_eq!(
        (&why["answer"]["verdict"], &why["answer"]["cause"]),
        (&json!("excluded"), &json!("taint"))
    );
    let printed = fixture
        .rollout
        .cluster
        .why(&["ds/agent", "--node", "sim-1"]);
    // Further down there are ages.
    let first = |text: &str| text.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first(why["text"].as_str().unwrap()), first(&printed.stdout));
    let commands = why["commands"].as_array().unwrap();
    assert!(
        commands.contains(&json!("kennel why ds/agent -n default --node sim-1")),
        "{why}"
    );
    let unknown = fixture.visitor.get(&format!("{AGENT}/nodes/sim-7/why"));
    assert_eq!(
        (unknown.status, unknown.json()["code"].clone()),
        (404, "NotFound".into())
    );
    let other = fixture
        .visitor
        .get("/api/daemonsets/default/agnet/nodes/sim-1/why");
    assert!(
        other.json()["message"]
            .as_str()
            .unwrap()
            .contains("did you mean agent?"),
        "{other:?}"
    );
}

#[test]
fn history_and_differences_are_those_of_the_revisions() {
    let fixture = Fixture::new(2, &[], &[]);
    fixture.rollout.apply("2");
    fixture
        .rollout
        .check(&["status", "ds/agent", "--timeout=60s"], 0);
    let history = fixture.get(&format!("{AGENT}/history"));
    assert_eq!(history, fixture.rollout.json(&["history", "ds/agent"]));
    let diff = fixture.get(&format!("{AGENT}/diff"));
    let changed = diff["lines"].as_array().unwrap().iter();
    let changed = changed.filter(|line| line["kind"] == "-" || line["kind"] == "+");
    let changed: Vec<&str> = changed
        .map(|line| line["text"].as_str().unwrap().trim())
        .collect();
    assert_eq!(changed.len(), 2, "{diff}");
    assert!(
        changed[0].contains("agent:1") && changed[1].contains("agent:2"),
        "{diff}"
    );
    let back = format!(
        "{AGENT}/diff?from={}&to={}",
        diff["to"].as_str().unwrap(),
        diff["from"].as_str().unwrap()
    );
    let back = fixture.get(&back);
    assert_eq!((&back["from"], &back["to"]), (&diff["to"], &diff["from"]));
    assert_eq!(
        fixture
            .visitor
            .get(&format!("{AGENT}/diff?from=nothing"))
            .status,
        404
    );
}

#[test]
fn a_node_shows_its_daemons_conditions_and_taints() {
    let fixture = Fixture::new(1, &[], &[]);
    fixture.kubectl(&["taint", "node", "sim-1", "dedicated=db:PreferNoSchedule"]);
    let node = fixture.get("/api/nodes/sim-1");
    assert_eq!(node["ready"], true);
    assert_eq!(node["taints"], json!(["dedicated=db:PreferNoSchedule"]));
    assert!(
        node["allocatable"]["memoryBytes"].as_u64() > Some(0),
        "{node}"
    );
    let daemon = &node["daemons"][0];
    assert_eq!(
        (&daemon["name"], &daemon["status"], &daemon["ready"]),
        (&json!("agent"), &json!("Running"), &json!(true))
    );
    assert_eq!(fixture.visitor.get("/api/nodes/sim-9").status, 404);
}

#[test]
fn a_log_that_cannot_be_had_ends_with_the_reason() {
    let fixture = Fixture::new(1, &[], &[]);
    let mut log = fixture
        .visitor
        .events(&format!("{AGENT}/nodes/sim-1/logs?follow=1"));
    let why = log.wait("end", |end| end["why"].as_str().map(str::to_owned));
    assert!(!why.is_empty());
    assert!(log.next().is_none(), "the stream has ended");
    let mut log = fixture.visitor.events(&format!("{AGENT}/nodes/sim-2/logs"));
    let why = log.wait("end", |end| end["why"].as_str().map(str::to_owned));
    assert!(why.contains("has no pod on node sim-2"), "{why}");
    let mut log = fixture
        .visitor
        .events(&format!("{AGENT}/nodes/sim-1/logs?container=none"));
    let why = log.wait("end", |end| end["why"].as_str().map(str::to_owned));
    assert!(why.contains("has no container none"), "{why}");
    assert_eq!(
        fixture
            .visitor
            .get(&format!("{AGENT}/nodes/sim-1/logs?tail=x"))
            .status,
        400
    );
}

//! The plan (R3.2).

use super::fixture::{ALL, Fixture, state};
use crate::rollout::plan::StageState::{Ahead, Done, PassedOver, Present};
use crate::rollout::plan::{Course, Plan, StageState};
use crate::rollout::state::{Cut, Phase, Verdict};

const STAGES: &str = "nodes(pool=canary) 15m, 30% 30m, 50% manual, 100% 10m";

fn canary() -> Fixture {
    let fixture = Fixture::new(10).annotate("stages", STAGES);
    fixture.label("n4", "pool", "canary")
}

fn plan(fixture: &Fixture) -> Plan {
    Plan::of(&fixture.outline(), false)
}

fn counts(plan: &Plan) -> Vec<(usize, usize)> {
    let stages = plan.stages.iter();
    stages
        .map(|stage| (stage.nodes.len(), stage.reaches))
        .collect()
}

#[test]
fn r3_2_each_stage_takes_the_next_nodes_in_order() {
    let fixture = Fixture::new(10).annotate("stages", "1, 30% 30m, 50% manual, 100% 10m");
    let plan = plan(&fixture);
    assert_eq!(plan.course, Course::New);
    assert_eq!(
        (plan.target.as_deref(), plan.stable.as_deref()),
        (Some("new"), Some("old"))
    );
    assert_eq!(counts(&plan), [(1, 1), (2, 3), (2, 5), (5, 10)]);
    let all: Vec<String> = plan
        .stages
        .iter()
        .flat_map(|stage| stage.nodes.clone())
        .collect();
    assert_eq!(all, fixture.order());
    assert_eq!(plan.at_least_seconds, 40 * 60);
    assert_eq!(plan.promotions, [3]);
    assert_eq!(
        plan.earliest_end.unwrap().as_secs(),
        super::fixture::NOW + 2400
    );
}

#[test]
fn r3_2_the_plan_for_people() {
    let fixture = Fixture::new(3).annotate("stages", "1 5m, 100%").down("n2");
    let order = fixture.order();
    let expected = format!(
        "DaemonSet default/agent: new reaches 3 nodes in 2 stages

  STAGE  POLICY  ADDS  REACHES  NODES
  1      1 5m       1        1  {}
  2      100%       2        3  {}, {}

Earliest end: 1970-01-12T13:51:40Z (5m of bakes).
Note: 1 node of them is down at present.
",
        order[0], order[1], order[2]
    );
    assert_eq!(plan(&fixture).text(false), expected);
}

#[test]
fn r3_8_stages_that_add_no_node_are_passed_over() {
    let fixture = Fixture::new(4).annotate("stages", "2 1h, 50% 1h, 100%");
    let plan = plan(&fixture);
    let states: Vec<StageState> = plan.stages.iter().map(|stage| stage.state).collect();
    assert_eq!(states, [Ahead, PassedOver, Ahead]);
    assert_eq!(plan.at_least_seconds, 3600);
}

#[test]
fn r3_8_a_label_that_no_node_has_waits() {
    let fixture = Fixture::new(4).annotate("stages", "nodes(pool=canary), 100%");
    let plan = plan(&fixture);
    assert_eq!(counts(&plan), [(0, 0), (4, 4)]);
    let text = plan.text(false);
    assert!(
        text.contains("waits until a node has these labels"),
        "{text}"
    );
}

#[test]
fn r3_7_a_stage_by_label_does_not_count_on_nodes_that_are_down() {
    let fixture = Fixture::new(6).annotate("stages", "nodes(pool=canary), 2, 40%, 100%");
    let last = fixture.order()[5].clone();
    let fixture = fixture.label(&last, "pool", "canary").down(&last);
    let plan = plan(&fixture);
    // It has its turn with the stage of its place, unless it returns before.
    assert_eq!(counts(&plan), [(0, 1), (2, 2), (1, 3), (3, 6)]);
    assert_eq!(plan.stages[0].down, std::slice::from_ref(&last));
    assert!(plan.stages[3].nodes.contains(&last));
    let text = plan.text(false);
    assert!(text.contains(&format!("  down: {last}\n")), "{text}");
}

#[test]
fn r3_1_spread_takes_nodes_evenly() {
    let mut fixture = Fixture::new(6)
        .annotate("stages", "2, 4, 100%")
        .annotate("spread", "zone");
    for (node, zone) in [
        ("n1", "a"),
        ("n2", "a"),
        ("n3", "a"),
        ("n4", "b"),
        ("n5", "b"),
        ("n6", "c"),
    ] {
        fixture = fixture.label(node, "zone", zone);
    }
    let zone = |name: &String| match name.as_str() {
        "n1" | "n2" | "n3" => 'a',
        "n4" | "n5" => 'b',
        _ => 'c',
    };
    let plan = plan(&fixture);
    let zones = plan
        .stages
        .iter()
        .map(|stage| stage.nodes.iter().map(zone).collect());
    let zones: Vec<String> = zones.collect();
    assert_eq!(zones, ["ab", "ca", "ba"]);
}

#[test]
fn a_rollout_under_way_keeps_the_nodes_that_it_has() {
    let fixture = canary();
    let last = fixture.order()[2].clone();
    let fixture = fixture.pod("n4", "new");
    let fixture = fixture
        .progressing(Phase::Baking, 2, Cut::Node(last))
        .updated(3);
    let plan = plan(&fixture);
    assert_eq!(plan.course, Course::Present);
    let states: Vec<StageState> = plan.stages.iter().map(|stage| stage.state).collect();
    assert_eq!(states, [Done, Present, Ahead, Ahead]);
    assert_eq!(plan.stages[0].nodes, ["n4"]);
    let admitted = fixture
        .outline()
        .nodes
        .iter()
        .filter(|node| node.admitted)
        .count();
    assert_eq!(plan.stages[1].reaches, admitted);
    // Of the bake of half an hour four minutes are over.
    assert_eq!(plan.at_least_seconds, (26 + 10) * 60);
}

#[test]
fn a_complete_rollout_shows_the_next_one() {
    let fixture = canary()
        .record(Verdict::Stable, state(Phase::Complete, 4, ALL))
        .updated(10);
    let plan = plan(&fixture);
    assert_eq!((plan.course, plan.earliest_end), (Course::Next, None));
    assert_eq!(plan.stages[0].nodes, ["n4"]);
    let text = plan.text(false);
    assert!(
        text.contains("Earliest end: 55m after its start (bakes); stage 3 waits"),
        "{text}"
    );
}

#[test]
fn r5_6_a_revision_with_a_verdict_has_no_stages() {
    let stable = canary().record(Verdict::Stable, state(Phase::Complete, 4, ALL));
    assert_eq!(Plan::of(&stable.outline(), true).course, Course::Direct);
    let failed = canary().record(Verdict::Failed, state(Phase::Held, 2, Cut::Nothing));
    let plan = plan(&failed);
    assert_eq!((plan.course, plan.stages.len()), (Course::Held, 0));
}

#[test]
fn without_a_policy_there_are_no_stages() {
    let fixture = Fixture::new(3);
    let found = plan(&fixture);
    assert_eq!(
        (found.course, found.nodes, found.stages.len()),
        (Course::Unstaged, 3, 0)
    );
    let mut inherited = Fixture::new(3);
    inherited
        .namespace
        .insert("rollout.kennel.dev/stages".into(), "1".into());
    assert_eq!(plan(&inherited).course, Course::New);
}

#[test]
fn the_first_creation_is_staged_only_on_request() {
    let mut fixture = Fixture::new(3).annotate("stages", "1, 100%");
    fixture.pods.clear();
    fixture.revisions.clear();
    assert_eq!(plan(&fixture).course, Course::FirstCreation);
    let fixture = fixture.annotate("stages-on-create", "true");
    let plan = plan(&fixture);
    assert_eq!((plan.course, plan.stages.len()), (Course::New, 2));
}

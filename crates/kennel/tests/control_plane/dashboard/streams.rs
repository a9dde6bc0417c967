//! What the streams say while a cluster changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use kennel_testkit::{Dashboard, Deadline, Events};
use serde_json::{Value, json};

use super::fixture::{AGENT, Fixture, KENNEL, Page};
use crate::why::fixture::daemon_set;

/// Reads a stream until the cells are as expected.
fn wait(events: &mut Events, page: &mut Page, expected: impl Fn(&Page) -> bool) {
    if !expected(page) {
        wait_with(events, page, |_, _, page| expected(page));
    }
}

/// As [`wait`], for what the next events say, too.
fn wait_with(
    events: &mut Events,
    page: &mut Page,
    mut expected: impl FnMut(&str, &Value, &Page) -> bool,
) {
    let deadline = Deadline::seconds(60);
    loop {
        let (event, data) = events.next().expect("the stream goes on");
        page.enter(&event, &data);
        if expected(&event, &data, page) {
            return;
        }
        assert!(!deadline.passed(), "not in time: {page:?}");
    }
}

#[test]
fn the_picture_follows_a_rollout_in_stages() {
    let fixture = Fixture::new(10, &[("stages", "20% manual, 100%")], &["--allow-changes"]);
    for node in 1..=10 {
        let zone = if node % 2 == 0 {
            "zone=even"
        } else {
            "zone=odd"
        };
        fixture.kubectl(&["label", "node", &format!("sim-{node}"), zone]);
    }
    let mut events = fixture
        .visitor
        .events(&format!("{AGENT}/stream?group=zone"));
    let mut page = Page::default();
    wait(&mut events, &mut page, |page| {
        page.groups.len() == 2 && page.count('n') == 10
    });
    assert_eq!(
        page.nodes[8..],
        ["sim-9", "sim-10"],
        "in the order in which people count"
    );
    assert_eq!(
        (page.group_of("sim-3"), page.group_of("sim-10")),
        ("odd", "even")
    );

    fixture.rollout.apply("2");
    let present =
        |rollout: &Value| (rollout["phase"] == "AwaitingPromotion").then(|| rollout.clone());
    let mut rollout = None;
    wait_with(&mut events, &mut page, |event, data, page| {
        if event == "rollout" {
            rollout = present(data).or(rollout.take());
        }
        rollout.is_some() && page.count('n') == 2 && page.count('w') == 8
    });
    let rollout = rollout.unwrap();
    assert_eq!(rollout["stage"], json!({"index": 1, "total": 2}));
    let stages = rollout["stages"].as_array().unwrap();
    assert_eq!(
        (&stages[0]["nodes"], &stages[1]["nodes"]),
        (&json!(2), &json!(8))
    );
    let possible = |verb: &str| {
        let mut actions = rollout["actions"].as_array().unwrap().iter();
        actions.find(|action| action["verb"] == verb).unwrap()["possible"].clone()
    };
    assert_eq!(
        (possible("promote"), possible("retry")),
        (true.into(), false.into())
    );
    let planned: BTreeSet<String> = fixture.rollout.nodes_with("2");
    let shown = page.nodes.iter().filter(|node| page.cell(node) == 'n');
    assert_eq!(shown.cloned().collect::<BTreeSet<_>>(), planned);

    fixture.rollout.check(&["promote", "ds/agent"], 0);
    wait_with(&mut events, &mut page, |event, data, page| {
        event == "rollout" && data["outcome"] == "complete" && page.count('n') == 10
    });
}

#[test]
fn a_page_gets_at_most_ten_updates_a_second_however_much_changes() {
    let fixture = Fixture::new(300, &[], &[]);
    let opened = Instant::now();
    let mut events = fixture.visitor.events(&format!("{AGENT}/stream"));
    let mut page = Page::default();
    wait(&mut events, &mut page, |page| page.count('n') == 300);
    fixture.rollout.apply("2");
    let (mut changes, mut begun) = (0, false);
    let mut messages: BTreeMap<String, u128> = BTreeMap::new();
    wait_with(&mut events, &mut page, |event, data, page| {
        *messages.entry(event.to_owned()).or_default() += 1;
        changes += data["cells"].as_array().map_or(0, Vec::len);
        begun |= page.count('n') < 300;
        begun && page.count('n') == 300
    });
    // A test that is slow sees fewer in a second, never more.
    let tenths = opened.elapsed().as_millis() / 100;
    for (event, count) in &messages {
        assert!(*count <= tenths + 2, "{count} {event} in {tenths} tenths");
    }
    let deltas = usize::try_from(messages["delta"]).unwrap();
    assert!(changes >= 600, "each node changes twice: {changes}");
    assert!(
        changes > 5 * deltas,
        "{changes} changes in {deltas} messages: nothing was coalesced"
    );
}

#[test]
fn nodes_come_go_and_change_their_group() {
    let fixture = Fixture::new(3, &[], &[]);
    let mut events = fixture
        .visitor
        .events(&format!("{AGENT}/stream?group=zone"));
    let mut page = Page::default();
    wait(&mut events, &mut page, |page| page.count('n') == 3);
    assert_eq!(page.group_of("sim-2"), "");
    fixture.kubectl(&["label", "node", "sim-2", "zone=b"]);
    wait(&mut events, &mut page, |page| page.group_of("sim-2") == "b");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata":
        {"name": "late", "labels": {"zone": "c"}}});
    let kubectl = &fixture.rollout.cluster.kubectl;
    kubectl
        .run_with_input(&["create", "-f", "-"], &node.to_string())
        .ok();
    wait(&mut events, &mut page, |page| page.nodes.len() == 4);
    assert_eq!(page.group_of("late"), "c");
    wait(&mut events, &mut page, |page| page.cell("late") == 'd');
    fixture.kubectl(&["delete", "node", "late"]);
    wait(&mut events, &mut page, |page| page.cell("late") == '-');
}

#[test]
fn a_daemonset_that_is_gone_is_said_to_be_and_shown_when_it_returns() {
    let fixture = Fixture::new(2, &[], &[]);
    let mut events = fixture.visitor.events(&format!("{AGENT}/stream"));
    events.wait("picture", |picture| {
        (picture["counts"]["new"] == 2).then_some(())
    });
    fixture.kubectl(&["delete", "ds", "agent"]);
    events.wait("status", |status| (status["gone"] == true).then_some(()));
    fixture.rollout.apply("7");
    events.wait("status", |status| status["gone"].is_null().then_some(()));
    let mut other = fixture.visitor.events(&format!("{AGENT}/stream"));
    other.wait("picture", |picture| {
        (picture["name"] == "agent").then_some(())
    });
}

#[test]
fn the_overview_has_every_daemonset_with_trouble_first() {
    let fixture = Fixture::new(3, &[], &[]);
    let kubectl = &fixture.rollout.cluster.kubectl;
    let mut frozen = daemon_set(json!({}), json!({}));
    frozen["metadata"]["name"] = "quiet".into();
    frozen["metadata"]["annotations"] = json!({"rollout.kennel.dev/freeze": "<b>audit</b>"});
    kubectl
        .run_with_input(&["apply", "-f", "-"], &frozen.to_string())
        .ok();
    let mut events = fixture.visitor.events("/api/overview");
    let mut rows = Vec::new();
    let mut find = |name: &str, event: &str, data: &Value, right: &dyn Fn(&Value) -> bool| {
        if event == "overview" {
            rows.clear();
        }
        let changed = data["rows"].as_array().cloned().unwrap_or_default();
        for row in changed {
            rows.retain(|known: &Value| known["name"] != row["name"]);
            rows.push(row);
        }
        rows.iter()
            .find(|row| row["name"] == name && right(row))
            .cloned()
    };
    let mut read = |name: &str, right: &dyn Fn(&Value) -> bool| loop {
        let (event, data) = events.next().expect("the stream goes on");
        if let Some(row) = find(name, &event, &data, right) {
            return row;
        }
    };
    let quiet = read("quiet", &|row| row["paused"] == "<b>audit</b>");
    let agent = read("agent", &|row| row["counts"]["new"] == 3);
    assert_eq!(
        (&agent["outcome"], &agent["desired"]),
        (&json!("complete"), &json!(3))
    );
    assert!(
        quiet["trouble"].as_u64() > agent["trouble"].as_u64(),
        "{quiet} {agent}"
    );
    fixture.kubectl(&["delete", "ds", "quiet"]);
    events.wait("change", |change| {
        let removed = change["removed"].as_array()?;
        removed
            .contains(&json!({"namespace": "default", "name": "quiet"}))
            .then_some(())
    });
}

#[test]
fn streams_say_when_the_server_is_away_and_go_on_when_it_is_back() {
    let fixture = Fixture::new(3, &[], &[]);
    let mut events = fixture.visitor.events(&format!("{AGENT}/stream"));
    events.wait("status", |status| {
        (status["connected"] == true).then_some(())
    });
    let Fixture {
        rollout,
        dashboard,
        visitor,
    } = fixture;
    let kubectl = rollout.cluster.kubectl;
    let mut away = None;
    let kennel = rollout.cluster.kennel.crash_and_come_back_after(|| {
        away = Some(events.wait("status", |status| {
            (status["connected"] == false).then(|| status["why"].clone())
        }));
    });
    assert!(away.is_some_and(|why| why.is_string()), "it says why");
    events.wait("status", |status| {
        (status["connected"] == true).then_some(())
    });
    let annotated = kubectl.run(&["annotate", "ds", "agent", "rollout.kennel.dev/pause=later"]);
    annotated.ok();
    events.wait("rollout", |rollout| {
        (rollout["paused"] == "later").then_some(())
    });
    drop((kennel, dashboard, visitor));
}

#[test]
fn kennel_up_serves_it_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(KENNEL);
    command.args([
        "up",
        "--simulate",
        "2",
        "--listen",
        "127.0.0.1:0",
        "--dashboard",
        "--data-dir",
    ]);
    let dashboard = Dashboard::of(command.arg(directory.path().join("data")));
    let visitor = dashboard.visitor();
    let mut events = visitor.events("/api/overview");
    events.wait("overview", |overview| {
        (overview["rows"] == json!([])).then_some(())
    });
    let node = kennel_testkit::eventually(kennel_testkit::Deadline::seconds(60), || {
        let answer = visitor.get("/api/nodes/sim-1");
        (answer.status == 200)
            .then(|| answer.json())
            .ok_or(answer.text())
    });
    assert_eq!(node["name"], "sim-1");
    assert_eq!(visitor.get("/api/session").json()["allowChanges"], false);
}

#[test]
fn a_playground_prints_the_address_of_one_that_may_change_things() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(KENNEL);
    command.args(["playground", "--simulate=2", "--no-tour", "--data-dir"]);
    command.arg(directory.path().join("data"));
    let dashboard = Dashboard::of(command.args(["--listen", "127.0.0.1:0"]));
    let visitor = dashboard.visitor();
    assert_eq!(visitor.get("/api/session").json()["allowChanges"], true);
    let mut events = visitor.events("/api/overview");
    events.wait("overview", |overview| {
        (overview["rows"] == json!([])).then_some(())
    });
}

#[test]
fn a_rollout_that_begins_or_ends_regroups_nodes_without_another_picture() {
    let fixture = Fixture::new(6, &[("stages", "2 manual, 100%")], &[]);
    let mut events = fixture
        .visitor
        .events(&format!("{AGENT}/stream?group=%40stage"));
    let mut page = Page::default();
    wait(&mut events, &mut page, |page| page.count('n') == 6);
    assert_eq!(page.groups, [""]);
    let members = |page: &Page, group: &str| {
        let nodes = page.nodes.iter();
        nodes.filter(|node| page.group_of(node) == group).count()
    };
    let mut pictures = 0;
    fixture.rollout.apply("2");
    wait_with(&mut events, &mut page, |event, _, page| {
        pictures += usize::from(event == "picture");
        (members(page, "1"), members(page, "2")) == (2, 4)
    });
    fixture.rollout.check(&["promote", "ds/agent"], 0);
    wait_with(&mut events, &mut page, |event, _, page| {
        pictures += usize::from(event == "picture");
        members(page, "") == 6 && page.count('n') == 6
    });
    assert_eq!(pictures, 0);
}

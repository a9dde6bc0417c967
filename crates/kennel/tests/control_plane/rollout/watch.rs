//! `kennel rollout watch`: on a terminal, and in a log.

use std::path::Path;
use std::process::{Command, Stdio};

use kennel_testkit::terminal::{Screen, Terminal};
use rustix::process::Signal;
use serde_json::json;

use super::fixture::Fixture;
use crate::why::fixture::{Fixture as Cluster, KENNEL, daemon_set};

/// The first stage is good; then version 2 crashes on the nodes of the second.
const SCENARIO: &str = "
pods:
- image: \"*:broken\"
  ready: 1h
  exits: {after: 100ms, code: 1}
";

const POLICY: [(&str, &str); 3] = [
    ("stages", "2 manual, 100%"),
    ("max-restarts", "0"),
    ("on-failure", "pause"),
];

fn watch(fixture: &Fixture, arguments: &[&str]) -> Command {
    watch_with(&fixture.cluster.kennel.kubeconfig(), arguments)
}

fn watch_with(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(KENNEL);
    command.args(["rollout", "watch", "ds/agent", "--kubeconfig"]);
    command.arg(kubeconfig);
    command
        .args(arguments)
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color");
    command
}

/// The cells of a screen: the lines before the legend that have nothing but symbols.
fn cells(screen: &Screen) -> String {
    let text = screen.text();
    let is_cell = |line: &&str| {
        let symbols = |c: char| "#~X!.o- ".contains(c);
        !line.is_empty() && line.chars().all(symbols)
    };
    let cells: String = text.lines().filter(is_cell).collect();
    let mut cells: Vec<char> = cells.chars().filter(|c| *c != ' ').collect();
    cells.sort_unstable();
    cells.into_iter().collect()
}

#[test]
fn a_terminal_shows_a_cell_for_each_node_through_stages_failures_and_sizes() {
    let fixture = Fixture::with(SCENARIO, 8, &POLICY);
    let mut terminal = Terminal::start(watch(&fixture, &["--follow"]), 80, 24);
    let all_new = |screen: &Screen| cells(screen) == "########";
    let shown = terminal.wait_for("complete", all_new);
    assert!(shown.is_alternate() && !shown.cursor);
    assert!(
        shown.text().contains("DaemonSet default/agent: complete"),
        "{}",
        shown.text()
    );

    fixture.apply("2");
    let shown = terminal.wait_for("waiting for a person", |screen| {
        screen.text().contains("waits for a person") && cells(screen) == "##......"
    });
    let text = shown.text();
    assert!(text.contains("> stage 1  2 manual"), "{text}");
    assert!(
        text.contains("# new 2") && text.contains(". waiting its turn 6"),
        "{text}"
    );
    assert!(text.contains("kennel rollout promote ds/agent"), "{text}");
    let [new, waiting] = ['#', '.'].map(|symbol| shown.colours_of(symbol));
    assert!(
        new != waiting && !new.is_empty() && !waiting.is_empty(),
        "{new:?} {waiting:?}"
    );

    // Three columns of the cells, and hardly a line beside them.
    terminal.resize(6, 11);
    let narrow = terminal.wait_for("narrow", |screen| cells(screen) == "##......");
    assert!(narrow.text().lines().all(|line| line.chars().count() <= 6));
    terminal.resize(100, 30);
    terminal.wait_for("wide again", |screen| {
        screen.text().contains("waits for a person") && cells(screen) == "##......"
    });

    fixture.apply("broken");
    let shown = terminal.wait_for("failed", |screen| {
        let text = screen.text();
        text.contains("First failures") && text.contains("exited with code 1")
    });
    assert!(cells(&shown).contains('X'), "{}", shown.text());
    terminal.wait_for("paused", |screen| {
        screen.text().contains("failed and paused")
    });
    terminal.signal(Signal::INT);
    assert_eq!(terminal.exit_code(), 1, "a rollout that has failed");
    let shown = terminal.wait_for("given back", |screen| !screen.is_alternate());
    assert!(shown.cursor, "the cursor is back");
    assert!(
        shown.text().contains("failed and paused"),
        "{}",
        shown.text()
    );
}

#[test]
fn thousands_of_nodes_share_blocks_and_have_a_rate_and_an_end() {
    const NODES: usize = 5_000;
    let cluster = Cluster::with("", &["--simulate", &NODES.to_string()]);
    let mut set = daemon_set(
        json!({}),
        json!({"containers": [{"name": "main", "image": "example.com/agent:1"}]}),
    );
    for (key, value) in [("stages", "99%, 100%"), ("stages-on-create", "true")] {
        set["metadata"]["annotations"][format!("rollout.kennel.dev/{key}")] = json!(value);
    }
    let created = cluster
        .kubectl
        .run_with_input(&["create", "-f", "-"], &set.to_string());
    created.ok();
    let command = watch_with(&cluster.kennel.kubeconfig(), &["--follow"]);
    let terminal = Terminal::start(command, 100, 30);
    // While nodes join and get their pods.
    let shown = terminal.wait_for("a rate and an end", |screen| {
        let text = screen.text();
        text.contains(" nodes/min") && text.contains("ends in about ")
    });
    assert!(shown.text().lines().count() <= 30, "{}", shown.text());
    let shown = terminal.wait_for("all nodes in blocks", |screen| {
        let text = screen.text();
        let per_block = text
            .split_once("one block is ")
            .and_then(|(_, rest)| rest.split(' ').next()?.parse::<usize>().ok());
        per_block.is_some_and(|per_block| per_block * cells(screen).len() >= NODES)
    });
    assert!(shown.text().contains("stage "), "{}", shown.text());
    terminal.signal(Signal::INT);
}

#[test]
fn a_log_gets_lines_and_the_exit_code_of_status() {
    let fixture = Fixture::with(SCENARIO, 3, &[("max-restarts", "0")]);
    let mut command = watch(&fixture, &[]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains(" complete, ") && text.contains("(3 new)"),
        "{text}"
    );
    assert!(
        !text.contains('\x1b'),
        "no control sequences in a log: {text:?}"
    );

    fixture.apply("broken");
    fixture.wait_for("phase", "Paused");
    let mut command = watch(&fixture, &["--timeout=60s"]);
    let output = command.stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains(" failed: ") && text.contains("failed and paused"),
        "{text}"
    );
}

#[test]
fn a_daemon_set_that_does_not_exist_is_an_error() {
    let fixture = Fixture::new(1, &[]);
    for verb in ["watch", "report"] {
        let shown = fixture.check(&[verb, "ds/agents"], 2);
        assert!(shown.contains("there is no DaemonSet agents"), "{shown}");
        assert!(shown.contains("did you mean agent?"), "{shown}");
    }
}

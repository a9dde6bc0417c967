//! `kennel rollout report`: of a rollout under way, and of one that is over.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::fixture::{Fixture, WATCH};
use crate::why::fixture::KENNEL;

const SCENARIO: &str = "
pods:
- image: \"*:broken\"
  ready: 1h
  exits: {after: 500ms, code: 3}
- {ready: 2s, stop: 100ms}
";

const POLICY: [(&str, &str); 3] = [
    ("stages", "1, 100%"),
    ("max-restarts", "0"),
    ("on-failure", "rollback"),
];

/// A report that has seen the state before the rollout.
pub(crate) fn record(fixture: &Fixture, file: &std::path::Path, format: &str) -> Child {
    let mut child = Command::new(KENNEL)
        .args(["--log", "info", "rollout", "report", "ds/agent", "--next"])
        .args(["--for=2m", "-o", format, "-f"])
        .arg(file)
        .arg("--kubeconfig")
        .arg(fixture.cluster.kennel.kubeconfig())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("waits for the next rollout")));
    // Keeps the pipe open until the report ends.
    std::thread::spawn(move || lines.count());
    child
}

fn json(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn letters(report: &Value, node: usize) -> String {
    let first = report["initial"].as_str().unwrap().chars().nth(node);
    let changes = report["changes"].as_array().unwrap().iter();
    let of_node = changes.filter(|change| change[1] == node);
    let letters = of_node.map(|change| change[2].as_str().unwrap());
    first
        .into_iter()
        .map(String::from)
        .chain(letters.map(str::to_owned))
        .collect()
}

#[test]
fn a_recorded_rollout_has_the_states_the_stages_and_the_durations() {
    let fixture = Fixture::with(SCENARIO, 4, &POLICY);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("report.json");
    let mut recorder = record(&fixture, &file, "json");
    fixture.apply("2");
    assert!(recorder.wait().unwrap().success());
    let report = json(&file);
    assert_eq!(report["schema"], "kennel-rollout-report/1");
    assert_eq!(report["source"], "recorded");
    assert_eq!(report["outcome"], "complete");
    assert_eq!(report["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(report["counts"]["new"], 4);
    assert_eq!(report["durations"]["nodes"], 4);
    assert!(
        report["durations"]["median"].as_u64() >= Some(1_500),
        "{report}"
    );
    for node in 0..4 {
        let letters = letters(&report, node);
        assert!(letters.ends_with('n') && letters.contains('u'), "{letters}");
    }
    let stages: Vec<&Value> = report["stages"].as_array().unwrap().iter().collect();
    assert_eq!(stages.len(), 2, "{report}");
    // The node of the first stage is the first one.
    let first = report["changes"][0][1].as_u64();
    assert_eq!(first, Some(0), "{report}");

    // Read back later: from what is left of it.
    let later = fixture.json(&["report", "ds/agent"]);
    assert_eq!(later["source"], "reconstructed");
    assert_eq!(later["counts"], report["counts"]);
    assert_eq!(later["target"], report["target"]);
    assert!(
        later["notes"][0]
            .as_str()
            .unwrap()
            .contains("reconstructed")
    );
}

#[test]
fn a_bad_release_is_reported_with_who_failed_and_why() {
    let fixture = Fixture::with(SCENARIO, 4, &POLICY);
    let directory = TempDir::new().unwrap();
    let [page, picture] = ["report.html", "report.svg"].map(|name| directory.path().join(name));
    let mut recorders = [
        record(&fixture, &page, "html"),
        record(&fixture, &picture, "svg"),
    ];
    fixture.apply("broken");
    for recorder in &mut recorders {
        assert!(recorder.wait().unwrap().success());
    }
    fixture.check(&["status", "ds/agent", WATCH], 1);
    let page = std::fs::read_to_string(page).unwrap();
    for expected in [
        "has failed and is held",
        "Who failed and why",
        "default-src 'none'",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let data = page.split("id=\"recording\">").nth(1).unwrap();
    let data: Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    assert_eq!(data["outcome"], "failed");
    let failures = data["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{failures:?}");
    // The pod is gone long since: a rollback begins with the first restart.
    let why = failures[0]["message"].as_str().unwrap();
    assert!(
        why.contains("container main does not stay up: exited with code 3"),
        "{why}"
    );
    assert!(failures[0]["until"].is_u64(), "{failures:?}");
    assert_eq!(
        letters(&data, 0).chars().last(),
        Some('o'),
        "back on stable"
    );
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(picture.contains(">held</text>"), "{picture}");
    assert!(picture.contains("exited with code 3"), "{picture}");

    let later = fixture.json(&["report", "ds/agent"]);
    assert_eq!(
        (&later["source"], &later["outcome"]),
        (&"reconstructed".into(), &"failed".into())
    );
    assert_eq!(later["notes"].as_array().unwrap().len(), 2, "{later}");
}

#[test]
fn what_fails_when_a_report_is_read_back_is_explained() {
    let policy = [("stages", "1, 100%"), ("max-restarts", "0")];
    let fixture = Fixture::with(SCENARIO, 3, &policy);
    fixture.apply("broken");
    fixture.check(&["status", "ds/agent", WATCH], 1);
    let report = fixture.json(&["report", "ds/agent"]);
    assert_eq!(report["source"], "reconstructed");
    let failures = report["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{report}");
    let why = failures[0]["message"].as_str().unwrap();
    assert!(why.contains("exited with code 3"), "{why}");
}

#[test]
fn a_recording_ends_with_its_time_although_the_rollout_goes_on() {
    let fixture = Fixture::with(SCENARIO, 3, &[("stages", "1 1h, 100%")]);
    fixture.apply("2");
    fixture.wait_for("phase", "Baking");
    let report = fixture.json(&["report", "ds/agent", "--for=2s"]);
    assert_eq!(report["source"], "recorded");
    assert_eq!(report["outcome"], "progressing");
    assert_eq!(report["counts"]["waiting"], 2, "{report}");
}

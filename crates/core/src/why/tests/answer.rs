//! The answer as a whole: counts, JSON format, missing permissions.

use serde_json::json;

use super::super::{LogError, LogSnapshot, LogSource, Verdict};
use super::fixture::{Fixture, pod, ready, with_container};

#[test]
fn it_counts_by_verdict_and_by_the_planners_rules() {
    let fixture = Fixture::new()
        .taint("x", "", "NoSchedule")
        .pod(ready("p2", "n2"));
    let answer = fixture.pod(pod("p3", "n3", json!({}))).answer();
    let counts = &answer.counts;
    assert_eq!((counts.nodes, counts.desired, counts.available), (3, 2, 1));
    assert_eq!((counts.missing, counts.excluded, counts.runs), (1, 1, 1));
    assert!(!answer.ok);
}

#[test]
fn the_json_format_is_stable() {
    let fixture = Fixture::new()
        .taint("x", "", "NoSchedule")
        .pod(ready("p2", "n2"));
    let answer = serde_json::to_value(fixture.pod(ready("p3", "n3")).answer()).unwrap();
    assert_eq!(answer["schema"], "kennel-why/1");
    assert_eq!(answer["ok"], true);
    let first = json!({"node": "n1", "verdict": "excluded", "cause": "taint",
        "message": "taint x:NoSchedule is not tolerated",
        "remedy": "# add to spec.template.spec:\ntolerations:\n- key: x\n  operator: Exists\n  effect: NoSchedule",
        "checks": [{"rule": "taint x:NoSchedule", "holds": false, "found": "not tolerated"}]});
    assert_eq!(answer["nodes"][0], first);
    let second = json!({"node": "n2", "verdict": "runs", "cause": "up-to-date", "message": "runs",
        "pod": "p2", "pods": [{"name": "p2", "phase": "Running", "ready": true, "available": true,
            "updated": true, "terminating": false, "created": "1970-01-12T13:44:40Z",
            "containers": [{"name": "main", "init": false, "state": "running", "ready": true,
                            "restarts": 0}]}]});
    assert_eq!(answer["nodes"][1], second);
}

#[test]
fn nodes_are_in_the_natural_order_of_their_names() {
    let mut fixture = Fixture::new();
    let mut more = fixture.0.nodes[0].clone();
    more.view.name = "n10".into();
    fixture.0.nodes.insert(0, more);
    let names: Vec<String> = fixture.answer().nodes.into_iter().map(|n| n.node).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n10"]);
}

#[test]
fn the_last_log_lines_of_a_crash_are_part_of_the_answer() {
    let crash = json!({"restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 3}}});
    let mut fixture = Fixture::new().pod(with_container(crash));
    let log = |fixture: &Fixture| serde_json::to_value(fixture.on("n1").log).unwrap();
    let source = json!({"pod": "p1", "container": "main", "previous": true});
    assert_eq!(log(&fixture), source, "it was not read");
    let read = |lines| LogSnapshot {
        source: LogSource {
            pod: "p1".to_owned(),
            container: "main".to_owned(),
            previous: true,
        },
        lines,
    };
    fixture.0.logs = vec![read(Ok(vec!["no licence".to_owned()]))];
    assert_eq!(log(&fixture)["lines"], json!(["no licence"]));
    fixture.0.logs = vec![read(Err(LogError::Api("forbidden".to_owned())))];
    assert_eq!(log(&fixture)["error"], "forbidden");
    assert!(log(&fixture).get("lines").is_none());
}

#[test]
fn without_permission_to_list_nodes_those_with_pods_are_answered() {
    let mut fixture = Fixture::new().pod(ready("p1", "n1"));
    fixture.0.nodes.clear();
    fixture.0.nodes_known = false;
    fixture.0.unreadable = vec!["you may not list nodes".to_owned()];
    let answer = fixture.answer();
    assert_eq!(answer.nodes.len(), 1);
    assert_eq!(answer.nodes[0].verdict, Verdict::Runs);
    assert_eq!(answer.notes[0].code, "not-readable");
}

#[test]
fn a_cluster_without_nodes_is_ok() {
    let mut fixture = Fixture::new();
    fixture.0.nodes.clear();
    assert!(fixture.answer().ok);
}

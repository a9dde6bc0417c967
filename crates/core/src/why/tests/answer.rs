//! The answer as a whole: counts, JSON format, missing permissions.

use serde_json::json;

use super::super::Verdict;
use super::fixture::{Fixture, pod, ready};

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

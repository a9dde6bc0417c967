//! Which writes are requested: only for what changed, and to repair what other clients changed.

use std::time::Duration;

use kennel_types::{Identity, Monotonic, Timestamp};
use serde_json::{Value, json};

use super::super::*;
use super::fixture::{Fixture, verbs};
use super::{named_service, pod, service};
use crate::tree::list;

#[test]
fn slices_have_a_limit_and_only_changes_are_written() {
    let mut fixture = Fixture::new(Limits {
        slice: 10,
        endpoints: 1000,
    });
    fixture
        .tracker
        .service(Monotonic::START, service(&json!({"ports": [{"port": 80}]})));
    for number in 1..=25 {
        fixture.pod(pod(number));
    }
    let writes = fixture.converge();
    assert_eq!(fixture.sizes(), [10, 10, 5]);
    assert_eq!(
        writes.len(),
        4,
        "each is written once: {:?}",
        verbs(&writes)
    );
    fixture.pod(PodFacts {
        ready: false,
        ..pod(13)
    });
    assert_eq!(
        verbs(&fixture.converge()),
        ["update slice", "update endpoints"]
    );
    fixture.tracker.pod_gone(fixture.now, "u013");
    fixture.pod(pod(26)).pod(pod(27));
    let writes = fixture.converge();
    assert_eq!(fixture.sizes().iter().sum::<usize>(), 26);
    assert!(writes.len() <= 3, "{:?}", verbs(&writes));
    // Labels and unread fields of a pod change nothing.
    let mut relabelled = pod(1);
    relabelled.labels = std::sync::Arc::new(
        [("app", "web"), ("rev", "2")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    );
    fixture.pod(relabelled);
    assert_eq!(fixture.converge(), []);
}

#[test]
fn changes_by_other_clients_are_repaired() {
    let mut fixture = Fixture::of(service(&json!({"ports": [{"port": 80}]})), [pod(1), pod(2)]);
    let right = fixture.slice().clone();
    let corrupt: [fn(&mut Value); 7] = [
        |slice| slice["endpoints"] = json!([]),
        |slice| slice["endpoints"][0]["addresses"] = json!(["192.0.2.1"]),
        |slice| slice["endpoints"][0]["hints"] = json!({"forZones": [{"name": "z"}]}),
        |slice| slice["endpoints"][0]["hints"] = json!({"forNodes": [{"name": "n2"}]}),
        |slice| slice["ports"] = json!([{"name": "x", "port": 1, "protocol": "UDP"}]),
        |slice| slice["metadata"]["labels"]["extra"] = json!("x"),
        |slice| slice["metadata"]["ownerReferences"] = json!([]),
    ];
    for corrupt in corrupt {
        let mut slice = fixture.slice().clone();
        corrupt(&mut slice);
        fixture.fake_api.put(true, slice);
        fixture.converge();
        for part in ["endpoints", "ports"] {
            assert_eq!(fixture.slice()[part], right[part]);
        }
        for part in ["labels", "ownerReferences"] {
            assert_eq!(fixture.slice()["metadata"][part], right["metadata"][part]);
        }
    }
    let name = fixture.slice()["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture.fake_api.delete(true, &name);
    fixture.converge();
    assert_eq!(fixture.slice()["endpoints"], right["endpoints"]);
    // A slice without our label is replaced.
    let mut slice = fixture.slice().clone();
    slice["metadata"]["labels"] = json!({});
    fixture.fake_api.put(true, slice);
    fixture.converge();
    assert_eq!(fixture.fake_api.slices().len(), 2);
    let mut endpoints = fixture.endpoints().clone();
    endpoints["subsets"] = json!([]);
    fixture.fake_api.put(false, endpoints);
    assert_eq!(verbs(&fixture.converge()), ["update endpoints"]);
    fixture.fake_api.delete(false, "web");
    assert_eq!(verbs(&fixture.converge()), ["create endpoints"]);
}

#[test]
fn annotations_of_other_clients_stay() {
    let mut fixture = Fixture::of(service(&json!({"ports": [{"port": 80}]})), [pod(1)]);
    let mut slice = fixture.slice().clone();
    slice["metadata"]["annotations"] = json!({"note": "mine"});
    fixture.fake_api.put(true, slice);
    fixture.pod(PodFacts {
        ready: false,
        ready_changed: Some(Timestamp::from_secs(500)),
        ..pod(1)
    });
    fixture.converge();
    let trigger = "endpoints.kubernetes.io/last-change-trigger-time";
    let expected = json!({"note": "mine", trigger: "1970-01-01T00:08:20Z"});
    assert_eq!(fixture.slice()["metadata"]["annotations"], expected);
}

#[test]
fn a_new_selector_removes_pods_and_a_deleted_service_its_objects() {
    let spec = json!({"ports": [{"port": 80}]});
    let mut fixture = Fixture::of(service(&spec), [pod(1)]);
    let other = json!({"selector": {"app": "other"}, "ports": [{"port": 80}]});
    fixture.tracker.service(fixture.now, service(&other));
    fixture.converge();
    assert_eq!(fixture.slice()["endpoints"], json!([]));
    let mut moved = pod(2);
    moved.labels = std::sync::Arc::new([("app".to_owned(), "other".to_owned())].into());
    fixture.pod(moved);
    fixture.converge();
    assert_eq!(fixture.slice()["endpoints"][0]["targetRef"]["name"], "p002");
    // A second service is independent.
    fixture
        .tracker
        .service(fixture.now, named_service("second", &spec));
    fixture.converge();
    assert_eq!(
        (
            fixture.fake_api.slices().len(),
            fixture.fake_api.endpoints().len()
        ),
        (2, 2)
    );
    let web = |uid: &str| Identity::new("ns", "web", uid);
    fixture
        .tracker
        .service_gone(fixture.now, &web("another uid"));
    assert_eq!(fixture.converge(), []);
    fixture.tracker.service_gone(fixture.now, &web("uid-web"));
    assert_eq!(
        verbs(&fixture.converge()),
        ["delete slice", "delete endpoints"]
    );
    assert_eq!(
        fixture.slice()["metadata"]["labels"]["kubernetes.io/service-name"],
        "second"
    );
}

/// In whatever order the writes of one sync are executed, no endpoint is missing in between.
#[test]
fn pods_that_move_between_slices_are_always_in_one() {
    let mut fixture = Fixture::new(Limits {
        slice: 2,
        endpoints: 1000,
    });
    let spec = |port: u16| service(&json!({"ports": [{"port": 80, "targetPort": port}]}));
    fixture.tracker.service(Monotonic::START, spec(80));
    for number in 1..=5 {
        fixture.pod(pod(number));
    }
    fixture.converge();
    fixture.tracker.service(fixture.now, spec(81));
    let mut deletions = 0;
    while let Some(due) = fixture.tracker.next_deadline() {
        fixture.now = due.max(fixture.now);
        let mut writes = fixture
            .fake_api
            .writes_due(fixture.now, &mut fixture.tracker);
        writes.sort_by_key(|write| !write.operation.is_deletion());
        for write in writes {
            deletions += usize::from(write.operation.is_deletion());
            let outcome = fixture.fake_api.execute(&write);
            fixture
                .tracker
                .write_finished(fixture.now, &write, &outcome);
            let slices = fixture.fake_api.slices();
            let listed = slices.iter().flat_map(|slice| list(slice, "endpoints"));
            let pods: std::collections::BTreeSet<&str> = listed
                .filter_map(|endpoint| endpoint["targetRef"]["name"].as_str())
                .collect();
            assert_eq!(pods.len(), 5, "after {:?}", verbs(&[write]));
        }
        fixture
            .fake_api
            .deliver(fixture.now, &mut fixture.tracker, usize::MAX);
    }
    assert_eq!(deletions, 3);
    assert_eq!(fixture.sizes(), [2, 2, 1]);
}

/// No slice is deleted before its replacement is written.
#[test]
fn old_slices_stay_until_the_new_ones_are_written() {
    let spec = |port: u16| service(&json!({"ports": [{"port": 80, "targetPort": port}]}));
    let mut fixture = Fixture::of(spec(80), [pod(1)]);
    fixture.tracker.service(fixture.now, spec(81));
    for _ in 0..5 {
        fixture.now = fixture.tracker.next_deadline().unwrap();
        for write in fixture
            .fake_api
            .writes_due(fixture.now, &mut fixture.tracker)
        {
            assert!(!write.operation.is_deletion(), "{write:?}");
            fixture
                .tracker
                .write_finished(fixture.now, &write, &Outcome::Failed);
        }
    }
    fixture.converge();
    assert_eq!(fixture.slice()["ports"][0]["port"], 81);
}

#[test]
fn many_changes_are_batched_into_a_few_writes() {
    let mut fixture = Fixture::of(service(&json!({"ports": [{"port": 80}]})), []);
    let begin = fixture.now;
    let mut writes = Vec::new();
    for number in 1..=200_u8 {
        fixture.now = begin + Duration::from_millis(u64::from(number) * 15);
        fixture.tracker.pod(fixture.now, pod(number));
        if fixture
            .tracker
            .next_deadline()
            .is_some_and(|due| due <= fixture.now)
        {
            for write in fixture
                .fake_api
                .writes_due(fixture.now, &mut fixture.tracker)
            {
                let outcome = fixture.fake_api.execute(&write);
                fixture
                    .tracker
                    .write_finished(fixture.now, &write, &outcome);
                writes.push(write);
            }
        }
    }
    writes.extend(fixture.converge());
    assert_eq!(fixture.sizes().iter().sum::<usize>(), 200);
    let of_endpoints = verbs(&writes)
        .iter()
        .filter(|v| v.ends_with("endpoints"))
        .count();
    assert!(of_endpoints <= 5, "{of_endpoints} in three seconds");
    assert!(writes.len() <= 14, "{:?}", verbs(&writes));
}

#[test]
fn a_terminating_namespace_is_not_retried() {
    let mut fixture = Fixture::new(Limits::default());
    fixture
        .tracker
        .service(Monotonic::START, service(&json!({"ports": [{"port": 80}]})));
    let due = fixture.tracker.next_deadline().unwrap();
    for write in fixture.fake_api.writes_due(due, &mut fixture.tracker) {
        fixture
            .tracker
            .write_finished(due, &write, &Outcome::NamespaceTerminating);
    }
    assert_eq!(fixture.tracker.next_deadline(), None);
    // If it stays after all, the next change writes everything.
    fixture.pod(pod(1));
    fixture.converge();
    assert_eq!(fixture.sizes(), [1]);
}

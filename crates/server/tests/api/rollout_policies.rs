//! Rollout policies on DaemonSets and Namespaces: what cannot be read is refused with a field error (R1.2).

use serde_json::{Value, json};

use crate::fixture::{
    Answer, DAEMONSETS, JSON_PATCH, MERGE, NAMESPACES, STRATEGIC, TestServer, daemonset,
};

const PREFIX: &str = "rollout.kennel.dev/";

/// A value of each key that cannot be read, and what the error says is allowed.
const REFUSED: [(&str, &str, &str); 15] = [
    ("stages", "0%", "must be stages separated by commas"),
    ("stages", "", "must be stages separated by commas"),
    ("spread", "two words", "must be the key of a node label"),
    (
        "healthy-deadline",
        "ten minutes",
        "must be a duration longer than 0s",
    ),
    (
        "progress-deadline",
        "0s",
        "must be a duration longer than 0s",
    ),
    ("blame-window", "1d", "must be a duration longer than 0s"),
    ("max-failures", "101%", "a percentage from 0% to 100%"),
    ("max-restarts", "-1", "must be a count such as 0 or 5"),
    ("on-failure", "revert", "must be \"pause\" or \"rollback\""),
    ("down-nodes", "wait", "must be \"skip\" or \"count\""),
    ("stages-on-create", "yes", "must be \"true\" or \"false\""),
    ("pin-config", "", "must be \"true\" or \"false\""),
    ("check", "prometheus up", "must be \"prometheus EXPRESSION"),
    ("policy", "all", "must be \"none\", or absent"),
    (
        "max-failure",
        "1",
        "the key is unknown; the keys of a policy are blame-window",
    ),
];

fn with(mut object: Value, annotations: &[(&str, &str)]) -> Value {
    for (key, value) in annotations {
        object["metadata"]["annotations"][format!("{PREFIX}{key}")] = json!(value);
    }
    object
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Expects 422 with exactly one cause, which names the key, the value and what is allowed.
#[track_caller]
fn refuses(answer: &Answer, key: &str, value: &str, allowed: &str) {
    let status = answer.fails(422, "Invalid");
    let causes = status["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{status}");
    let cause = &causes[0];
    assert_eq!(cause["reason"], "FieldValueInvalid", "{status}");
    let field = format!("metadata.annotations[{PREFIX}{key}]");
    assert_eq!(cause["field"], field, "{status}");
    let message = cause["message"].as_str().unwrap();
    let shown = format!("Invalid value: {}: ", json!(value));
    assert!(message.starts_with(&shown), "{message}");
    assert!(message.contains(allowed), "{message}");
    let whole = status["message"].as_str().unwrap();
    assert!(whole.contains(&field) && whole.contains(message), "{whole}");
}

#[tokio::test]
async fn r1_2_an_invalid_policy_is_refused_on_daemon_sets_and_namespaces() {
    let server = TestServer::new().await;
    for (key, value, allowed) in REFUSED {
        for (path, object) in [
            (DAEMONSETS, daemonset("bad")),
            (NAMESPACES, namespace("bad")),
        ] {
            let answer = server.post(path, &with(object, &[(key, value)])).await;
            refuses(&answer, key, value, allowed);
        }
    }
    server.get(&format!("{DAEMONSETS}/bad")).await.is(404);
}

#[tokio::test]
async fn r1_2_every_write_that_brings_an_invalid_policy_is_refused() {
    let server = TestServer::new().await;
    let good = [("stages", "10% 5m, 50% manual"), ("on-failure", "rollback")];
    let made = server
        .post(DAEMONSETS, &with(daemonset("a"), &good))
        .await
        .is(201);
    server.post(NAMESPACES, &namespace("a")).await.is(201);
    let (key, value, allowed) = ("on-failure", "give up", "must be \"pause\" or \"rollback\"");
    let annotation = format!("{PREFIX}{key}");
    let merge = json!({"metadata": {"annotations": {&annotation: value}}});
    for path in [format!("{DAEMONSETS}/a"), format!("{NAMESPACES}/a")] {
        let object = server.get(&path).await.ok();
        let bad = with(object, &[(key, value)]);
        for path in [
            path.clone(),
            format!("{path}/status"),
            format!("{path}?dryRun=All"),
        ] {
            refuses(&server.put(&path, &bad).await, key, value, allowed);
            for kind in [MERGE, STRATEGIC] {
                let answer = server.patch(kind, &path, &merge).await;
                refuses(&answer, key, value, allowed);
            }
        }
    }
    let pointer = format!("/metadata/annotations/{}", annotation.replace('/', "~1"));
    let replace = json!([{"op": "replace", "path": pointer, "value": value}]);
    let path = format!("{DAEMONSETS}/a");
    let answer = server.patch(JSON_PATCH, &path, &replace).await;
    refuses(&answer, key, value, allowed);
    assert_eq!(server.get(&path).await.ok(), made);
}

#[tokio::test]
async fn r1_3_a_policy_can_be_changed_and_removed_and_is_not_part_of_the_template() {
    let server = TestServer::new().await;
    let made = with(daemonset("a"), &[("stages", "10%")]);
    let made = server.post(DAEMONSETS, &made).await.is(201);
    let path = format!("{DAEMONSETS}/a");
    for (key, value) in [
        ("stages", json!("nodes(pool in (a, b)) 15m, 100%")),
        ("stages", Value::Null),
        ("policy", json!("none")),
    ] {
        let merge = json!({"metadata": {"annotations": {format!("{PREFIX}{key}"): value}}});
        let changed = server.patch(MERGE, &path, &merge).await.ok();
        assert_eq!(
            changed["metadata"]["generation"], made["metadata"]["generation"],
            "{changed}"
        );
    }
}

#[tokio::test]
async fn r6_1_commands_are_never_refused() {
    let server = TestServer::new().await;
    let commands = [
        ("abort", ""),
        ("freeze", "the building burns"),
        ("pause", "night"),
        ("promote", "not a hash"),
        ("retry", "5d8b/often"),
    ];
    let made = with(daemonset("a"), &commands);
    server.post(DAEMONSETS, &made).await.is(201);
}

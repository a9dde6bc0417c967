//! Each write against an API that answers from a script, and the requests that it sends.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kennel_client::fence::Fence;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use kennel_core::daemonset::event::Outcome;
use kennel_core::rollout::config::{ConfigCopy, content_hash};
use kennel_core::rollout::state::{Record, Verdict};
use kennel_core::rollout::{STATE, VERDICT};

use super::*;

/// A response; none is a connection that breaks.
type Scripted = Option<(u16, Value)>;
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

fn api(script: Vec<Scripted>) -> (Writer, Sent) {
    let sent = Sent::default();
    let log = sent.clone();
    let mut script = script.into_iter();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (log, next) = (
            log.clone(),
            script.next().expect("more requests than answers"),
        );
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let what = format!("{} {}", head.method, head.uri);
            log.lock().unwrap().push((what, body));
            let (code, body) = next.ok_or("the connection broke")?;
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, &str>(Response::builder().status(code).body(body).unwrap())
        }
    });
    (
        Writer::new(Client::new(service, "default"), Fence::open()),
        sent,
    )
}

fn set() -> Identity {
    Identity {
        namespace: "ns".into(),
        name: "d".into(),
        uid: "du".into(),
    }
}

fn object() -> Object {
    Object {
        name: "p".into(),
        uid: "pu".into(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands in lists of answers")]
fn taken() -> Scripted {
    Some((409, json!({"reason": "AlreadyExists", "message": "taken"})))
}

/// How a write ends, and the requests that it sent.
async fn done(write: Write, script: Vec<Scripted>) -> (String, Vec<(String, Value)>) {
    let answers = script.len();
    let (writer, sent) = api(script);
    let performed = perform(&writer, &PendingNames::default(), &set(), write).await;
    let sent = sent.lock().unwrap().clone();
    assert_eq!(sent.len(), answers, "{sent:?}");
    let word = match performed.map_err(|failed| failed.failure) {
        Ok(Answer::Revision(revision)) => format!("revision {}", revision.revision),
        Ok(Answer::Pod { name }) => {
            assert_eq!(sent.last().unwrap().1["metadata"]["name"], *name);
            "pod".to_owned()
        }
        Ok(_) => "done".to_owned(),
        Err(failure) => format!("{:?}", failure.kind),
    };
    (word, sent)
}

/// The body of the request that creates a pod of this name.
fn body(name: &str) -> String {
    json!({"metadata": {"generateName": "d-", "name": name}}).to_string()
}

async fn created(script: Vec<Scripted>) -> (String, Vec<String>) {
    let (writer, sent) = api(script);
    let names = PendingNames::default();
    let word = match pods::create(&writer, &names, &set(), body).await {
        Ok(_) => "pod".to_owned(),
        Err(failed) => format!("{:?}", failed.failure.kind),
    };
    let sent = sent.lock().unwrap();
    let names = sent
        .iter()
        .map(|(_, body)| body["metadata"]["name"].to_string());
    (word, names.collect())
}

fn all_equal(names: &[String]) -> bool {
    names.windows(2).all(|pair| pair[0] == pair[1])
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_response_got_lost_is_repeated_with_the_same_name() {
    let (word, names) = created(vec![None, None, taken()]).await;
    assert_eq!((word.as_str(), names.len()), ("pod", 3));
    assert!(all_equal(&names), "{names:?}");
    let (word, names) = created(vec![Some((500, json!({}))), taken()]).await;
    assert_eq!((word.as_str(), all_equal(&names)), ("pod", true));
    let (word, _) = created(vec![None, Some((201, json!({})))]).await;
    assert_eq!(word, "pod");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_watch_delivered_is_not_created_again() {
    let (writer, sent) = api(vec![None]);
    let names = PendingNames::default();
    let watching = async {
        tokio::task::yield_now().await;
        let sent = sent.lock().unwrap();
        let name = sent[0].1["metadata"]["name"].as_str().unwrap();
        names.observed(&"ns".into(), &name.into());
    };
    let set = set();
    let creating = pods::create(&writer, &names, &set, body);
    let watching = async {
        while sent.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        watching.await;
    };
    let (result, ()) = tokio::join!(creating, watching);
    assert!(matches!(result, Ok(Answer::Pod { .. })));
    assert_eq!(sent.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_replaced_by_another() {
    let (word, names) = created(vec![taken(), Some((201, json!({})))]).await;
    assert_eq!((word.as_str(), names.len()), ("pod", 2));
    assert_ne!(names[0], names[1]);
}

#[tokio::test(start_paused = true)]
async fn definite_failures_are_reported_at_once_and_indefinite_ones_as_unknown() {
    let (word, names) = created(vec![Some((403, json!({"message": "quota"})))]).await;
    assert_eq!((word.as_str(), names.len()), ("Refused", 1));
    let again_and_again = std::iter::repeat_n(Some((500, json!({}))), 5).collect();
    assert_eq!(created(again_and_again).await.0, "Refused");
    let then_refused = vec![None, Some((403, json!({"message": "quota"})))];
    assert_eq!(created(then_refused).await.0, "Unknown");
    let never = std::iter::repeat_n(None, 5).collect();
    assert_eq!(created(never).await.0, "Unknown");
}

#[tokio::test]
async fn s3_7_5_a_terminating_namespace_is_told_apart() {
    let body = json!({"reason": "Forbidden", "details": {"causes":
        [{"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}]}});
    let (word, _) = created(vec![Some((403, body))]).await;
    assert_eq!(word, "NamespaceTerminating");
}

#[tokio::test]
async fn s3_7_6_and_8_a_pod_is_deleted_by_uid_and_one_that_is_gone_is_not_found() {
    let (word, sent) = done(Write::DeletePod(object()), vec![Some((200, json!({})))]).await;
    assert_eq!(word, "done");
    assert_eq!(sent[0].0, "DELETE /api/v1/namespaces/ns/pods/p");
    assert_eq!(sent[0].1["preconditions"], json!({"uid": "pu"}));
    assert_eq!(sent[0].1.get("gracePeriodSeconds"), None);
    for (code, pod, revision) in [(404, "NotFound", "done"), (409, "Refused", "Refused")] {
        let script = || vec![Some((code, json!({})))];
        assert_eq!(done(Write::DeletePod(object()), script()).await.0, pod);
        assert_eq!(
            done(Write::DeleteRevision(object()), script()).await.0,
            revision
        );
    }
    let script = vec![Some((403, json!({})))];
    assert_eq!(done(Write::DeletePod(object()), script).await.0, "Refused");
}

#[tokio::test]
async fn s3_2_5_adoption_looks_at_the_live_daemon_set_first() {
    let alive = || Some((200, json!({"metadata": {"uid": "du"}})));
    let (word, sent) = done(
        Write::AdoptPod(object()),
        vec![alive(), Some((200, json!({})))],
    )
    .await;
    assert_eq!(word, "done");
    assert_eq!(sent[0].0, "GET /apis/apps/v1/namespaces/ns/daemonsets/d");
    assert_eq!(sent[1].0, "PATCH /api/v1/namespaces/ns/pods/p");
    assert_eq!(
        sent[1].1,
        json!({"metadata": {"uid": "pu", "ownerReferences": [{"apiVersion": "apps/v1",
            "kind": "DaemonSet", "name": "d", "uid": "du", "controller": true,
            "blockOwnerDeletion": true}]}})
    );
    let other = vec![Some((200, json!({"metadata": {"uid": "another"}})))];
    assert_eq!(done(Write::AdoptPod(object()), other).await.0, "Refused");
    let deleted = json!({"metadata": {"uid": "du", "deletionTimestamp": "2026-01-02T03:04:05Z"}});
    let going = vec![Some((200, deleted))];
    assert_eq!(
        done(Write::AdoptRevision(object()), going).await.0,
        "Refused"
    );
    let pod_gone = vec![alive(), Some((404, json!({})))];
    assert_eq!(done(Write::AdoptPod(object()), pod_gone).await.0, "done");
}

#[tokio::test]
async fn s3_2_3_release_removes_the_owner_and_what_is_gone_is_released() {
    let (word, sent) = done(Write::ReleasePod(object()), vec![Some((200, json!({})))]).await;
    assert_eq!(word, "done");
    assert_eq!(
        sent[0].1,
        json!({"metadata": {"uid": "pu", "ownerReferences": [{"$patch": "delete", "uid": "du"}]}})
    );
    for (code, expected) in [(404, "done"), (422, "done"), (409, "Refused")] {
        let script = vec![Some((code, json!({})))];
        assert_eq!(done(Write::ReleasePod(object()), script).await.0, expected);
    }
}

fn revision(data: &Value, number: i64) -> Value {
    json!({"metadata": {"name": "d-x", "uid": "ru"}, "data": data, "revision": number})
}

#[tokio::test]
async fn s4_6_2_a_taken_name_is_the_revision_if_it_keeps_the_same() {
    let write = || Write::CreateRevision {
        name: "d-x".into(),
        data: r#"{"a":1}"#.into(),
        body: r#"{"data":{"a":1}}"#.into(),
    };
    let made = vec![Some((201, revision(&json!({"a": 1}), 1)))];
    assert_eq!(done(write(), made).await.0, "revision 1");
    let same = vec![taken(), Some((200, revision(&json!({"a": 1}), 4)))];
    assert_eq!(done(write(), same).await.0, "revision 4");
    let other = vec![taken(), Some((200, revision(&json!({"b": 1}), 4)))];
    assert_eq!(done(write(), other).await.0, "NameTaken");
}

#[tokio::test]
async fn s4_4_renumbering_leaves_the_data_alone() {
    let write = Write::RenumberRevision {
        revision: object(),
        number: 3,
    };
    let script = vec![Some((200, revision(&json!({"a": 1}), 3)))];
    let (word, sent) = done(write, script).await;
    assert_eq!(word, "revision 3");
    assert_eq!(sent[0].1, json!({"metadata": {"uid": "pu"}, "revision": 3}));
}

#[tokio::test]
async fn s4_6_2_a_collision_is_counted_once() {
    let live = |count: Value| {
        let status = json!({"collisionCount": count, "numberReady": 2});
        Some((200, json!({"metadata": {"uid": "du"}, "status": status})))
    };
    let write = |known| Write::CountCollision { known };
    let script = vec![live(Value::Null), Some((200, json!({})))];
    let (word, sent) = done(write(None), script).await;
    assert_eq!(word, "done");
    assert_eq!(
        sent[1].0,
        "PUT /apis/apps/v1/namespaces/ns/daemonsets/d/status"
    );
    assert_eq!(
        sent[1].1["status"],
        json!({"collisionCount": 1, "numberReady": 2})
    );
    assert_eq!(done(write(None), vec![live(json!(1))]).await.0, "Refused");
}

async fn status(script: Vec<Scripted>) -> (Outcome, Vec<(String, Value)>) {
    let (writer, sent) = api(script);
    let seen = json!({"metadata": {"name": "d", "namespace": "ns", "uid": "du",
        "resourceVersion": "5"}, "spec": {"x": 1}, "status": {"conditions": []}});
    let seen = serde_json::from_value(seen).unwrap();
    let status = Status {
        counters: Some(kennel_core::daemonset::Counters::default()),
        conditions: Some(std::sync::Arc::default()),
        now: kennel_types::Timestamp::EPOCH,
    };
    let performed = write_status(&writer, &set(), &seen, &status).await;
    let sent = sent.lock().unwrap().clone();
    (performed.map_err(|failed| failed.failure), sent)
}

#[tokio::test]
async fn r11_what_is_another_controllers_stays_in_the_status() {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let observed = json!({"numberReady": 3, "observedGeneration": 4,
                          "conditions": [condition("Stalled", "True")]});
    let seen = json!({"metadata": {"name": "d", "namespace": "ns", "uid": "du",
        "resourceVersion": "5"}, "status": observed});
    let seen = serde_json::from_value(seen).unwrap();
    let written = Some((200, json!({"metadata": {"resourceVersion": "8"}})));
    let (writer, sent) = api(vec![written]);
    let status = Status {
        counters: None,
        conditions: None,
        now: kennel_types::Timestamp::EPOCH,
    };
    let answer = write_status(&writer, &set(), &seen, &status).await;
    assert_eq!(sent.lock().unwrap()[0].1["status"], observed);
    let Ok(Answer::Status {
        counters,
        conditions,
        ..
    }) = answer.map_err(|failed| failed.failure)
    else {
        panic!("the status was written");
    };
    assert_eq!((counters.ready, counters.observed_generation), (3, 4));
    assert!(conditions["Stalled"].status);
}

#[tokio::test]
async fn s6_2_4_a_status_is_tried_once_more_on_the_live_object() {
    let written = || Some((200, json!({"metadata": {"resourceVersion": "8"}})));
    let (outcome, sent) = status(vec![written()]).await;
    assert!(matches!(outcome, Ok(Answer::Status { version: 8, .. })));
    assert_eq!(sent[0].1["metadata"]["resourceVersion"], "5");
    assert_eq!(sent[0].1["spec"], json!({"x": 1}));
    let live = || {
        Some((
            200,
            json!({"metadata": {"uid": "du", "resourceVersion": "7"}}),
        ))
    };
    let conflict = || Some((409, json!({"reason": "Conflict"})));
    let (outcome, sent) = status(vec![conflict(), live(), written()]).await;
    assert!(matches!(outcome, Ok(Answer::Status { version: 8, .. })));
    assert_eq!(sent[2].1["metadata"]["resourceVersion"], "7");
    let (outcome, _) = status(vec![conflict(), live(), conflict()]).await;
    assert!(outcome.is_err());
    let (outcome, _) = status(vec![conflict(), Some((404, json!({})))]).await;
    assert_eq!(outcome, Ok(Answer::Nothing));
}

fn record(verdict: impl Into<Option<Verdict>>, attempt: u64) -> Write {
    let state = json!({"owner": "du", "attempt": attempt, "stage": 1, "cut": "node-1", "phase": "Held",
        "since": "2026-01-02T03:04:05Z", "reason": {"code": "Aborted", "message": "by hand"}});
    let annotations = [(STATE.to_owned(), state.to_string())].into();
    let record = Record {
        verdict: verdict.into(),
        ..Record::parse(&annotations)
    };
    assert!(record.state.is_some());
    Write::WriteRecord {
        revision: object(),
        version: "7".into(),
        record: Box::new(record),
    }
}

/// The cause that is written with a record, where the revision has this one.
async fn cause(write: Write, stored: Value) -> Value {
    let stored = json!({"metadata": {"annotations": {"kubernetes.io/change-cause": stored}}});
    let written = json!({"metadata": {"name": "p", "uid": "pu"}, "revision": 1});
    let script = vec![Some((200, stored)), Some((200, written))];
    let (word, sent) = done(write, script).await;
    assert_eq!(word, "revision 1");
    let annotations = &sent[1].1["metadata"]["annotations"];
    assert_eq!(sent[1].1["metadata"]["resourceVersion"], "7");
    let cause = annotations.get("kubernetes.io/change-cause");
    cause.cloned().unwrap_or(json!("untouched"))
}

#[tokio::test]
async fn r9_2_a_failed_revision_gets_a_cause_unless_a_person_gave_one() {
    let failed = || record(Verdict::Failed, 1);
    assert_eq!(
        cause(failed(), Value::Null).await,
        "rollout failed: by hand"
    );
    assert_eq!(cause(failed(), json!("a new image")).await, "untouched");
    let retried = || record(Verdict::Progressing, 2);
    assert_eq!(
        cause(retried(), json!("rollout failed: x")).await,
        Value::Null
    );
    assert_eq!(cause(retried(), json!("a new image")).await, "untouched");
    let written = json!({"metadata": {"name": "p", "uid": "pu"}, "revision": 1});
    let (_, sent) = done(record(Verdict::Stable, 1), vec![Some((200, written))]).await;
    assert_eq!(sent.len(), 1);
}

#[tokio::test]
async fn r5_6_a_released_revision_loses_its_verdict_and_the_cause() {
    let cause = cause(record(None::<Verdict>, 1), json!("rollout failed: by hand")).await;
    assert_eq!(cause, Value::Null);
    let written = || {
        Some((
            200,
            json!({"metadata": {"name": "p", "uid": "pu"}, "revision": 1}),
        ))
    };
    let (_, sent) = done(record(None::<Verdict>, 1), vec![written(), written()]).await;
    let annotations = &sent[1].1["metadata"]["annotations"];
    assert_eq!(annotations.get(VERDICT), Some(&Value::Null), "{sent:?}");
}

fn copy() -> ConfigCopy {
    ConfigCopy {
        name: "agent-1234".into(),
        source: "agent".into(),
        hash: content_hash(&json!({"data": {"a": "1"}})).into(),
        config_map: "agent".into(),
        config: "h".into(),
        revision: object(),
        revision_hash: "rev".into(),
    }
}

fn config_map(name: &str, content: &str, owner: &str) -> Value {
    let owners = json!([{"apiVersion": "apps/v1", "kind": "ControllerRevision", "name": "p",
        "uid": owner, "controller": true}]);
    json!({"metadata": {"name": name, "namespace": "ns", "ownerReferences": owners},
        "data": {"a": content}, "binaryData": {}})
}

async fn copied(script: Vec<Scripted>) -> (String, Vec<(String, Value)>) {
    done(Write::CopyConfig(Arc::new(copy())), script).await
}

#[tokio::test]
async fn r10_a_copy_is_immutable_and_owned_by_its_revision() {
    let source = || Some((200, config_map("agent", "1", "")));
    let (word, sent) = copied(vec![
        source(),
        Some((201, config_map("agent-1234", "1", "pu"))),
    ])
    .await;
    assert_eq!(word, "done");
    assert_eq!(sent[0].0, "GET /api/v1/namespaces/ns/configmaps/agent");
    assert_eq!(sent[1].0, "POST /api/v1/namespaces/ns/configmaps");
    let made = &sent[1].1;
    assert_eq!(made["immutable"], true);
    assert_eq!(made["data"], json!({"a": "1"}));
    let owner = &made["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["uid"]),
        (&json!("ControllerRevision"), &json!("pu"))
    );
    assert_eq!(made["metadata"]["labels"]["rollout.kennel.dev/config"], "h");
    assert_eq!(
        made["metadata"]["annotations"]["rollout.kennel.dev/copy-of"],
        "agent"
    );
}

#[tokio::test(start_paused = true)]
async fn r10_only_the_expected_content_is_copied_and_a_lost_answer_makes_no_second_copy() {
    let source = |content: &str| Some((200, config_map("agent", content, "")));
    assert_eq!(copied(vec![source("2")]).await.0, "NotFound");
    assert_eq!(copied(vec![Some((404, json!({})))]).await.0, "NotFound");
    let holder = |content: &str, owner: &str| Some((200, config_map("agent-1234", content, owner)));
    let lost = vec![source("1"), None, taken(), holder("1", "pu")];
    assert_eq!(copied(lost).await.0, "done");
    let theirs = vec![source("1"), taken(), holder("1", "another")];
    assert_eq!(copied(theirs).await.0, "NameTaken");
    let other = vec![source("1"), taken(), holder("2", "pu")];
    assert_eq!(copied(other).await.0, "NameTaken");
    let terminating =
        json!({"reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}});
    let script = vec![source("1"), Some((403, terminating))];
    assert_eq!(copied(script).await.0, "NamespaceTerminating");
    let large =
        json!({"reason": "Invalid", "message": "Too long: may not be more than 1048576 bytes"});
    assert_eq!(
        copied(vec![source("1"), Some((422, large))]).await.0,
        "Refused"
    );
}

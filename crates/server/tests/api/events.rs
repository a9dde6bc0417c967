//! Events: one storage, two groups. And leases, whose renewals are many.

use serde_json::{Value, json};

use crate::fixture::{MERGE, STRATEGIC, TestServer, names, version};

const CORE: &str = "/api/v1/namespaces/default/events";
const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn core(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u1"},
        "reason": "Started", "message": "it runs", "type": "Normal", "count": 1,
        "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
}

fn new_style(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.123456Z", "action": "Binding", "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "q", "uid": "u2"},
        "reason": "Scheduled", "note": "placed", "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    })
}

#[tokio::test]
async fn an_event_is_the_same_in_both_groups() {
    let server = TestServer::new().await;
    let made = server.post(CORE, &core("a")).await.is(201);
    let other = server.get(&format!("{NEW}/a")).await.ok();
    assert_eq!(
        (&other["apiVersion"], &other["kind"]),
        (&json!("events.k8s.io/v1"), &json!("Event"))
    );
    assert_eq!(other["regarding"], made["involvedObject"]);
    assert_eq!(
        (&other["note"], &other["deprecatedCount"]),
        (&json!("it runs"), &json!(1))
    );
    assert_eq!(other["deprecatedSource"], made["source"]);
    assert!(other.get("involvedObject").is_none() && other.get("message").is_none());
    assert_eq!(version(&other), version(&made));

    let made = server.post(NEW, &new_style("b")).await.is(201);
    assert_eq!(
        (&made["note"], &made["apiVersion"]),
        (&json!("placed"), &json!("events.k8s.io/v1"))
    );
    assert_eq!(made["eventTime"], "2026-01-01T00:00:00.123456Z");
    let other = server.get(&format!("{CORE}/b")).await.ok();
    assert_eq!(
        (&other["message"], &other["reportingComponent"]),
        (&json!("placed"), &json!("default-scheduler"))
    );
    assert_eq!(other["involvedObject"]["name"], "q");
    assert_eq!(names(&server.get(CORE).await.ok()), ["a", "b"]);
    let list = server.get(NEW).await.ok();
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list["items"][1]["note"], "placed");
}

#[tokio::test]
async fn each_group_watches_in_its_own_form() {
    let server = TestServer::new().await;
    let (mut old, mut new) = (server.watch(CORE).await, server.watch(NEW).await);
    server.post(CORE, &core("a")).await.is(201);
    assert_eq!(old.expect("ADDED", "a").await["message"], "it runs");
    assert_eq!(new.expect("ADDED", "a").await["note"], "it runs");
    let patch = json!({"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z"});
    let path = format!("{CORE}/a");
    let patched = server.patch(STRATEGIC, &path, &patch).await.ok();
    assert_eq!(patched["count"], 2);
    assert_eq!(old.expect("MODIFIED", "a").await, patched);
    assert_eq!(new.expect("MODIFIED", "a").await["deprecatedCount"], 2);
    server.delete(&format!("{NEW}/a")).await.ok();
    assert_eq!(old.expect("DELETED", "a").await["count"], 2);
    assert_eq!(new.expect("DELETED", "a").await["deprecatedCount"], 2);
}

#[tokio::test]
async fn series_are_patched_in_the_new_group() {
    let server = TestServer::new().await;
    let made = server.post(NEW, &new_style("b")).await.is(201);
    let path = format!("{NEW}/b");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}});
    let patched = server.patch(MERGE, &path, &series).await.ok();
    assert_eq!(
        (&patched["series"]["count"], &patched["note"]),
        (&json!(2), &json!("placed"))
    );
    assert!(version(&patched) > version(&made));
    assert_eq!(server.put(&path, &patched).await.ok(), patched);
}

#[tokio::test]
async fn events_are_found_by_what_they_are_about() {
    let server = TestServer::new().await;
    server.post(CORE, &core("a")).await.is(201);
    let mut cluster = core("n");
    cluster["involvedObject"] = json!({"kind": "Node", "name": "n", "uid": "n"});
    server.post(CORE, &cluster).await.is(201);
    for (path, selector, expected) in [
        (CORE, "involvedObject.name%3Dp,involvedObject.uid%3Du1", "a"),
        (
            CORE,
            "involvedObject.kind%3DNode,involvedObject.namespace%3D",
            "n",
        ),
        (CORE, "involvedObject.namespace%3Ddefault", "a"),
        (CORE, "reason%3DStarted,type!%3DWarning", "a n"),
        (CORE, "source%3Dkubelet", "a n"),
        (NEW, "regarding.kind%3DPod", "a"),
        (NEW, "regarding.namespace%3D", "n"),
        (NEW, "reportingController%3D", "a n"),
    ] {
        let list = server
            .get(&format!("{path}?fieldSelector={selector}"))
            .await
            .ok();
        assert_eq!(names(&list).join(" "), expected, "{selector}");
    }
    let words = "field label not supported: regarding.name";
    server
        .get(&format!("{CORE}?fieldSelector=regarding.name%3Dx"))
        .await
        .says(400, "BadRequest", words);
}

#[tokio::test]
async fn renewals_are_writes_like_any_other_to_those_who_watch() {
    let server = TestServer::new().await;
    let body = json!({"metadata": {"name": "n"}, "spec": {
        "holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000001Z",
    }});
    let mut lease = server.post(LEASES, &body).await.is(201);
    let mut watch = server
        .watch(&format!("{LEASES}?resourceVersion={}", version(&lease)))
        .await;
    for second in 1..4 {
        let stale = lease.clone();
        lease["spec"]["renewTime"] = format!("2026-01-01T00:00:0{second}.000000Z").into();
        lease = server.put(&format!("{LEASES}/n"), &lease).await.ok();
        assert_eq!(watch.expect("MODIFIED", "n").await, lease);
        server
            .put(&format!("{LEASES}/n"), &stale)
            .await
            .fails(409, "Conflict");
    }
    let renewed = version(&lease);
    let server = server.reopen().await;
    let kept = server.get(&format!("{LEASES}/n")).await.ok();
    assert_eq!(kept["spec"], lease["spec"], "an orderly end loses nothing");
    assert!(server.revision().await >= renewed);
}

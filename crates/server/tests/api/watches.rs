//! WATCH: where a watch begins, what each event carries, how it ends; and streaming lists.

use serde_json::{Value, json};

use crate::fixture::{MAPS, MERGE, NODES, TestServer, map, version};

/// Watches of config maps with a label of their own.
const MINE: &str = "/api/v1/namespaces/default/configmaps?labelSelector=mine";
const STREAMING: &str =
    "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

async fn mine(server: &TestServer, name: &str) -> Value {
    let mut body = map(name, &json!({}));
    body["metadata"]["labels"] = json!({"mine": "yes"});
    server.post(MAPS, &body).await.is(201)
}

async fn change(server: &TestServer, name: &str, value: &str) -> Value {
    let patch = json!({"data": {"k": value}});
    server
        .patch(MERGE, &format!("{MAPS}/{name}"), &patch)
        .await
        .ok()
}

#[tokio::test]
async fn without_a_version_the_present_state_comes_first() {
    let server = TestServer::new().await;
    let a = mine(&server, "a").await;
    mine(&server, "b").await;
    for query in ["", "&resourceVersion=0", "&resourceVersion="] {
        let mut watch = server.watch(&format!("{MINE}{query}")).await;
        assert_eq!(watch.expect("ADDED", "a").await, a, "{query}");
        watch.expect("ADDED", "b").await;
        let changed = change(&server, "b", query).await;
        assert_eq!(watch.expect("MODIFIED", "b").await, changed);
    }
    let name =
        "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Da&resourceVersion=0";
    server.watch(name).await.expect("ADDED", "a").await;
}

#[tokio::test]
async fn from_a_version_everything_since_is_told_once_and_in_order() {
    let server = TestServer::new().await;
    let start = version(&mine(&server, "a").await);
    let changed = change(&server, "a", "1").await;
    mine(&server, "b").await;
    server.delete(&format!("{MAPS}/a")).await.ok();
    let mut watch = server
        .watch(&format!("{MINE}&resourceVersion={start}"))
        .await;
    let first = watch.next().await.unwrap();
    assert_eq!(
        (&first["type"], &first["object"]),
        (&json!("MODIFIED"), &changed)
    );
    assert_eq!(watch.take(2).await, ["ADDED b", "DELETED a"]);
    mine(&server, "c").await;
    assert_eq!(watch.take(1).await, ["ADDED c"]);
    let mut last = 0;
    let mut again = server
        .watch(&format!("{MINE}&resourceVersion={start}"))
        .await;
    for _ in 0..4 {
        let event = again.next().await.unwrap();
        assert!(version(&event["object"]) > last);
        last = version(&event["object"]);
    }
}

#[tokio::test]
async fn a_deletion_shows_the_last_state_with_the_version_of_the_deletion() {
    let server = TestServer::new().await;
    mine(&server, "a").await;
    let last = change(&server, "a", "last").await;
    let mut watch = server
        .watch(&format!("{MINE}&resourceVersion={}", version(&last)))
        .await;
    server.delete(&format!("{MAPS}/a")).await.ok();
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(gone["data"]["k"], "last");
    assert!(version(&gone) > version(&last));
    assert_eq!(version(&gone), server.revision().await);
}

#[tokio::test]
async fn an_object_that_stops_matching_is_deleted_for_the_watcher() {
    let server = TestServer::new().await;
    let made = mine(&server, "a").await;
    let mut watch = server
        .watch(&format!("{MINE}%3Dyes&resourceVersion={}", version(&made)))
        .await;
    let path = format!("{MAPS}/a");
    let label = |value: Value| json!({"metadata": {"labels": {"mine": value}}, "data": {"k": "x"}});
    let left = server.patch(MERGE, &path, &label(json!("no"))).await.ok();
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(gone["metadata"]["labels"]["mine"], "yes", "the old content");
    assert!(gone.get("data").is_none(), "the old content");
    assert_eq!(version(&gone), version(&left), "the new version");
    server
        .patch(MERGE, &path, &json!({"data": {"k": "unseen"}}))
        .await
        .ok();
    let back = server.patch(MERGE, &path, &label(json!("yes"))).await.ok();
    assert_eq!(watch.expect("ADDED", "a").await, back);
    server.patch(MERGE, &path, &label(json!("no"))).await.ok();
    watch.expect("DELETED", "a").await;
    server.delete(&path).await.ok();
    mine(&server, "b").await;
    watch.expect("ADDED", "b").await;
}

#[tokio::test]
async fn watchers_of_fields_see_objects_come_and_go() {
    let server = TestServer::new().await;
    server.pod("p", "n1").await;
    server.pod("q", "n2").await;
    let from = server.revision().await;
    let path = format!("/api/v1/pods?resourceVersion={from}&fieldSelector=");
    let mut mine = server.watch(&format!("{path}spec.nodeName%3Dn1")).await;
    let mut alive = server
        .watch(&format!(
            "{path}status.phase!%3DFailed,status.phase!%3DSucceeded"
        ))
        .await;
    for (name, phase) in [("q", "Running"), ("p", "Running"), ("p", "Failed")] {
        let patch = json!({"status": {"phase": phase}});
        let path = format!("/api/v1/namespaces/default/pods/{name}/status");
        server.patch(MERGE, &path, &patch).await.ok();
    }
    assert_eq!(mine.take(2).await, ["MODIFIED p", "MODIFIED p"]);
    assert_eq!(
        alive.take(3).await,
        ["MODIFIED q", "MODIFIED p", "DELETED p"]
    );
}

#[tokio::test]
async fn a_namespaced_watch_sees_its_namespace_alone() {
    let server = TestServer::new().await;
    let from = server.revision().await;
    let mut here = server
        .watch(&format!("{MAPS}?resourceVersion={from}"))
        .await;
    let mut all = server
        .watch(&format!("/api/v1/configmaps?resourceVersion={from}"))
        .await;
    server
        .post(
            "/api/v1/namespaces/kube-public/configmaps",
            &map("x", &json!({})),
        )
        .await
        .is(201);
    server.map("y", &json!({})).await;
    assert_eq!(all.take(2).await, ["ADDED x", "ADDED y"]);
    assert_eq!(here.take(1).await, ["ADDED y"]);
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let server = TestServer::new().await;
    let from = server.revision().await;
    let mut quiet = server
        .watch(&format!("{NODES}?resourceVersion={from}&timeoutSeconds=1"))
        .await;
    let path = format!("{NODES}?resourceVersion={from}&timeoutSeconds=1&allowWatchBookmarks=true");
    let mut marked = server.watch(&path).await;
    server.map("elsewhere", &json!({})).await;
    assert_eq!(quiet.next().await, None);
    let bookmark = marked.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let object = &bookmark["object"];
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("Node"), &json!("v1"))
    );
    assert!(version(object) >= from);
    assert_eq!(marked.next().await, None);
}

/// A watch that says at once that it has come too late, and ends. Returns its Status.
async fn expired(server: &TestServer, path: &str) -> Value {
    let mut watch = server.watch(path).await;
    let event = watch.next().await.expect("an event before the end");
    assert_eq!(event["type"], "ERROR", "{event}");
    assert_eq!(event["object"]["code"], 410, "{event}");
    assert_eq!(event["object"]["reason"], "Expired", "{event}");
    assert_eq!(watch.next().await, None);
    event["object"].clone()
}

#[tokio::test]
async fn a_watch_from_compacted_history_gets_410() {
    let server = TestServer::with(|options| options.history_bytes = 1).await;
    for name in ["a", "b", "c"] {
        mine(&server, name).await;
    }
    let status = expired(&server, &format!("{MINE}&resourceVersion=1")).await;
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("too old resource version: 1 (")
    );
    let list = server.get(MINE).await.ok();
    let mut watch = server
        .watch(&format!("{MINE}&resourceVersion={}", version(&list)))
        .await;
    mine(&server, "d").await;
    assert_eq!(watch.take(1).await, ["ADDED d"]);
}

#[tokio::test]
async fn a_watch_from_before_a_restart_is_told_to_list_again() {
    let server = TestServer::new().await;
    let made = mine(&server, "a").await;
    mine(&server, "b").await;
    let server = server.reopen().await;
    let path = format!("{MINE}&resourceVersion={}", version(&made));
    expired(&server, &path).await;
}

#[tokio::test]
async fn a_watch_from_a_future_revision_is_told_to_list_again() {
    let server = TestServer::new().await;
    let now = server.revision().await;
    for ahead in [1_000, 1_000_000] {
        let path = format!(
            "{MINE}&allowWatchBookmarks=true&resourceVersion={}",
            now + ahead
        );
        let status = expired(&server, &path).await;
        let words = format!("too large resource version: {}, current: ", now + ahead);
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with(&words), "{message}");
    }
    let mut watch = server.watch(&format!("{MINE}&resourceVersion={now}")).await;
    mine(&server, "seen").await;
    assert_eq!(watch.take(1).await, ["ADDED seen"]);
}

#[tokio::test]
async fn a_streaming_list_ends_its_state_with_a_bookmark() {
    let server = TestServer::new().await;
    mine(&server, "a").await;
    let b = mine(&server, "b").await;
    for query in [
        String::new(),
        format!("&resourceVersion={}", version(&b)),
        "&resourceVersion=0".into(),
    ] {
        let mut watch = server.watch(&format!("{MINE}&{STREAMING}{query}")).await;
        assert_eq!(watch.take(2).await, ["ADDED a", "ADDED b"], "{query}");
        let end = watch.next().await.unwrap();
        assert_eq!(end["type"], "BOOKMARK");
        let object = &end["object"];
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&json!("ConfigMap"), &json!("v1"))
        );
        assert_eq!(
            object["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        assert!(version(object) >= version(&b));
        let name = format!("c{}", query.len());
        mine(&server, &name).await;
        watch.expect("ADDED", &name).await;
        server.delete(&format!("{MAPS}/{name}")).await.ok();
    }
}

#[tokio::test]
async fn a_streaming_list_of_nothing_ends_too() {
    let server = TestServer::new().await;
    for path in [
        NODES,
        "/apis/apps/v1/daemonsets",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/api/v1/namespaces/none/pods",
    ] {
        let mut watch = server.watch(&format!("{path}?{STREAMING}")).await;
        let end = watch.next().await.unwrap();
        let object = &end["object"];
        assert_eq!(end["type"], "BOOKMARK", "{path}");
        assert_eq!(
            object["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        assert!(version(object) > 0);
        assert!(object["kind"].is_string() && object["apiVersion"].is_string());
    }
}

#[tokio::test]
async fn a_streaming_list_may_do_without_the_state() {
    let server = TestServer::new().await;
    let made = mine(&server, "a").await;
    let path = format!(
        "{MINE}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={}",
        version(&made)
    );
    let mut watch = server.watch(&path).await;
    mine(&server, "b").await;
    assert_eq!(watch.take(1).await, ["ADDED b"]);
}

#[tokio::test]
async fn streaming_options_go_together() {
    let server = TestServer::new().await;
    for (query, words) in [
        (
            "sendInitialEvents=true",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=1",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ] {
        let answer = server.watch_refused(&format!("{MAPS}?{query}")).await;
        let words = format!(
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: {words}"
        );
        answer.says(422, "Invalid", &words);
    }
    for query in [
        "resourceVersion=x",
        "fieldSelector=spec.x%3D1",
        "timeoutSeconds=soon",
    ] {
        server
            .watch_refused(&format!("{MAPS}?{query}"))
            .await
            .fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn a_name_in_the_path_makes_a_watch_a_read() {
    let server = TestServer::new().await;
    let made = mine(&server, "a").await;
    assert_eq!(server.get(&format!("{MAPS}/a?watch=true")).await.ok(), made);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_cut_off_and_others_are_not() {
    let server = TestServer::new().await;
    mine(&server, "a").await;
    let from = server.revision().await;
    let path = format!("/apis/coordination.k8s.io/v1/leases?resourceVersion={from}");
    let mut idle = server.watch(&path).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let mut lease = server
        .post(leases, &json!({"metadata": {"name": "l"}}))
        .await
        .is(201);
    // Renewals are the cheapest writes there are.
    let more_than_the_buffer = kennel_server::watch::hub::BUFFER_EVENTS + 200;
    for n in 0..more_than_the_buffer {
        let time = format!("2026-01-01T00:00:{:02}.{:06}Z", n / 1000 % 60, n % 1000);
        lease["spec"]["renewTime"] = time.into();
        lease = server.put(&format!("{leases}/l"), &lease).await.ok();
    }
    let mut seen = 0;
    let last = loop {
        let event = idle.next().await.expect("an error before the end");
        if event["type"] == "ERROR" {
            break event["object"].clone();
        }
        seen += 1;
    };
    assert!(seen > 0 && seen < more_than_the_buffer, "{seen}");
    assert_eq!(
        (&last["code"], &last["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert_eq!(idle.next().await, None);
    let mut fresh = server
        .watch(&format!(
            "/apis/coordination.k8s.io/v1/leases?resourceVersion={}",
            version(&lease)
        ))
        .await;
    server.delete(&format!("{leases}/l")).await.ok();
    assert_eq!(fresh.take(1).await, ["DELETED l"]);
}

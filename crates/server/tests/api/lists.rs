//! LIST: which revision a list shows, and paging.

use kennel_server::continuation::Continuation;
use serde_json::{Value, json};

use crate::fixture::{MAPS, MERGE, TestServer, map, names, version};

/// Config maps with a label of their own, without the default objects of the namespace.
const MINE: &str = "/api/v1/namespaces/default/configmaps?labelSelector=mine";

async fn mine(server: &TestServer, name: &str) -> u64 {
    let mut body = map(name, &json!({}));
    body["metadata"]["labels"] = json!({"mine": ""});
    version(&server.post(MAPS, &body).await.is(201))
}

#[tokio::test]
async fn a_list_shows_the_state_asked_for() {
    let server = TestServer::new().await;
    let first = mine(&server, "a").await;
    let second = mine(&server, "b").await;
    for (query, expected) in [
        (String::new(), vec!["a", "b"]),
        ("&resourceVersion=".into(), vec!["a", "b"]),
        ("&resourceVersion=0".into(), vec!["a", "b"]),
        (format!("&resourceVersion={first}"), vec!["a", "b"]),
        (
            format!("&resourceVersion={second}&resourceVersionMatch=NotOlderThan"),
            vec!["a", "b"],
        ),
        (
            format!("&resourceVersion={first}&resourceVersionMatch=Exact"),
            vec!["a"],
        ),
    ] {
        let list = server.get(&format!("{MINE}{query}")).await.ok();
        assert_eq!(names(&list), expected, "{query}");
        if query.ends_with("Exact") {
            assert_eq!(version(&list), first);
        } else {
            assert!(version(&list) >= second);
        }
    }
}

#[tokio::test]
async fn a_list_of_a_future_revision_times_out() {
    let server = TestServer::new().await;
    let next = server.revision().await + 1;
    let path = format!("{MAPS}?resourceVersion={next}");
    let data = json!({});
    let (list, _) = tokio::join!(server.get(&path), server.map("a", &data));
    assert!(names(&list.ok()).contains(&"a"));
    let far = next + 1_000_000;
    let list = format!("{MAPS}?resourceVersion={far}");
    let one = format!("{MAPS}/a?resourceVersion={far}");
    for asked in [&list, &one] {
        let answer = server.get(asked).await;
        let current = server.revision().await;
        let words = format!("Timeout: Too large resource version: {far}, current: {current}");
        let status = answer.says(504, "Timeout", &words);
        let details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        assert_eq!(status["details"], details);
        assert_eq!(answer.header(http::header::RETRY_AFTER), "1");
    }
}

#[tokio::test]
async fn options_that_contradict_each_other_are_refused() {
    let server = TestServer::new().await;
    for (query, words) in [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Newest",
            "resourceVersionMatch: Unsupported value: \"Newest\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1",
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
    ] {
        let words = format!("ListOptions.meta.k8s.io \"\" is invalid: {words}");
        let status = server
            .get(&format!("{MAPS}?{query}"))
            .await
            .says(422, "Invalid", &words);
        assert_eq!(status["details"]["kind"], "ListOptions");
    }
    for query in [
        "resourceVersion=abc",
        "continue=abc",
        "limit=many",
        "watch=perhaps",
    ] {
        server
            .get(&format!("{MAPS}?{query}"))
            .await
            .fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn pages_are_a_consistent_snapshot() {
    let server = TestServer::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        mine(&server, name).await;
    }
    let all = "/api/v1/namespaces/default/configmaps";
    let mut page = server.get(&format!("{all}?limit=2")).await.ok();
    let state = version(&page);
    assert_eq!(
        page["metadata"]["remainingItemCount"], 4,
        "kube-root-ca.crt is the sixth"
    );
    let mut seen: Vec<String> = Vec::new();
    loop {
        seen.extend(names(&page).into_iter().map(str::to_owned));
        assert_eq!(version(&page), state);
        let token = page["metadata"]["continue"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if token.is_empty() {
            break;
        }
        // Between pages, an object of a later page is deleted, and another is created.
        server.delete(&format!("{all}/e")).await;
        mine(&server, &format!("b{}", seen.len())).await;
        let path = format!("{all}?limit=2&continue={token}");
        page = server.get(&path).await.ok();
        let versioned = server.get(&format!("{path}&resourceVersion=7")).await;
        versioned.says(
            400,
            "BadRequest",
            "specifying resource version is not allowed when using continue",
        );
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e", "kube-root-ca.crt"]);
    assert!(page["metadata"].get("remainingItemCount").is_none());
}

#[tokio::test]
async fn lists_with_selectors_have_no_remaining_item_count() {
    let server = TestServer::new().await;
    for name in ["a", "b", "c"] {
        mine(&server, name).await;
    }
    let page = server.get(&format!("{MINE}&limit=2")).await.ok();
    assert_eq!(names(&page), ["a", "b"]);
    assert!(page["metadata"].get("remainingItemCount").is_none());
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get(&format!("{MINE}&limit=2&continue={token}"))
        .await
        .ok();
    assert_eq!(names(&rest), ["c"]);
    assert!(rest["metadata"].get("continue").is_none());
    let whole = server
        .get(&format!("{MINE}&limit=1&resourceVersion=0"))
        .await
        .ok();
    assert_eq!(names(&whole), ["a", "b", "c"], "any state is served whole");
}

#[tokio::test]
async fn an_expired_page_offers_to_go_on_without_consistency() {
    let server = TestServer::with(|options| options.history_bytes = 1).await;
    mine(&server, "a").await;
    let token = token_after(&server, "a").await;
    for name in ["b", "c", "bb", "d"] {
        mine(&server, name).await;
    }
    let answer = server
        .get(&format!("{MINE}&limit=2&continue={token}"))
        .await;
    let status = answer.fails(410, "Expired");
    let words = "The provided continue parameter is too old to display a consistent list result.";
    assert!(
        status["message"].as_str().unwrap().starts_with(words),
        "{status}"
    );
    let token = status["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{MINE}&continue={token}")).await.ok();
    assert_eq!(names(&rest), ["b", "bb", "c", "d"]);
    let old = format!("{MINE}&resourceVersion=1&resourceVersionMatch=Exact");
    server.get(&old).await.fails(410, "Expired");
}

/// The token of a list up to this object at the current revision, which this server has never given out.
async fn token_after(server: &TestServer, name: &str) -> String {
    let place = Continuation {
        revision: server.revision().await,
        after: format!("/registry/configmaps/default/{name}"),
    };
    place.encode()
}

#[tokio::test]
async fn a_list_is_read_to_its_end_though_history_has_dropped_its_revision() {
    let server = TestServer::with(|options| options.history_bytes = 1).await;
    for name in ["a", "b", "c", "d", "e"] {
        mine(&server, name).await;
    }
    let first = server.get(&format!("{MINE}&limit=2")).await.ok();
    mine(&server, "bb").await;
    server.delete(&format!("{MAPS}/c")).await.ok();
    let changed = json!({"data": {"new": "yes"}});
    let d = format!("{MAPS}/d");
    server.patch(MERGE, &d, &changed).await.ok();
    let mut page = first.clone();
    let owned =
        |page: &Value| -> Vec<String> { names(page).into_iter().map(str::to_owned).collect() };
    let mut seen = owned(&page);
    while let Some(token) = page["metadata"].get("continue") {
        let next = format!("{MINE}&limit=2&continue={}", token.as_str().unwrap());
        page = server.get(&next).await.ok();
        assert_eq!(version(&page), version(&first));
        for item in page["items"].as_array().unwrap() {
            assert_eq!(item.get("data"), None, "as it was: {item}");
        }
        seen.extend(owned(&page));
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);

    // And watched from there: what has changed since, then what changes.
    let from = format!("{MINE}&resourceVersion={}", version(&first));
    let mut watch = server.watch(&from).await;
    let events = watch.take(3).await;
    assert_eq!(events, ["DELETED c", "ADDED bb", "MODIFIED d"]);
    server.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(watch.take(1).await, ["DELETED a"]);
    // What is created again is another object.
    server.delete(&format!("{MAPS}/b")).await.ok();
    mine(&server, "b").await;
    let mut watch = server.watch(&from).await;
    let events = watch.take(6).await;
    let expected = [
        "DELETED a",
        "DELETED b",
        "DELETED c",
        "ADDED bb",
        "MODIFIED d",
        "ADDED b",
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_token_belongs_to_its_list() {
    let server = TestServer::new().await;
    mine(&server, "a").await;
    let page = server.get(&format!("{MAPS}?limit=1")).await.ok();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let other = format!("/api/v1/namespaces/default/secrets?continue={token}");
    server.get(&other).await.fails(400, "BadRequest");
}

#[tokio::test]
async fn a_namespace_that_is_not_there_has_empty_lists() {
    let server = TestServer::new().await;
    let list = server.get("/api/v1/namespaces/none/configmaps").await.ok();
    assert_eq!(list["items"], json!([]));
    version(&list);
}

#[tokio::test]
async fn collections_that_are_always_empty_say_so() {
    let server = TestServer::new().await;
    for (path, kind, version) in [
        ("/apis/apps/v1/replicasets", "ReplicaSetList", "apps/v1"),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            "ReplicationControllerList",
            "v1",
        ),
        (
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn",
            "ResourceSliceList",
            "resource.k8s.io/v1",
        ),
    ] {
        let list = server.get(path).await.ok();
        assert_eq!(list["items"], json!([]), "{path}");
        assert_eq!(
            (&list["kind"], &list["apiVersion"]),
            (&json!(kind), &json!(version))
        );
        crate::fixture::version(&list);
    }
    let answer = server
        .get("/apis/apps/v1/namespaces/default/replicasets/x")
        .await;
    answer.says(404, "NotFound", "replicasets.apps \"x\" not found");
    server
        .delete("/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn")
        .await
        .ok();
}

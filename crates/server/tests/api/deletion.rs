//! DELETE: preconditions, finalizers, propagation, collections.

use serde_json::{Value, json};

use crate::fixture::{DAEMONSETS, MAPS, MERGE, TestServer, daemonset, map, names, version};

async fn kept(server: &TestServer, name: &str) -> Value {
    let mut body = map(name, &json!({}));
    body["metadata"]["finalizers"] = json!(["example.com/keep"]);
    server.post(MAPS, &body).await.is(201)
}

#[tokio::test]
async fn a_deletion_tells_what_is_gone() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let status = server.delete(&format!("{MAPS}/a")).await.ok();
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
    });
    assert_eq!(status, expected);
    let words = "configmaps \"a\" not found";
    let status = server
        .delete(&format!("{MAPS}/a"))
        .await
        .says(404, "NotFound", words);
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps"})
    );
    server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let status = server.delete(&format!("{DAEMONSETS}/d")).await.ok();
    assert_eq!(status["details"]["group"], "apps");
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    server.post(services, &service).await.is(201);
    assert_eq!(
        server.delete(&format!("{services}/s")).await.ok()["kind"],
        "Service"
    );
}

#[tokio::test]
async fn options_come_in_many_shapes() {
    let server = TestServer::new().await;
    for (n, options) in [
        json!({"kind": "DeleteOptions", "apiVersion": "v1"}),
        json!({"kind": "DeleteOptions", "apiVersion": "apps/v1"}),
        json!({"kind": "DeleteOptions", "apiVersion": "resource.k8s.io/v1"}),
        json!({"propagationPolicy": "Background"}),
        json!({"gracePeriodSeconds": 0, "preconditions": {}}),
        json!({}),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("a{n}");
        server.map(&name, &json!({})).await;
        let answer = server.delete_with(&format!("{MAPS}/{name}"), options).await;
        assert_eq!(answer.code, 200, "{options}: {}", answer.text());
    }
    server.map("q", &json!({})).await;
    let query = "propagationPolicy=Orphan&gracePeriodSeconds=-1";
    let waiting = server.delete(&format!("{MAPS}/q?{query}")).await.ok();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["orphan"]));
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    for (options, field) in [
        (
            json!({"propagationPolicy": "Sideways"}),
            "propagationPolicy",
        ),
        (
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
            "propagationPolicy",
        ),
        (json!({"dryRun": ["Some"]}), "dryRun"),
    ] {
        let status = server
            .delete_with(&path, &options)
            .await
            .fails(422, "Invalid");
        assert_eq!(status["details"]["kind"], "DeleteOptions");
        assert_eq!(status["details"]["causes"][0]["field"], field, "{status}");
    }
    server
        .delete_with(&path, &json!({"gracePeriodSeconds": "soon"}))
        .await
        .fails(400, "BadRequest");
    server
        .delete_with(&path, &json!({"kind": "Pod"}))
        .await
        .fails(400, "BadRequest");
    server.get(&path).await.ok();
}

#[tokio::test]
async fn preconditions_must_hold() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let now = version(&made);
    let start = "Operation cannot be fulfilled on configmaps \"a\": Precondition failed:";
    for (preconditions, words) in [
        (
            json!({"uid": "x"}),
            format!("{start} UID in precondition: x, UID in object meta: {uid}"),
        ),
        (
            json!({"uid": uid, "resourceVersion": "1"}),
            format!(
                "{start} ResourceVersion in precondition: 1, ResourceVersion in object meta: {now}"
            ),
        ),
    ] {
        let options = json!({"preconditions": preconditions});
        server
            .delete_with(&path, &options)
            .await
            .says(409, "Conflict", &words);
    }
    let right = json!({"preconditions": {"uid": uid, "resourceVersion": now.to_string()}});
    server.delete_with(&path, &right).await.ok();
}

#[tokio::test]
async fn finalizers_keep_an_object_until_they_are_gone() {
    let server = TestServer::new().await;
    let made = kept(&server, "a").await;
    let path = format!("{MAPS}/a");
    let mut watch = server
        .watch(&format!("{MAPS}?resourceVersion={}", version(&made)))
        .await;
    let waiting = server.delete(&path).await.ok();
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(watch.expect("MODIFIED", "a").await, waiting);
    assert_eq!(
        server.delete(&path).await.ok(),
        waiting,
        "deleting again changes nothing"
    );
    let more = json!({"metadata": {"finalizers": ["example.com/keep", "example.com/more"]}});
    server
        .patch(MERGE, &path, &more)
        .await
        .fails(422, "Invalid");
    let undo = json!({"metadata": {"deletionTimestamp": null}, "data": {"k": "v"}});
    let still = server.patch(MERGE, &path, &undo).await.ok();
    assert!(still["metadata"]["deletionTimestamp"].is_string());
    watch.expect("MODIFIED", "a").await;
    let free = json!({"metadata": {"finalizers": null}});
    let last = server.patch(MERGE, &path, &free).await.ok();
    assert_eq!(last["kind"], "ConfigMap");
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(version(&gone), version(&last));
    server.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn propagation_is_a_matter_of_finalizers() {
    let server = TestServer::new().await;
    for (n, (options, finalizers)) in [
        (json!({"propagationPolicy": "Orphan"}), json!(["orphan"])),
        (json!({"orphanDependents": true}), json!(["orphan"])),
        (
            json!({"propagationPolicy": "Foreground"}),
            json!(["foregroundDeletion"]),
        ),
        (json!({"propagationPolicy": "Background"}), Value::Null),
        (json!({"orphanDependents": false}), Value::Null),
        (json!({}), Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("d{n}");
        server.post(DAEMONSETS, &daemonset(&name)).await.is(201);
        let path = format!("{DAEMONSETS}/{name}");
        let answer = server.delete_with(&path, &options).await.ok();
        assert_eq!(answer["metadata"]["finalizers"], finalizers, "{options}");
        let expected = if finalizers.is_null() { 404 } else { 200 };
        assert_eq!(server.get(&path).await.code, expected, "{options}");
    }
    let switch = json!({"propagationPolicy": "Foreground"});
    let answer = server
        .delete_with(&format!("{DAEMONSETS}/d0"), &switch)
        .await
        .ok();
    assert_eq!(
        answer["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    let background = json!({"propagationPolicy": "Background"});
    let answer = server
        .delete_with(&format!("{DAEMONSETS}/d0"), &background)
        .await
        .ok();
    assert_eq!(answer["status"], "Success");
}

#[tokio::test]
async fn without_a_policy_a_propagation_finalizer_stays() {
    let server = TestServer::new().await;
    let mut body = map("a", &json!({}));
    body["metadata"]["finalizers"] = json!(["orphan"]);
    server.post(MAPS, &body).await.is(201);
    let waiting = server.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["orphan"]));
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    assert_eq!(
        server.delete(&format!("{path}?dryRun=All")).await.ok()["status"],
        "Success"
    );
    assert_eq!(
        server
            .delete_with(&path, &json!({"dryRun": ["All"]}))
            .await
            .ok()["status"],
        "Success"
    );
    assert_eq!(server.get(&path).await.ok(), made);
}

#[tokio::test]
async fn a_collection_goes_as_its_selector_says_and_at_once() {
    let server = TestServer::new().await;
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut body = map(name, &json!({}));
        body["metadata"]["labels"] = json!({"app": app});
        server.post(MAPS, &body).await.is(201);
    }
    let deleted = server
        .delete(&format!("{MAPS}?labelSelector=app%3Dx"))
        .await
        .ok();
    assert_eq!(
        (&deleted["kind"], names(&deleted)),
        (&json!("ConfigMapList"), vec!["a", "b"])
    );
    let left = server.get(&format!("{MAPS}?labelSelector=app")).await.ok();
    assert_eq!(names(&left), ["c"]);
    let dry = server
        .delete(&format!("{MAPS}?labelSelector=app&dryRun=All"))
        .await
        .ok();
    assert_eq!(names(&dry), ["c"]);
    let named = format!("{MAPS}?fieldSelector=metadata.name%3Dc&resourceVersion=0&limit=500");
    assert_eq!(names(&server.delete(&named).await.ok()), ["c"]);
    server
        .delete(&format!("{MAPS}?labelSelector=app+in"))
        .await
        .fails(400, "BadRequest");
}

#[tokio::test]
async fn a_limit_bounds_the_deletion_of_a_collection() {
    let server = TestServer::new().await;
    for name in ["a", "b", "c"] {
        server.map(name, &json!({})).await;
    }
    let deleted = server.delete(&format!("{MAPS}?limit=2")).await.ok();
    assert_eq!(names(&deleted), ["a", "b"]);
    assert!(names(&server.get(MAPS).await.ok()).contains(&"c"));
}

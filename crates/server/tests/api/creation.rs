//! Creating objects: what the server writes itself, names, dry runs.

use http::header;
use serde_json::{Value, json};

use crate::fixture::{MAPS, NAMESPACES, NODES, TestServer, map, names, node, version};

#[tokio::test]
async fn the_server_writes_identity_and_time_itself() {
    let server = TestServer::new().await;
    let mut body = map("a", &json!({}));
    body["metadata"] = json!({
        "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 7, "deletionTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x",
        "deletionGracePeriodSeconds": 5,
    });
    let made = server.post(MAPS, &body).await.is(201);
    let metadata = &made["metadata"];
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36, "{metadata}");
    let time = metadata["creationTimestamp"].as_str().unwrap();
    assert!(
        time > "2020" && time.len() == 20 && time.ends_with('Z'),
        "{time}"
    );
    for field in [
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        assert!(metadata.get(field).is_none(), "{field} in {metadata}");
    }
    assert_eq!(metadata["namespace"], "default");
    assert!(
        metadata.get("generation").is_none(),
        "config maps have no generation"
    );
    assert_eq!(server.get(&format!("{MAPS}/a")).await.ok(), made);
}

#[tokio::test]
async fn a_null_creation_timestamp_is_normal_input() {
    let server = TestServer::new().await;
    let body = json!({"metadata": {"name": "a", "creationTimestamp": null}});
    let answer = server.post(MAPS, &body).await;
    answer.is(201);
    assert!(answer.warnings().is_empty());
}

#[tokio::test]
async fn a_new_object_has_no_version_yet() {
    let server = TestServer::new().await;
    let body = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
    let words = "resourceVersion should not be set on objects to be created";
    let answer = server.post(MAPS, &body).await;
    let status = answer.is(400);
    assert!(
        status["message"].as_str().unwrap().contains(words),
        "{status}"
    );
}

#[tokio::test]
async fn versions_are_one_growing_number_for_all_kinds() {
    let server = TestServer::new().await;
    let a = server.map("a", &json!({})).await;
    let n = server.post(NODES, &node("n")).await.is(201);
    let b = server.map("b", &json!({})).await;
    assert!(version(&a) < version(&n) && version(&n) < version(&b));
    let text = b["metadata"]["resourceVersion"].as_str().unwrap();
    assert!(!text.starts_with('0'), "{text}");
    let list = server.get(MAPS).await.ok();
    assert!(version(&list) >= version(&b));
}

#[tokio::test]
async fn generated_names_extend_their_prefix() {
    let server = TestServer::new().await;
    let long = "p".repeat(70);
    for (prefix, kept) in [("web-", 4), (&*long, 58)] {
        let body = json!({"metadata": {"generateName": prefix}});
        let made = server.post(MAPS, &body).await.is(201);
        let name = made["metadata"]["name"].as_str().unwrap();
        assert_eq!((name.len(), &name[..kept]), (kept + 5, &prefix[..kept]));
        let letters = "bcdfghjklmnpqrstvwxz2456789";
        assert!(name[kept..].chars().all(|c| letters.contains(c)), "{name}");
        assert_eq!(made["metadata"]["generateName"], prefix);
    }
    let both = json!({"metadata": {"name": "own", "generateName": "web-"}});
    assert_eq!(
        server.post(MAPS, &both).await.is(201)["metadata"]["name"],
        "own"
    );
}

#[tokio::test]
async fn a_namespace_with_a_generated_name_carries_it_as_a_label() {
    let server = TestServer::new().await;
    let made = server
        .post(NAMESPACES, &json!({"metadata": {"generateName": "e2e-"}}))
        .await
        .is(201);
    let name = &made["metadata"]["name"];
    assert_eq!(
        &made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        name
    );
}

#[tokio::test]
async fn an_object_without_any_name_is_invalid() {
    let server = TestServer::new().await;
    let words = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    let status = server
        .post(MAPS, &json!({}))
        .await
        .says(422, "Invalid", words);
    let details = json!({
        "kind": "ConfigMap",
        "causes": [{
            "reason": "FieldValueRequired", "field": "metadata.name",
            "message": "Required value: name or generateName is required",
        }],
    });
    assert_eq!(status["details"], details);
}

#[tokio::test]
async fn names_follow_the_rule_of_their_kind() {
    let server = TestServer::new().await;
    let label_63 = "a".repeat(63);
    let label_64 = "a".repeat(64);
    let services = "/api/v1/namespaces/default/services";
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let cases = [
        (MAPS, "a.b-c", true),
        (MAPS, "A", false),
        (MAPS, "a_b", false),
        (MAPS, "-a", false),
        (MAPS, &label_64, true),
        (NAMESPACES, "a.b", false),
        (NAMESPACES, &label_63, true),
        (NAMESPACES, &label_64, false),
        (services, "a.b", false),
        (services, "1a", true),
        (roles, "system:Some_Role", true),
        (roles, "a/b", false),
        (roles, "..", false),
    ];
    for (path, name, good) in cases {
        let mut body = json!({"metadata": {"name": name}});
        if path == services {
            body["spec"] = json!({"ports": [{"port": 80}]});
        }
        let answer = server.post(path, &body).await;
        let expected = if good { 201 } else { 422 };
        assert_eq!(answer.code, expected, "{path} {name}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_taken_name_is_a_conflict() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    for path in [MAPS.to_owned(), format!("{MAPS}?dryRun=All")] {
        let words = "configmaps \"a\" already exists";
        let status =
            server
                .post(&path, &map("a", &json!({})))
                .await
                .says(409, "AlreadyExists", words);
        assert_eq!(
            status["details"],
            json!({"name": "a", "kind": "configmaps"})
        );
    }
}

#[tokio::test]
async fn the_namespace_is_that_of_the_url() {
    let server = TestServer::new().await;
    let other = json!({"metadata": {"name": "a", "namespace": "other"}});
    let words =
        "the namespace of the provided object does not match the namespace sent on the request";
    server
        .post(MAPS, &other)
        .await
        .says(400, "BadRequest", words);
    let words = "namespaces \"none\" not found";
    let path = "/api/v1/namespaces/none/configmaps";
    let status = server
        .post(path, &map("a", &json!({})))
        .await
        .says(404, "NotFound", words);
    assert_eq!(
        status["details"],
        json!({"name": "none", "kind": "namespaces"})
    );
    // A namespace in a cluster-scoped object is ignored.
    let stray = json!({"metadata": {"name": "n", "namespace": "other"}});
    let made = server.post(NODES, &stray).await.is(201);
    assert!(made["metadata"].get("namespace").is_none());
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let server = TestServer::new().await;
    let before = server.revision().await;
    let path = format!("{MAPS}?dryRun=All");
    let made = server
        .post(&path, &map("a", &json!({"k": "v"})))
        .await
        .is(201);
    assert!(
        made["metadata"]["uid"].is_string() && made["metadata"]["creationTimestamp"].is_string()
    );
    assert!(made["metadata"].get("resourceVersion").is_none(), "{made}");
    assert_eq!(made["data"]["k"], "v");
    assert_eq!(server.revision().await, before);
    server
        .get(&format!("{MAPS}/a"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test]
async fn lists_are_sorted_by_namespace_and_name() {
    let server = TestServer::new().await;
    server
        .post(NAMESPACES, &json!({"metadata": {"name": "aaa"}}))
        .await
        .is(201);
    for name in ["z", "b", "m"] {
        server.map(name, &json!({})).await;
    }
    server
        .post("/api/v1/namespaces/aaa/configmaps", &map("y", &json!({})))
        .await
        .is(201);
    let list = server.get(MAPS).await.ok();
    assert_eq!(names(&list), ["b", "kube-root-ca.crt", "m", "z"]);
    assert_eq!(list["kind"], "ConfigMapList");
    let all = server.get("/api/v1/configmaps").await.ok();
    let places: Vec<(&str, &str)> = all["items"].as_array().unwrap().iter().map(place).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    assert_eq!(places, sorted);
    assert!(places.contains(&("aaa", "y")));
}

fn place(object: &Value) -> (&str, &str) {
    let metadata = &object["metadata"];
    (
        metadata["namespace"].as_str().unwrap(),
        metadata["name"].as_str().unwrap(),
    )
}

#[tokio::test]
async fn the_answer_to_a_create_takes_the_form_asked_for() {
    let server = TestServer::new().await;
    let mut post = crate::fixture::request(http::Method::POST, MAPS, Some(&map("a", &json!({}))));
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
        .parse()
        .unwrap();
    post.headers_mut().insert(header::ACCEPT, accept);
    let table = server.send(post).await.is(201);
    assert_eq!(
        (&table["kind"], &table["rows"][0]["cells"][0]),
        (&json!("Table"), &json!("a"))
    );
}

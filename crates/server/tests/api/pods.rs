//! Pods: graceful deletion, eviction, binding.

use serde_json::{Value, json};

use crate::fixture::{MERGE, NODES, PODS, TestServer, pod, version};

fn binding(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    })
}

#[tokio::test]
async fn an_unbound_pod_goes_at_once_and_is_shown() {
    let server = TestServer::new().await;
    let made = server.pod("p", "").await;
    let gone = server.delete(&format!("{PODS}/p")).await.ok();
    assert_eq!(
        (&gone["kind"], &gone["metadata"]["uid"]),
        (&json!("Pod"), &made["metadata"]["uid"])
    );
    server
        .get(&format!("{PODS}/p"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test]
async fn a_finished_pod_goes_at_once() {
    let server = TestServer::new().await;
    for phase in ["Succeeded", "Failed"] {
        let name = phase.to_lowercase();
        server.pod(&name, "n").await;
        let path = format!("{PODS}/{name}");
        let patch = json!({"status": {"phase": phase}});
        server
            .patch(MERGE, &format!("{path}/status"), &patch)
            .await
            .ok();
        server.delete(&path).await.ok();
        server.get(&path).await.fails(404, "NotFound");
    }
}

#[tokio::test]
async fn a_bound_pod_gets_its_grace_and_only_less_of_it() {
    let server = TestServer::new().await;
    let path = format!("{PODS}/p");
    server.pod("p", "n").await;
    let end = |pod: &Value| -> jiff::Timestamp {
        pod["metadata"]["deletionTimestamp"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    let grace = |seconds: i64| json!({"gracePeriodSeconds": seconds});
    let first = server.delete_with(&path, &grace(30)).await.ok();
    assert_eq!(first["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        server.delete_with(&path, &grace(60)).await.ok(),
        first,
        "more is not given"
    );
    assert_eq!(server.delete_with(&path, &grace(30)).await.ok(), first);
    let shorter = server.delete_with(&path, &grace(10)).await.ok();
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 10);
    assert_eq!(end(&first).as_second() - end(&shorter).as_second(), 20);
    assert_eq!(
        shorter["metadata"]["generation"],
        first["metadata"]["generation"]
    );
    let wrong = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "other"}});
    server
        .delete_with(&path, &wrong)
        .await
        .fails(409, "Conflict");
    server.delete_with(&path, &grace(0)).await.ok();
    server.get(&path).await.fails(404, "NotFound");
}

#[tokio::test]
async fn the_grace_period_is_that_of_the_options_or_the_pod() {
    let server = TestServer::new().await;
    for (n, (own, options, expected)) in [
        (json!(7), json!({}), 7),
        (json!(7), json!({"gracePeriodSeconds": 3}), 3),
        (json!(7), json!({"gracePeriodSeconds": -1}), 1),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = pod(&format!("p{n}"));
        body["spec"]["nodeName"] = "n".into();
        body["spec"]["terminationGracePeriodSeconds"] = own;
        server.post(PODS, &body).await.is(201);
        let waiting = server
            .delete_with(&format!("{PODS}/p{n}"), &options)
            .await
            .ok();
        assert_eq!(
            waiting["metadata"]["deletionGracePeriodSeconds"], expected,
            "{options}"
        );
    }
}

#[tokio::test]
async fn a_terminating_pod_still_reports_its_status() {
    let server = TestServer::new().await;
    let path = format!("{PODS}/p");
    server.pod("p", "n").await;
    server
        .delete_with(&path, &json!({"gracePeriodSeconds": 30}))
        .await
        .ok();
    let patch = json!({"status": {"phase": "Failed"}});
    let patched = server
        .patch(MERGE, &format!("{path}/status"), &patch)
        .await
        .ok();
    assert!(patched["metadata"]["deletionTimestamp"].is_string());
    server.get(&path).await.ok();
}

#[tokio::test]
async fn an_eviction_is_a_graceful_deletion() {
    let server = TestServer::new().await;
    for version in ["policy/v1", "policy/v1beta1"] {
        let name = version.replace('/', "-");
        server.pod(&name, "n").await;
        let path = format!("{PODS}/{name}");
        let body = json!({
            "apiVersion": version, "kind": "Eviction", "metadata": {"name": name, "namespace": "default"},
            "deleteOptions": {"gracePeriodSeconds": 5},
        });
        let status = server
            .post(&format!("{path}/eviction"), &body)
            .await
            .is(201);
        let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        assert_eq!(status, expected);
        assert_eq!(
            server.get(&path).await.ok()["metadata"]["deletionGracePeriodSeconds"],
            5
        );
    }
    server.pod("stays", "n").await;
    let path = format!("{PODS}/stays/eviction");
    for body in [
        json!({"apiVersion": "policy/v2", "kind": "Eviction"}),
        json!({"apiVersion": "policy/v1", "kind": "Pod"}),
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}),
    ] {
        server.post(&path, &body).await.fails(400, "BadRequest");
    }
    let dry = json!({"deleteOptions": {"dryRun": ["All"]}});
    server.post(&path, &dry).await.is(201);
    assert!(
        server.get(&format!("{PODS}/stays")).await.ok()["metadata"]
            .get("deletionTimestamp")
            .is_none()
    );
    server
        .post(&format!("{PODS}/none/eviction"), &json!({}))
        .await
        .fails(404, "NotFound");
}

#[tokio::test]
async fn a_binding_gives_a_pod_its_node_once() {
    let server = TestServer::new().await;
    server.post(NODES, &crate::fixture::node("n")).await.is(201);
    let made = server.pod("p", "").await;
    let path = format!("{PODS}/p/binding");
    let mut wrong = binding("p", "n");
    wrong["metadata"]["uid"] = "other".into();
    server.post(&path, &wrong).await.fails(409, "Conflict");
    let mut right = binding("p", "n");
    right["metadata"]["uid"] = made["metadata"]["uid"].clone();
    right["metadata"]["annotations"] = json!({"example.com/by": "tester"});
    let status = server.post(&path, &right).await.is(201);
    assert_eq!(
        (&status["status"], &status["code"]),
        (&json!("Success"), &json!(201))
    );
    let bound = server.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n");
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    let scheduled = conditions
        .iter()
        .find(|c| c["type"] == "PodScheduled")
        .unwrap();
    assert_eq!(scheduled["status"], "True");
    assert_eq!(bound["metadata"]["annotations"]["example.com/by"], "tester");
    assert!(version(&bound) > version(&made));
    let words = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\"";
    server
        .post(&path, &binding("p", "n"))
        .await
        .says(409, "Conflict", words);
}

#[tokio::test]
async fn a_binding_may_be_posted_to_the_namespace() {
    let server = TestServer::new().await;
    server.pod("p", "").await;
    let bindings = "/api/v1/namespaces/default/bindings";
    server.post(bindings, &binding("p", "n")).await.is(201);
    assert_eq!(
        server.get(&format!("{PODS}/p")).await.ok()["spec"]["nodeName"],
        "n"
    );
    server
        .post(bindings, &binding("none", "n"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test]
async fn bindings_that_make_no_sense_are_refused() {
    let server = TestServer::new().await;
    server.pod("p", "").await;
    let path = format!("{PODS}/p/binding");
    let mut nowhere = binding("p", "");
    server.post(&path, &nowhere).await.fails(422, "Invalid");
    nowhere["target"] = json!({"kind": "Pod", "name": "n"});
    server.post(&path, &nowhere).await.fails(422, "Invalid");
    server
        .post(&format!("{PODS}/none/binding"), &binding("none", "n"))
        .await
        .fails(404, "NotFound");
    let dry = format!("{path}?dryRun=All");
    server.post(&dry, &binding("p", "n")).await.is(201);
    assert!(
        server.get(&format!("{PODS}/p")).await.ok()["spec"]
            .get("nodeName")
            .is_none()
    );
    let gated = json!({"metadata": {"name": "g"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "example.com/g"}],
    }});
    server.post(PODS, &gated).await.is(201);
    server
        .post(&format!("{PODS}/g/binding"), &binding("g", "n"))
        .await
        .fails(409, "Conflict");
}

#[tokio::test]
async fn token_requests_return_tokens() {
    let server = TestServer::new().await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let made = server
        .post(path, &json!({"spec": {"expirationSeconds": 3607}}))
        .await
        .is(201);
    assert_eq!(made["kind"], "TokenRequest");
    assert_eq!(
        made["status"]["token"].as_str().unwrap().split('.').count(),
        3
    );
    assert!(made["status"]["expirationTimestamp"].is_string());
    assert!(made["spec"]["audiences"].is_array());
    server
        .post(path, &json!({"spec": {"expirationSeconds": 5}}))
        .await
        .fails(422, "Invalid");
    let none = "/api/v1/namespaces/default/serviceaccounts/none/token";
    server.post(none, &json!({})).await.fails(404, "NotFound");
    let pod = server.pod("p", "n").await;
    let mut bound = json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod["metadata"]["uid"]}}});
    server.post(path, &bound).await.is(201);
    bound["spec"]["boundObjectRef"]["uid"] = "other".into();
    server.post(path, &bound).await.fails(409, "Conflict");
}

//! Requests with bodies in protobuf, wherever a request has a body.

use http::{Method, header};
use kennel_server::protobuf;
use serde_json::{Value, json};

use super::encoder::{Style, body, message, put_bytes};
use super::{request, send, type_named};
use crate::fixture::{
    DAEMONSETS, MAPS, NAMESPACES, NODES, PODS, TestServer, daemonset, map, node, pod,
};

#[tokio::test]
async fn what_nobody_set_gets_its_default() {
    let server = TestServer::new().await;
    let mut set = daemonset("d");
    set["spec"]["revisionHistoryLimit"] = 0.into();
    let made = send(&server, Method::POST, DAEMONSETS, "apps.v1.DaemonSet", &set).await;
    let made = made.is(201);
    assert_eq!(made["spec"]["revisionHistoryLimit"], 0);
    assert_eq!(made["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let template = &made["spec"]["template"]["spec"];
    assert_eq!(template["restartPolicy"], "Always");
    assert_eq!(template["terminationGracePeriodSeconds"], 30);
    assert_eq!(template["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert!(made["metadata"]["creationTimestamp"].is_string(), "{made}");
    assert!(template.get("nodeName").is_none(), "{template}");
}

#[tokio::test]
async fn objects_and_their_subresources_are_updated() {
    let server = TestServer::new().await;
    let mut set = server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let one = format!("{DAEMONSETS}/d");
    set["spec"]["minReadySeconds"] = 5.into();
    let updated = send(&server, Method::PUT, &one, "apps.v1.DaemonSet", &set)
        .await
        .ok();
    assert_eq!(updated["spec"]["minReadySeconds"], 5);
    assert_eq!(updated["metadata"]["generation"], 2);
    let mut set = updated;
    set["status"] =
        json!({"desiredNumberScheduled": 3, "observedGeneration": 2, "collisionCount": 0});
    let status = format!("{one}/status");
    let updated = send(&server, Method::PUT, &status, "apps.v1.DaemonSet", &set)
        .await
        .ok();
    assert_eq!(updated["status"]["desiredNumberScheduled"], 3);
    assert_eq!(updated["status"]["collisionCount"], 0);
    assert_eq!(updated["status"]["numberReady"], 0);

    let mut made = server.post(NODES, &node("n")).await.is(201);
    made["status"]["conditions"] = json!([{
        "type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z",
    }]);
    made["status"]["capacity"] = json!({"cpu": "1500m", "memory": "3Gi"});
    let status = format!("{NODES}/n/status");
    let updated = send(&server, Method::PUT, &status, "core.v1.Node", &made)
        .await
        .ok();
    assert_eq!(
        updated["status"]["capacity"],
        json!({"cpu": "1500m", "memory": "3Gi"})
    );
    let condition = &updated["status"]["conditions"][0];
    assert_eq!(condition["lastHeartbeatTime"], "2026-01-02T03:04:05Z");
    assert!(condition["lastTransitionTime"].is_null(), "{condition}");

    let mut space = server
        .post(NAMESPACES, &json!({"metadata": {"name": "s"}}))
        .await
        .is(201);
    space["spec"]["finalizers"] = json!([]);
    let finalize = format!("{NAMESPACES}/s/finalize");
    let updated = send(&server, Method::PUT, &finalize, "core.v1.Namespace", &space)
        .await
        .ok();
    assert!(updated["spec"].get("finalizers").is_none(), "{updated}");
}

#[tokio::test]
async fn pods_are_bound_evicted_and_deleted() {
    let server = TestServer::new().await;
    server.post(NODES, &node("n")).await.is(201);
    for name in ["a", "b"] {
        server.post(PODS, &pod(name)).await.is(201);
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"},
    });
    let path = format!("{PODS}/a/binding");
    send(&server, Method::POST, &path, "core.v1.Binding", &binding)
        .await
        .is(201);
    let bound = server.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n");

    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"},
        "deleteOptions": {"gracePeriodSeconds": 0},
    });
    let path = format!("{PODS}/b/eviction");
    send(
        &server,
        Method::POST,
        &path,
        "policy.v1.Eviction",
        &eviction,
    )
    .await
    .is(201);
    server
        .get(&format!("{PODS}/b"))
        .await
        .fails(404, "NotFound");

    let one = format!("{PODS}/a");
    let options = |uid: &Value| {
        json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        })
    };
    let ty = "meta.v1.DeleteOptions";
    let other = options(&json!("another"));
    send(&server, Method::DELETE, &one, ty, &other)
        .await
        .fails(409, "Conflict");
    let same = options(&bound["metadata"]["uid"]);
    send(&server, Method::DELETE, &one, ty, &same).await.ok();
    server.get(&one).await.fails(404, "NotFound");
}

#[tokio::test]
async fn leases_keep_their_microseconds_and_their_zeros() {
    let server = TestServer::new().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let spec = json!({
        "holderIdentity": "", "leaseDurationSeconds": 40, "leaseTransitions": 0,
        "renewTime": "2026-01-02T03:04:05.600700Z",
    });
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "l"}, "spec": spec,
    });
    let made = send(&server, Method::POST, path, "coordination.v1.Lease", &lease).await;
    assert_eq!(made.is(201)["spec"], spec);
}

#[tokio::test]
async fn revision_data_stays_byte_for_byte() {
    const DATA: &str = r#"{"z":1.0,"a":"x \u0026\u0026 \"y\\","n":1e3,"é":[{}]}"#;
    let server = TestServer::new().await;
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let ty = type_named("apps.v1.ControllerRevision");
    let revision = json!({"metadata": {"name": "r"}, "revision": 7});
    let mut raw = message(ty, &revision, Style::Sparse);
    let mut data = Vec::new();
    put_bytes(&mut data, 1, DATA.as_bytes());
    put_bytes(&mut raw, 2, &data);
    let mut sent = b"k8s\0".to_vec();
    put_bytes(&mut sent, 2, &raw);
    let made = server.send(request(Method::POST, path, sent)).await;
    assert_eq!(made.is(201)["revision"], 7);
    let stored = server.get(&format!("{path}/r")).await;
    for answer in [made, stored] {
        assert!(
            answer.text().contains(&format!("\"data\":{DATA}")),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn tokens_are_asked_for_and_users_reviewed() {
    let server = TestServer::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "k"}});
    send(
        &server,
        Method::POST,
        accounts,
        "core.v1.ServiceAccount",
        &account,
    )
    .await
    .is(201);
    let asked = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["a"], "expirationSeconds": 1200},
    });
    let path = format!("{accounts}/k/token");
    let given = send(
        &server,
        Method::POST,
        &path,
        "authentication.v1.TokenRequest",
        &asked,
    )
    .await;
    let given = given.is(201);
    assert_eq!(given["spec"]["expirationSeconds"], 1200);
    assert_eq!(given["spec"]["audiences"], json!(["a"]));
    let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let told = send(
        &server,
        Method::POST,
        path,
        "authentication.v1.SelfSubjectReview",
        &asked,
    )
    .await;
    assert_eq!(told.is(201)["status"]["userInfo"]["username"], "tester");
}

#[tokio::test]
async fn the_media_type_may_have_parameters() {
    let server = TestServer::new().await;
    let map = body(
        type_named("core.v1.ConfigMap"),
        &map("a", &json!({})),
        Style::Go,
    );
    let mut post = request(Method::POST, MAPS, map);
    let kind = format!("{}; charset=utf-8", protobuf::MEDIA_TYPE);
    let kind = kind.parse().unwrap();
    post.headers_mut().insert(header::CONTENT_TYPE, kind);
    server.send(post).await.is(201);
}

#[tokio::test]
async fn answers_stay_json() {
    let server = TestServer::new().await;
    let both = format!("{},application/json", protobuf::MEDIA_TYPE);
    server.get_as(MAPS, &both).await.ok();
    server
        .get_as(MAPS, protobuf::MEDIA_TYPE)
        .await
        .fails(406, "NotAcceptable");
}

//! Resource quotas and limit ranges at admission. The words are upstream's.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{MAPS, MERGE, PODS, TestServer, map, pod};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

async fn quota(server: &TestServer, hard: Value) {
    let body = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    server.post(QUOTAS, &body).await.is(201);
}

fn asking(name: &str, cpu: &str) -> Value {
    let mut body = pod(name);
    body["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    body
}

#[tokio::test]
async fn objects_are_counted_and_deletion_frees() {
    let server = TestServer::new().await;
    // kube-root-ca.crt is there already.
    quota(&server, json!({"count/configmaps": "2", "services": "0"})).await;
    server.map("a", &json!({})).await;
    let words = "configmaps \"b\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2";
    let refused = server.post(MAPS, &map("b", &json!({}))).await;
    let status = refused.says(403, "Forbidden", words);
    assert_eq!(
        status["details"],
        json!({"name": "b", "kind": "configmaps"})
    );
    server.delete(&format!("{MAPS}/a")).await.ok();
    let dry = format!("{MAPS}?dryRun=All");
    server.post(&dry, &map("b", &json!({}))).await.is(201);
    server.post(MAPS, &map("b", &json!({}))).await.is(201);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}});
    server
        .post(SERVICES, &service)
        .await
        .fails(403, "Forbidden");
}

#[tokio::test]
async fn compute_is_limited_and_must_be_specified() {
    let server = TestServer::new().await;
    quota(
        &server,
        json!({"requests.cpu": "1", "limits.memory": "1Gi"}),
    )
    .await;
    let words = "pods \"p\" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c";
    server
        .post(PODS, &pod("p"))
        .await
        .says(403, "Forbidden", words);
    server
        .patch(
            MERGE,
            &format!("{QUOTAS}/q"),
            &json!({"spec": {"hard": {"limits.memory": null}}}),
        )
        .await
        .ok();
    server.post(PODS, &asking("a", "600m")).await.is(201);
    let words = "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1";
    server
        .post(PODS, &asking("b", "500m"))
        .await
        .says(403, "Forbidden", words);
    // A pod that has ended uses nothing any more.
    let ended = json!({"status": {"phase": "Succeeded"}});
    server
        .patch(MERGE, &format!("{PODS}/a/status"), &ended)
        .await
        .ok();
    server.post(PODS, &asking("b", "500m")).await.is(201);
}

#[tokio::test]
async fn concurrent_writes_do_not_exceed_a_quota_together() {
    let server = TestServer::new().await;
    quota(&server, json!({"pods": "7", "requests.cpu": "1"})).await;
    let pods: Vec<Value> = (0..64).map(|n| asking(&format!("p{n}"), "100m")).collect();
    let answers = join_all(pods.iter().map(|body| server.post(PODS, body))).await;
    let made = answers.iter().filter(|answer| answer.code == 201).count();
    assert_eq!(made, 7);
    for refused in answers.iter().filter(|answer| answer.code != 201) {
        refused.fails(403, "Forbidden");
    }
    let list = server.get(PODS).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 7);
    // The usage of refused and finished writes is released.
    server
        .delete(&format!(
            "{PODS}/{}",
            list["items"][0]["metadata"]["name"].as_str().unwrap()
        ))
        .await;
    let answers = join_all((0..9).map(|n| {
        let server = &server;
        async move { server.post(PODS, &asking(&format!("q{n}"), "100m")).await }
    }))
    .await;
    let made = answers.iter().filter(|answer| answer.code == 201).count();
    assert_eq!(made, 1);
}

#[tokio::test]
async fn updates_are_charged_for_their_growth() {
    let server = TestServer::new().await;
    quota(&server, json!({"services.nodeports": "1"})).await;
    let service = |name: &str, kind: &str| json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 1}]}});
    server
        .post(SERVICES, &service("a", "NodePort"))
        .await
        .is(201);
    server
        .post(SERVICES, &service("b", "ClusterIP"))
        .await
        .is(201);
    let words = "services \"b\" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1";
    let grow = json!({"spec": {"type": "NodePort"}});
    server
        .patch(MERGE, &format!("{SERVICES}/b"), &grow)
        .await
        .says(403, "Forbidden", words);
    server
        .patch(
            MERGE,
            &format!("{SERVICES}/a"),
            &json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await
        .ok();
    let shrink = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 1, "nodePort": null}]}});
    server
        .patch(MERGE, &format!("{SERVICES}/a"), &shrink)
        .await
        .ok();
    server
        .patch(MERGE, &format!("{SERVICES}/b"), &grow)
        .await
        .ok();
}

#[tokio::test]
async fn a_quota_may_count_quotas_and_its_status_is_its_own() {
    let server = TestServer::new().await;
    let body = json!({"metadata": {"name": "q"}, "spec": {"hard": {"resourcequotas": "1"}}, "status": {"used": {"pods": "9"}}});
    let made = server.post(QUOTAS, &body).await.is(201);
    assert_eq!(made["status"]["used"], Value::Null);
    let mut second = body;
    second["metadata"]["name"] = "r".into();
    let words = "resourcequotas \"r\" is forbidden: exceeded quota: q, requested: resourcequotas=1, used: resourcequotas=1, limited: resourcequotas=1";
    server
        .post(QUOTAS, &second)
        .await
        .says(403, "Forbidden", words);
    let status =
        json!({"spec": {"hard": {"pods": "1"}}, "status": {"used": {"resourcequotas": "1"}}});
    let changed = server
        .patch(MERGE, &format!("{QUOTAS}/q/status"), &status)
        .await
        .ok();
    assert_eq!(changed["spec"]["hard"], json!({"resourcequotas": "1"}));
    assert_eq!(changed["status"]["used"]["resourcequotas"], "1");
}

#[tokio::test]
async fn limit_ranges_set_defaults_and_bounds() {
    let server = TestServer::new().await;
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]}});
    server.post(RANGES, &range).await.is(201);
    let made = server.pod("plain", "").await;
    let resources = &made["spec"]["containers"][0]["resources"];
    assert_eq!(
        *resources,
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let mut large = pod("large");
    large["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}});
    let words = "pods \"large\" is forbidden: maximum cpu usage per Container is 1, but limit is 2";
    server
        .post(PODS, &large)
        .await
        .says(403, "Forbidden", words);
    // A quota of CPU is met by the defaults.
    quota(&server, json!({"limits.cpu": "1"})).await;
    server.pod("second", "").await;
    server
        .post(PODS, &pod("third"))
        .await
        .fails(403, "Forbidden");
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}});
    let words = "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi";
    server
        .post(CLAIMS, &claim)
        .await
        .says(403, "Forbidden", words);
}

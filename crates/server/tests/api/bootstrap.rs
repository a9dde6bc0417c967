//! The objects of a new cluster and of every new namespace.

use serde_json::json;

use crate::fixture::{MERGE, NAMESPACES, TestServer, Watch, names, version};

#[tokio::test]
async fn the_first_objects_are_there() {
    let server = TestServer::new().await;
    let spaces = server.get(NAMESPACES).await.ok();
    assert_eq!(
        names(&spaces),
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    let classes = server
        .get("/apis/scheduling.k8s.io/v1/priorityclasses")
        .await
        .ok();
    let values: Vec<i64> = classes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["value"].as_i64().unwrap())
        .collect();
    assert_eq!(
        names(&classes),
        ["system-cluster-critical", "system-node-critical"]
    );
    assert_eq!(values, [2_000_000_000, 2_000_001_000]);
    let service = server
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await
        .ok();
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    assert_eq!(service["spec"]["clusterIPs"], json!(["10.96.0.1"]));
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    let endpoints = server
        .get("/api/v1/namespaces/default/endpoints/kubernetes")
        .await
        .ok();
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "192.0.2.1");
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    assert_eq!(
        server.get(slice).await.ok()["endpoints"][0]["addresses"],
        json!(["192.0.2.1"])
    );
}

#[tokio::test]
async fn a_restart_writes_nothing_anew() {
    let server = TestServer::new().await;
    let path = "/api/v1/services";
    let before = server.get(path).await.ok()["items"].clone();
    let slices = server
        .get("/apis/discovery.k8s.io/v1/endpointslices")
        .await
        .ok()["items"]
        .clone();
    let server = server.reopen().await;
    assert_eq!(server.get(path).await.ok()["items"], before);
    assert_eq!(
        server
            .get("/apis/discovery.k8s.io/v1/endpointslices")
            .await
            .ok()["items"],
        slices
    );
}

async fn until_added(watch: &mut Watch, name: &str) {
    loop {
        let event = watch.next().await.expect("the watch goes on");
        if event["type"] == "ADDED" && event["object"]["metadata"]["name"] == name {
            return;
        }
    }
}

#[tokio::test]
async fn every_namespace_has_its_default_objects() {
    let server = TestServer::new().await;
    let accounts = "/api/v1/namespaces/s/serviceaccounts";
    let maps = "/api/v1/namespaces/s/configmaps";
    let (mut account, mut map) = (server.watch(accounts).await, server.watch(maps).await);
    server
        .post(NAMESPACES, &json!({"metadata": {"name": "s"}}))
        .await
        .is(201);
    until_added(&mut account, "default").await;
    until_added(&mut map, "kube-root-ca.crt").await;
    let ca = server.get(&format!("{maps}/kube-root-ca.crt")).await.ok();
    assert!(
        ca["data"]["ca.crt"]
            .as_str()
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    server.delete(&format!("{accounts}/default")).await.ok();
    until_added(&mut account, "default").await;
    server
        .delete(&format!("{maps}/kube-root-ca.crt"))
        .await
        .ok();
    until_added(&mut map, "kube-root-ca.crt").await;
}

#[tokio::test]
async fn changes_of_the_root_ca_config_map_are_reverted() {
    let server = TestServer::new().await;
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let ca = server.get(path).await.ok();
    let query = "fieldSelector=metadata.name%3Dkube-root-ca.crt";
    let from = version(&ca);
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut watch = server
        .watch(&format!("{maps}?{query}&resourceVersion={from}"))
        .await;
    let patch = json!({"data": {"ca.crt": "mine"}});
    server.patch(MERGE, path, &patch).await.ok();
    watch.expect("MODIFIED", "kube-root-ca.crt").await;
    let restored = watch.expect("MODIFIED", "kube-root-ca.crt").await;
    assert_eq!(restored["data"], ca["data"]);
}

#[tokio::test]
async fn a_terminating_namespace_gets_no_default_objects() {
    let server = TestServer::new().await;
    let accounts = "/api/v1/namespaces/s/serviceaccounts";
    let mut account = server.watch(accounts).await;
    server
        .post(NAMESPACES, &json!({"metadata": {"name": "s"}}))
        .await
        .is(201);
    until_added(&mut account, "default").await;
    server.delete(&format!("{NAMESPACES}/s")).await.ok();
    server.delete(&format!("{accounts}/default")).await.ok();
    // Namespaces are handled in order, so the objects of this one would exist before those of a later one.
    let mut other = server.watch("/api/v1/namespaces/t/serviceaccounts").await;
    server
        .post(NAMESPACES, &json!({"metadata": {"name": "t"}}))
        .await
        .is(201);
    until_added(&mut other, "default").await;
    server
        .get(&format!("{accounts}/default"))
        .await
        .fails(404, "NotFound");
}

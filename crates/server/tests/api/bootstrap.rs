//! What is there before the first client, and what every namespace is furnished with.

use serde_json::json;

use crate::kit::{Kit, MERGE, NAMESPACES, Watch, names, version};

#[tokio::test]
async fn the_first_objects_are_there() {
    let kit = Kit::new().await;
    let spaces = kit.get(NAMESPACES).await.ok();
    assert_eq!(
        names(&spaces),
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    let classes = kit
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
    let service = kit
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await
        .ok();
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    assert_eq!(service["spec"]["clusterIPs"], json!(["10.96.0.1"]));
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    let endpoints = kit
        .get("/api/v1/namespaces/default/endpoints/kubernetes")
        .await
        .ok();
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "192.0.2.1");
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    assert_eq!(
        kit.get(slice).await.ok()["endpoints"][0]["addresses"],
        json!(["192.0.2.1"])
    );
}

#[tokio::test]
async fn a_restart_writes_nothing_anew() {
    let kit = Kit::new().await;
    let path = "/api/v1/services";
    let before = kit.get(path).await.ok()["items"].clone();
    let slices = kit
        .get("/apis/discovery.k8s.io/v1/endpointslices")
        .await
        .ok()["items"]
        .clone();
    let kit = kit.reopen().await;
    assert_eq!(kit.get(path).await.ok()["items"], before);
    assert_eq!(
        kit.get("/apis/discovery.k8s.io/v1/endpointslices")
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
async fn every_namespace_is_furnished_and_stays_so() {
    let kit = Kit::new().await;
    let accounts = "/api/v1/namespaces/s/serviceaccounts";
    let maps = "/api/v1/namespaces/s/configmaps";
    let (mut account, mut map) = (kit.watch(accounts).await, kit.watch(maps).await);
    kit.post(NAMESPACES, &json!({"metadata": {"name": "s"}}))
        .await
        .is(201);
    until_added(&mut account, "default").await;
    until_added(&mut map, "kube-root-ca.crt").await;
    let ca = kit.get(&format!("{maps}/kube-root-ca.crt")).await.ok();
    assert!(
        ca["data"]["ca.crt"]
            .as_str()
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    kit.delete(&format!("{accounts}/default")).await.ok();
    until_added(&mut account, "default").await;
    kit.delete(&format!("{maps}/kube-root-ca.crt")).await.ok();
    until_added(&mut map, "kube-root-ca.crt").await;
}

#[tokio::test]
async fn the_ca_is_not_for_users_to_change() {
    let kit = Kit::new().await;
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let ca = kit.get(path).await.ok();
    let query = "fieldSelector=metadata.name%3Dkube-root-ca.crt";
    let from = version(&ca);
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut watch = kit
        .watch(&format!("{maps}?{query}&resourceVersion={from}"))
        .await;
    let patch = json!({"data": {"ca.crt": "mine"}});
    kit.patch(MERGE, path, &patch).await.ok();
    watch.expect("MODIFIED", "kube-root-ca.crt").await;
    let restored = watch.expect("MODIFIED", "kube-root-ca.crt").await;
    assert_eq!(restored["data"], ca["data"]);
}

#[tokio::test]
async fn a_terminating_namespace_is_left_bare() {
    let kit = Kit::new().await;
    let accounts = "/api/v1/namespaces/s/serviceaccounts";
    let mut account = kit.watch(accounts).await;
    kit.post(NAMESPACES, &json!({"metadata": {"name": "s"}}))
        .await
        .is(201);
    until_added(&mut account, "default").await;
    kit.delete(&format!("{NAMESPACES}/s")).await.ok();
    kit.delete(&format!("{accounts}/default")).await.ok();
    // Another namespace's furniture comes later in the same order, so this one's would be seen.
    let mut other = kit.watch("/api/v1/namespaces/t/serviceaccounts").await;
    kit.post(NAMESPACES, &json!({"metadata": {"name": "t"}}))
        .await
        .is(201);
    until_added(&mut other, "default").await;
    kit.get(&format!("{accounts}/default"))
        .await
        .fails(404, "NotFound");
}

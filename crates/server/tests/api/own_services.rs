//! The Services of the server itself: `kubernetes` and `kube-dns`.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{MERGE, TestServer};

const API: &str = "192.0.2.1:6443";
const DNS: &str = "192.0.2.1:10053";
const SYSTEM: &str = "/api/v1/namespaces/kube-system";

async fn start(dns: Option<&str>) -> TestServer {
    TestServer::advertising(TempDir::new().unwrap(), API, dns).await
}

async fn restart(server: TestServer, api: &str, dns: Option<&str>) -> TestServer {
    TestServer::advertising(server.close().await, api, dns).await
}

/// The addresses and ports of the slice of a Service, and those of its Endpoints, which must be the same.
async fn endpoints(server: &TestServer, namespace: &str, name: &str) -> Value {
    let path = format!("/api/v1/namespaces/{namespace}/endpoints/{name}");
    let endpoints = server.get(&path).await.ok();
    let group = "/apis/discovery.k8s.io/v1";
    let path = format!("{group}/namespaces/{namespace}/endpointslices/{name}");
    let slice = server.get(&path).await.ok();
    assert_eq!(
        slice["metadata"]["labels"]["kubernetes.io/service-name"],
        name
    );
    let subset = &endpoints["subsets"][0];
    assert_eq!(
        subset["addresses"][0]["ip"],
        slice["endpoints"][0]["addresses"][0]
    );
    if !subset.is_null() {
        assert_eq!(subset["ports"], slice["ports"]);
    }
    let ports = slice["ports"].as_array().unwrap().iter();
    let ports: Vec<String> = ports
        .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap()))
        .collect();
    json!([slice["endpoints"][0]["addresses"][0], ports])
}

#[tokio::test]
async fn n2_6_the_service_of_the_api_follows_its_address_and_port() {
    let server = start(None).await;
    let path = "/api/v1/namespaces/default/services/kubernetes";
    let ports = |service: Value| {
        let port = service["spec"]["ports"][0].clone();
        [port["port"].clone(), port["targetPort"].clone()]
    };
    assert_eq!(
        ports(server.get(path).await.ok()),
        [json!(443), json!(6443)]
    );
    assert_eq!(
        endpoints(&server, "default", "kubernetes").await,
        json!(["192.0.2.1", ["6443/TCP"]])
    );
    let server = restart(server, "192.0.2.7:7443", None).await;
    assert_eq!(
        ports(server.get(path).await.ok()),
        [json!(443), json!(7443)]
    );
    assert_eq!(
        endpoints(&server, "default", "kubernetes").await,
        json!(["192.0.2.7", ["7443/TCP"]])
    );
    // Endpoints are never loopback addresses.
    let server = restart(server, "127.0.0.1:6443", None).await;
    assert_eq!(
        endpoints(&server, "default", "kubernetes").await,
        json!([null, ["6443/TCP"]])
    );
}

#[tokio::test]
async fn n3_the_service_of_the_dns_server_is_the_tenth_address() {
    let server = start(Some(DNS)).await;
    let service = server
        .get(&format!("{SYSTEM}/services/kube-dns"))
        .await
        .ok();
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.10");
    assert_eq!(service["metadata"]["labels"]["k8s-app"], "kube-dns");
    let ports: Vec<Value> = service["spec"]["ports"].as_array().unwrap().clone();
    let shown: Vec<String> = ports
        .iter()
        .map(|port| format!("{} {} {}", port["name"], port["port"], port["protocol"]))
        .collect();
    assert_eq!(shown, [r#""dns" 53 "UDP""#, r#""dns-tcp" 53 "TCP""#]);
    let both = json!(["192.0.2.1", ["10053/UDP", "10053/TCP"]]);
    assert_eq!(endpoints(&server, "kube-system", "kube-dns").await, both);
    // The next start has another port.
    let server = restart(server, API, Some("192.0.2.1:40053")).await;
    let both = json!(["192.0.2.1", ["40053/UDP", "40053/TCP"]]);
    assert_eq!(endpoints(&server, "kube-system", "kube-dns").await, both);
    let again = server
        .get(&format!("{SYSTEM}/services/kube-dns"))
        .await
        .ok();
    assert_eq!(again["metadata"]["uid"], service["metadata"]["uid"]);
}

#[tokio::test]
async fn n3_a_server_without_a_dns_server_has_no_service_for_it() {
    for dns in [None, Some("127.0.0.1:10053")] {
        let server = restart(start(Some(DNS)).await, API, dns).await;
        for plural in ["services", "endpoints"] {
            let found = server.get(&format!("{SYSTEM}/{plural}/kube-dns")).await;
            assert_eq!(found.code, 404, "{plural} with {dns:?}");
        }
        let group = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";
        assert_eq!(server.get(&format!("{group}/kube-dns")).await.code, 404);
    }
}

#[tokio::test]
async fn n3_a_service_of_the_user_is_left_alone() {
    let server = start(None).await;
    let own = json!({"metadata": {"name": "kube-dns"}, "spec": {
        "clusterIP": "10.96.0.10", "selector": {"k8s-app": "kube-dns"},
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]}});
    let services = format!("{SYSTEM}/services");
    let before = server.post(&services, &own).await.is(201);
    let server = restart(server, API, Some(DNS)).await;
    let after = server.get(&format!("{services}/kube-dns")).await.ok();
    assert_eq!(after, before);
    let made = server.get(&format!("{SYSTEM}/endpoints/kube-dns")).await;
    assert_eq!(made.code, 404, "the endpoints are not ours");
    // And it stays when the server has no DNS server.
    let server = restart(server, API, None).await;
    let after = server.get(&format!("{services}/kube-dns")).await.ok();
    assert_eq!(after, before);
}

#[tokio::test]
async fn n3_a_service_that_the_user_takes_over_is_left_alone() {
    let server = start(Some(DNS)).await;
    let path = format!("{SYSTEM}/services/kube-dns");
    let selector = json!({"spec": {"selector": {"k8s-app": "coredns"}}});
    server.patch(MERGE, &path, &selector).await.is(200);
    let server = restart(server, API, Some("192.0.2.1:40053")).await;
    assert_eq!(
        endpoints(&server, "kube-system", "kube-dns").await,
        json!(["192.0.2.1", ["10053/UDP", "10053/TCP"]]),
        "they are the business of the endpoints controller now"
    );
    let server = restart(server, API, None).await;
    assert_eq!(server.get(&path).await.code, 200);
}

#[tokio::test]
async fn n3_a_taken_address_does_not_keep_the_server_from_starting() {
    let server = start(None).await;
    let other = json!({"metadata": {"name": "other"}, "spec": {"clusterIP": "10.96.0.10",
        "ports": [{"port": 80}]}});
    let path = "/api/v1/namespaces/default/services";
    server.post(path, &other).await.is(201);
    let server = restart(server, API, Some(DNS)).await;
    let missing = server.get(&format!("{SYSTEM}/services/kube-dns")).await;
    assert_eq!(missing.code, 404);
    // As soon as it is free, the Service gets it.
    let path = format!("{path}/other");
    server.delete(&path).await.is(200);
    let server = restart(server, API, Some(DNS)).await;
    let service = server
        .get(&format!("{SYSTEM}/services/kube-dns"))
        .await
        .ok();
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.10");
}

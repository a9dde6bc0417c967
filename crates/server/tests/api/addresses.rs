//! `ServiceCIDR` and `IPAddress`: what the server allocates cluster IPs from, and the addresses that services have.

use serde_json::{Value, json};

use crate::fixture::{MERGE, TestServer, names, version};

const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn service(server: &TestServer, name: &str, address: &str) -> Value {
    let body = json!({"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
    server.post(SERVICES, &body).await.is(201)
}

#[tokio::test]
async fn addresses_come_and_go_with_services() {
    let server = TestServer::new().await;
    let made = service(&server, "web", "10.96.0.20").await;
    service(&server, "headless", "None").await;
    let list = server.get(ADDRESSES).await.ok();
    assert_eq!(list["kind"], "IPAddressList");
    assert_eq!(names(&list), ["10.96.0.1", "10.96.0.20"]);
    let path = format!("{ADDRESSES}/10.96.0.20");
    let address = server.get(&path).await.ok();
    assert_eq!(
        (&address["kind"], &address["apiVersion"]),
        (&json!("IPAddress"), &json!("networking.k8s.io/v1"))
    );
    let parent = json!({"resource": "services", "namespace": "default", "name": "web"});
    assert_eq!(address["spec"]["parentRef"], parent);
    let labels = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    assert_eq!(address["metadata"]["labels"], labels);
    assert_eq!(version(&address), version(&made));
    let uid = &address["metadata"]["uid"];
    assert_ne!(*uid, made["metadata"]["uid"]);
    assert_eq!(server.get(&path).await.ok()["metadata"]["uid"], *uid);
    server.delete(&format!("{SERVICES}/web")).await.ok();
    let message = "ipaddresses.networking.k8s.io \"10.96.0.20\" not found";
    server.get(&path).await.says(404, "NotFound", message);
}

#[tokio::test]
async fn addresses_are_selected_and_listed_in_pages() {
    let server = TestServer::new().await;
    for (name, address) in [
        ("a", "10.96.0.30"),
        ("b", "10.96.0.10"),
        ("c", "10.96.0.20"),
    ] {
        service(&server, name, address).await;
    }
    let one = format!("{ADDRESSES}?fieldSelector=metadata.name%3D10.96.0.10");
    assert_eq!(names(&server.get(&one).await.ok()), ["10.96.0.10"]);
    let none = format!("{ADDRESSES}?labelSelector=ipaddress.kubernetes.io/ip-family%3DIPv6");
    assert!(names(&server.get(&none).await.ok()).is_empty());
    let first = server.get(&format!("{ADDRESSES}?limit=3")).await.ok();
    assert_eq!(names(&first), ["10.96.0.1", "10.96.0.10", "10.96.0.20"]);
    service(&server, "late", "10.96.0.40").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get(&format!("{ADDRESSES}?limit=3&continue={token}"))
        .await;
    assert_eq!(names(&rest.ok()), ["10.96.0.30"]);
}

#[tokio::test]
async fn a_watch_of_addresses_tells_of_addresses_alone() {
    let server = TestServer::new().await;
    let from = server.revision().await;
    let mut watch = server
        .watch(&format!("{ADDRESSES}?resourceVersion={from}"))
        .await;
    service(&server, "web", "10.96.0.20").await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    server
        .patch(MERGE, &format!("{SERVICES}/web"), &label)
        .await
        .ok();
    service(&server, "headless", "None").await;
    server.delete(&format!("{SERVICES}/web")).await.ok();
    assert_eq!(
        watch.take(2).await,
        ["ADDED 10.96.0.20", "DELETED 10.96.0.20"]
    );
    // The same from history.
    let mut again = server
        .watch(&format!("{ADDRESSES}?resourceVersion={from}"))
        .await;
    assert_eq!(
        again.take(2).await,
        ["ADDED 10.96.0.20", "DELETED 10.96.0.20"]
    );
    let mut state = server.watch(ADDRESSES).await;
    assert_eq!(state.take(1).await, ["ADDED 10.96.0.1"]);
}

#[tokio::test]
async fn the_range_is_the_servers_and_nothing_of_it_is_written() {
    let server = TestServer::new().await;
    let range = server.get(&format!("{RANGES}/kubernetes")).await.ok();
    assert_eq!(range["spec"]["cidrs"], json!(["10.96.0.0/16"]));
    let ready = &range["status"]["conditions"][0];
    assert_eq!(
        (&ready["type"], &ready["status"]),
        (&json!("Ready"), &json!("True"))
    );
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = server.get_as(RANGES, table).await.ok();
    assert_eq!(table["rows"][0]["cells"][1], "10.96.0.0/16");
    let body = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "more"}, "spec": {"cidrs": ["10.97.0.0/16"]}});
    let message = "create is not supported on resources of kind \"servicecidrs.networking.k8s.io\": \
        the range of cluster IPs is set when the server starts, with --service-cidr";
    let refused = server.post(RANGES, &body).await;
    refused.says(405, "MethodNotAllowed", message);
    let message = "delete is not supported on resources of kind \"ipaddresses.networking.k8s.io\": \
        IP addresses come and go with the cluster IPs of services";
    let refused = server.delete(&format!("{ADDRESSES}/10.96.0.1")).await;
    refused.says(405, "MethodNotAllowed", message);
}

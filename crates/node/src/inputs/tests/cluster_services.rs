//! What pods are told of the Services `kubernetes` and `kube-dns`.

use serde_json::json;

use super::fixture::{Fixture, pod};
use crate::pods::{Origin, Pod, PodInputs as _};
use crate::runtime::Image;

async fn api_variables(fixture: &Fixture, pod: &Pod) -> String {
    let image = Image::default();
    let config = fixture.inputs.container_config(pod, "c", 0, &image, &[]);
    let env = config.await.unwrap().env;
    let of_api = env
        .into_iter()
        .filter(|(name, _)| name.starts_with("KUBERNETES_"));
    let shown = of_api.map(|(name, value)| format!("{name}={value}"));
    shown.collect::<Vec<_>>().join(" ")
}

async fn name_servers(fixture: &Fixture, pod: &Pod) -> Vec<String> {
    let config = fixture.inputs.sandbox_config(pod, 0).await.unwrap();
    config.dns.unwrap().servers
}

/// Creates the Service `kube-dns` with this address.
async fn add_dns(fixture: &Fixture) {
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "kube-dns"},
        "spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 53, "protocol": "UDP"}]}});
    let path = "namespaces/kube-system/services";
    fixture.create(path, service).await;
}

fn container() -> Pod {
    pod(json!({"containers": [{"name": "c"}]}))
}

const DIRECT: &str = "KUBERNETES_SERVICE_HOST=192.0.2.5 KUBERNETES_SERVICE_PORT=6443 \
                      KUBERNETES_SERVICE_PORT_HTTPS=6443";

#[tokio::test]
async fn n2_6_with_a_proxy_pods_are_told_the_service_of_the_api() {
    let fixture = Fixture::with_proxy("192.0.2.5:6443").await;
    assert_eq!(
        api_variables(&fixture, &container()).await,
        "KUBERNETES_SERVICE_HOST=10.96.0.1 KUBERNETES_SERVICE_PORT=443 KUBERNETES_SERVICE_PORT_HTTPS=443"
    );
    // An API server that only this machine reaches has no endpoints.
    let fixture = Fixture::with_proxy("127.0.0.1:6443").await;
    assert_eq!(api_variables(&fixture, &container()).await, DIRECT);
}

#[tokio::test]
async fn n2_6_without_a_proxy_pods_are_told_the_address_of_the_api() {
    let fixture = Fixture::open().await;
    assert_eq!(api_variables(&fixture, &container()).await, DIRECT);
}

#[tokio::test]
async fn n3_with_a_proxy_pods_use_the_service_of_the_dns_server() {
    let fixture = Fixture::with_proxy("192.0.2.5:6443").await;
    add_dns(&fixture).await;
    assert_eq!(name_servers(&fixture, &container()).await, ["10.96.0.10"]);
    // Many pods that start together ask once.
    for _ in 0..20 {
        name_servers(&fixture, &container()).await;
    }
    let requests = fixture.requests.lock().unwrap();
    let of_dns = requests.iter().filter(|one| one.contains("kube-dns"));
    assert_eq!(of_dns.count(), 1);
}

#[tokio::test]
async fn n3_without_a_proxy_the_service_of_the_dns_server_is_not_used() {
    let fixture = Fixture::open().await;
    add_dns(&fixture).await;
    let servers = name_servers(&fixture, &container()).await;
    assert!(!servers.contains(&"10.96.0.10".to_owned()), "{servers:?}");
}

#[tokio::test]
async fn pods_wait_for_the_addresses_and_static_pods_do_not() {
    let fixture = Fixture::with_unreachable_api().await;
    let of_api = container();
    let failed = fixture.inputs.sandbox_config(&of_api, 0).await.unwrap_err();
    assert!(
        failed
            .message
            .contains("cannot read the services kube-system/kube-dns"),
        "{}",
        failed.message
    );
    let of_file = Pod::parse(of_api.object, Origin::File).unwrap();
    assert!(fixture.inputs.sandbox_config(&of_file, 0).await.is_ok());
}

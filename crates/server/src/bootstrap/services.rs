//! The Services that the server itself answers: `kubernetes` (the API) and `kube-dns` (names). Both have no selector; the
//! server writes their endpoints.
//!
//! Users and controllers may change these objects. They are restored every few seconds, as upstream's are, except a
//! `kube-dns` that is not the server's own: that one is left alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ensure, replace, server_user};
use crate::api::Api;
use crate::object;
use crate::registry::{self, Resource};
use crate::status::Result;
use crate::tree::{at, list, list_mut, map, number, set, text};
use crate::verbs;

/// As upstream's.
const RECONCILE_INTERVAL: Duration = Duration::from_secs(10);

const DNS_NAMESPACE: &str = "kube-system";
/// The name of the Service that most tools look for.
const DNS: &str = "kube-dns";
/// The place of its cluster IP in the range.
const DNS_ADDRESS: u32 = 10;
const DNS_PORT: u16 = 53;

/// Label of objects that the server keeps as it needs them.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const MANAGED_BY_US: &str = "kennel";

/// Creates the Services that are missing, and brings their endpoints up to date.
pub(super) async fn ensure_services(api: &Arc<Api>) -> Result<()> {
    kubernetes(api).await?;
    if let Err(reason) = dns(api).await? {
        tracing::warn!("pods have no cluster DNS server: {reason}");
    }
    Ok(())
}

/// Restores the Services and their endpoints for as long as the server runs.
pub(crate) async fn keep_services(api: Arc<Api>) {
    let ending = api.hubs.ending();
    loop {
        tokio::select! {
            () = ending.cancelled() => return,
            () = tokio::time::sleep(RECONCILE_INTERVAL) => {}
        }
        let restored = async {
            kubernetes(&api).await?;
            // Why there is none was logged at the start.
            dns(&api).await.map(drop)
        };
        if let Err(error) = restored.await {
            tracing::warn!(
                error = error.message,
                "cannot restore the services of this server"
            );
        }
    }
}

/// The Service `kubernetes`, through which pods reach the API.
async fn kubernetes(api: &Arc<Api>) -> Result<()> {
    let port = api.settings.address.port();
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let ports = json!([{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]);
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {
            "clusterIP": api.settings.service_cidr.0.first().to_string(),
            "ports": ports,
        },
    });
    ensure(api, "", "services", Some("default"), service).await?;
    follow_port(api, ("default", "kubernetes"), port).await?;
    let advertised = api.settings.advertised.address;
    let endpoint = advertised.map(|ip| SocketAddr::new(ip, port));
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    write_endpoints(api, ("default", "kubernetes"), endpoint, ports).await
}

/// The port may be another one than at the last start.
async fn follow_port(api: &Arc<Api>, (namespace, name): (&str, &str), port: u16) -> Result<()> {
    let target = |one: &Value| number(one, "targetPort");
    let is_old = |service: &Value| {
        let mut ports = list(service, "spec.ports").iter();
        ports.any(|one| target(one) != i64::from(port))
    };
    if !stored_service(api, namespace, name).is_some_and(|stored| is_old(&stored)) {
        return Ok(());
    }
    let change = |service: &mut Value| {
        for one in list_mut(service, "spec.ports") {
            set(one, "targetPort", json!(port));
        }
    };
    let (user, row) = (server_user(), registry::core("services"));
    verbs::amend(api, &user, row, Some(namespace), name, change).await
}

/// Why there is no Service `kube-dns`.
#[derive(Debug, thiserror::Error)]
enum NoDns {
    #[error("the range of cluster IPs is too small for the service {DNS_NAMESPACE}/{DNS}")]
    Range,
    /// Another service may have the address: names do not work then, and all else does.
    #[error("cannot create the service {DNS_NAMESPACE}/{DNS}: {0}")]
    Refused(String),
}

/// The Service `kube-dns`, through which pods reach the DNS server of this process.
async fn dns(api: &Arc<Api>) -> Result<std::result::Result<(), NoDns>> {
    let Some(endpoint) = api.settings.advertised.reachable_dns() else {
        return remove_dns(api).await.map(Ok);
    };
    let port = endpoint.port();
    if stored_service(api, DNS_NAMESPACE, DNS).is_none()
        && let Err(reason) = create_dns(api, port).await
    {
        return Ok(Err(reason));
    }
    if !stored_service(api, DNS_NAMESPACE, DNS).is_some_and(|service| is_ours(&service)) {
        return Ok(Ok(()));
    }
    let ports = json!([
        {"name": "dns", "port": port, "protocol": "UDP"},
        {"name": "dns-tcp", "port": port, "protocol": "TCP"},
    ]);
    follow_port(api, (DNS_NAMESPACE, DNS), port).await?;
    let endpoint = Some(endpoint);
    let written = write_endpoints(api, (DNS_NAMESPACE, DNS), endpoint, ports).await;
    written.map(Ok)
}

async fn create_dns(api: &Arc<Api>, port: u16) -> std::result::Result<(), NoDns> {
    let address = api.settings.service_cidr.0.nth(DNS_ADDRESS);
    let address = address.ok_or(NoDns::Range)?;
    let service = json!({
        "metadata": {"name": DNS, "labels": {
            "k8s-app": DNS,
            "kubernetes.io/cluster-service": "true",
            "kubernetes.io/name": "KubeDNS",
            MANAGED_BY: MANAGED_BY_US,
        }},
        "spec": {
            "clusterIP": address.to_string(),
            "ports": [
                {"name": "dns", "protocol": "UDP", "port": DNS_PORT, "targetPort": port},
                {"name": "dns-tcp", "protocol": "TCP", "port": DNS_PORT, "targetPort": port},
            ],
        },
    });
    let created = ensure(api, "", "services", Some(DNS_NAMESPACE), service).await;
    created.map_err(|error| NoDns::Refused(error.message))
}

/// Deletes our `kube-dns` if pods cannot reach a DNS server here, so that agents do not send them to it.
async fn remove_dns(api: &Arc<Api>) -> Result<()> {
    if !stored_service(api, DNS_NAMESPACE, DNS).is_some_and(|service| is_ours(&service)) {
        return Ok(());
    }
    for (group, plural) in [
        ("", "services"),
        ("", "endpoints"),
        ("discovery.k8s.io", "endpointslices"),
    ] {
        let row = registry::served(group, plural);
        let removed = verbs::remove(api, &server_user(), row, Some(DNS_NAMESPACE), DNS).await;
        match removed {
            Err(error) if error.code == 404 => {}
            other => other?,
        }
    }
    Ok(())
}

/// Whether the server created it, and nobody has given it endpoints of another kind since.
fn is_ours(service: &Value) -> bool {
    let label = at(service, "metadata.labels").get(MANAGED_BY);
    label.is_some_and(|label| label == MANAGED_BY_US) && map(service, "spec.selector").is_empty()
}

fn stored_service(api: &Api, namespace: &str, name: &str) -> Option<Value> {
    stored(api, registry::core("services"), namespace, name)
}

fn stored(api: &Api, row: &Resource, namespace: &str, name: &str) -> Option<Value> {
    let stored = api.store.get(&object::key(row, Some(namespace), name))?;
    serde_json::from_slice(&stored.value).ok()
}

/// Writes the Endpoints and the `EndpointSlice` of a Service.
async fn write_endpoints(
    api: &Arc<Api>,
    (namespace, name): (&str, &str),
    endpoint: Option<SocketAddr>,
    ports: Value,
) -> Result<()> {
    let ip = endpoint.map(|endpoint| endpoint.ip());
    let subsets = ip.map(|ip| json!({"addresses": [{"ip": ip}], "ports": ports}));
    let subsets = Vec::from_iter(subsets);
    let labels = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
    let object = json!({"metadata": {"name": name, "labels": labels}, "subsets": subsets});
    replace(api, "", "endpoints", namespace, object).await?;
    let labels = json!({"kubernetes.io/service-name": name});
    let endpoints = ip.map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}}));
    let is_v4 = ip.is_none_or(|ip| ip.is_ipv4());
    let family = if is_v4 { "IPv4" } else { "IPv6" };
    let slice = json!({
        "metadata": {"name": name, "labels": labels},
        "addressType": family,
        "endpoints": Vec::from_iter(endpoints),
        "ports": ports,
    });
    let (group, plural) = ("discovery.k8s.io", "endpointslices");
    let row = registry::served(group, plural);
    let stored = stored(api, row, namespace, name);
    if stored.is_some_and(|stored| text(&stored, "addressType") != family) {
        // The family of a slice is immutable.
        verbs::remove(api, &server_user(), row, Some(namespace), name).await?;
    }
    replace(api, group, plural, namespace, slice).await
}

//! No controller writes while its fence is closed: before its process leads, and after it has lost its lease.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use k8s_openapi::ByteString;
use kennel_client::Error;
use kennel_client::fence::Fence;
use kennel_control::certificates::{self, Authority};
use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kennel_control::nodes::{eviction, lifecycle};
use kennel_control::{
    control_plane_role, daemonset, disruption, endpoints, garbage_collector, namespaces, node_ipam,
    podgc, resource_quota, scheduler, token_cleaner,
};
use kennel_core::pod_network::MODE_ANNOTATION;
use kube::Client;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{ABSENT, api};

type Running = BoxFuture<'static, Result<(), Error>>;
type Run = fn(Client, &mut Informers, Setup) -> Running;

/// Long enough for every delay and deadline of a controller.
const WHILE: Duration = Duration::from_mins(10);

const CONTROLLERS: [(&str, Run); 16] = [
    ("certificate approver", |client, informers, setup| {
        let reserved = Arc::new(|| certificates::names_in(""));
        certificates::approve::run(client, informers, reserved, setup).boxed()
    }),
    ("certificate cleaner", |client, informers, setup| {
        certificates::clean::run(client, informers, setup).boxed()
    }),
    ("certificate signer", |client, informers, setup| {
        let authority = Arc::new(|| Authority::new(String::new(), String::new()));
        certificates::sign::run(client, informers, authority, setup).boxed()
    }),
    ("control-plane role", |client, informers, setup| {
        control_plane_role::run(client, informers, "n1".to_owned(), setup).boxed()
    }),
    ("daemonset controller", |client, informers, setup| {
        daemonset::run(client, informers, daemonset::Settings::default(), setup).boxed()
    }),
    ("disruption controller", |client, _, setup| {
        disruption::run(client, setup).boxed()
    }),
    ("endpoints controllers", |client, informers, setup| {
        let clients = endpoints::Clients {
            slices: Some(client.clone()),
            endpoints: Some(client),
        };
        endpoints::run(clients, informers, setup).boxed()
    }),
    ("garbage collector", |client, informers, setup| {
        garbage_collector::run(client, informers, setup).boxed()
    }),
    ("namespace controller", |client, _, setup| {
        namespaces::run(client, setup).boxed()
    }),
    ("node IPAM controller", |client, informers, setup| {
        let cluster = "10.128.0.0/9".parse().expect("it is a range");
        node_ipam::run(client, informers, cluster, setup).boxed()
    }),
    ("node lifecycle controller", |client, informers, setup| {
        lifecycle::run(client, informers, lifecycle::Settings::default(), setup).boxed()
    }),
    ("pod garbage collector", |client, informers, setup| {
        podgc::run(client, informers, setup).boxed()
    }),
    ("resource quota controller", |client, _, setup| {
        resource_quota::run(client, setup).boxed()
    }),
    ("scheduler", |client, informers, setup| {
        scheduler::run(client, informers, setup).boxed()
    }),
    ("taint eviction controller", |client, informers, setup| {
        eviction::run(client, informers, setup).boxed()
    }),
    ("token cleaner", |client, _, setup| {
        token_cleaner::run(client, setup).boxed()
    }),
];

/// A cluster in which each controller has something to write.
fn cluster(path: &str) -> Value {
    let old = "2020-01-01T00:00:00Z";
    match path {
        "/api/v1/namespaces" => json!([cluster("/api/v1/namespaces/ns")]),
        "/api/v1/namespaces/ns" => json!({
            "metadata": {"name": "ns", "uid": "nu", "deletionTimestamp": old},
            "spec": {"finalizers": ["kubernetes"]}}),
        "/api/v1/nodes" => json!([{
            "metadata": {"name": "n1", "uid": "n1u", "resourceVersion": "1",
                "annotations": {MODE_ANNOTATION: "auto"}},
            "spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]},
            "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"},
                       "conditions": [{"type": "Ready", "status": "True"}]}}]),
        "/api/v1/pods" => json!([
            {"metadata": {"name": "bound", "namespace": "ns", "uid": "bu", "resourceVersion": "1",
                "labels": {"app": "web"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
                                     "uid": "ou"}]},
             "spec": {"containers": [], "nodeName": "n1"}, "status": {"phase": "Running"}},
            {"metadata": {"name": "pending", "namespace": "ns", "uid": "pu"},
             "spec": {"containers": []}},
            {"metadata": {"name": "deleted", "namespace": "ns", "uid": "du",
                "deletionTimestamp": old}, "spec": {"containers": []}}]),
        "/api/v1/namespaces/ns/configmaps/owner" => ABSENT,
        "/api/v1/services" => json!([{
            "metadata": {"name": "web", "namespace": "ns", "uid": "su"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}]),
        "/api/v1/resourcequotas" => json!([{
            "metadata": {"name": "q", "namespace": "ns", "uid": "qu"},
            "spec": {"hard": {"pods": "5"}}}]),
        "/api/v1/namespaces/kube-system/secrets" => json!([{
            "metadata": {"name": "t", "namespace": "kube-system", "uid": "tu",
                "resourceVersion": "1"},
            "data": {"expiration": ByteString(old.into())}}]),
        "/apis/apps/v1/daemonsets" => json!([{
            "metadata": {"name": "d", "namespace": "ns", "uid": "dsu", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "d"}},
                     "template": {"metadata": {"labels": {"app": "d"}}, "spec": {}}}}]),
        "/apis/policy/v1/poddisruptionbudgets" => json!([{
            "metadata": {"name": "b", "namespace": "ns", "uid": "pdbu", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}]),
        "/apis/certificates.k8s.io/v1/certificatesigningrequests" => {
            let signer = "kubernetes.io/kube-apiserver-client";
            let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
            json!([
                {"metadata": {"name": "open", "uid": "cu"}, "spec": {
                    "request": request(), "signerName": kubelet, "username": "system:node:n1",
                    "groups": ["system:nodes"], "usages": ["digital signature", "client auth"]}},
                {"metadata": {"name": "approved", "uid": "au"},
                 "spec": {"request": ByteString(b"?".to_vec()), "signerName": signer},
                 "status": {"conditions": [{"type": "Approved", "status": "True"}]}},
                {"metadata": {"name": "left", "uid": "lu", "creationTimestamp": old},
                 "spec": {"request": ByteString(b"?".to_vec()), "signerName": signer}},
            ])
        }
        _ => json!([]),
    }
}

/// A node's request for the certificate that it is a client with.
fn request() -> ByteString {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let mut push = |kind, name: &str| params.distinguished_name.push(kind, name);
    push(DnType::OrganizationName, "system:nodes");
    push(DnType::CommonName, "system:node:n1");
    let key = KeyPair::generate().expect("keys can be made");
    let request = params.serialize_request(&key);
    let pem = request.and_then(|request| request.pem());
    ByteString(pem.expect("its fields are valid").into_bytes())
}

#[tokio::test(start_paused = true)]
async fn no_controller_writes_while_its_fence_is_closed() {
    for (name, run) in CONTROLLERS {
        let (client, mut written) = api(cluster);
        let (fence, stop) = (Fence::closed(), CancellationToken::new());
        let mut informers = Informers::new(&client);
        let setup = Setup::new(fence.clone(), stop.clone());
        let running = tokio::spawn(run(client, &mut informers, setup));
        tokio::spawn(informers.run(stop.clone()));
        sleep(WHILE).await;
        assert_eq!(written.try_recv().ok(), None, "{name} does not lead yet");
        fence.open_from(fence.now(), WHILE);
        let first = timeout(WHILE, written.recv()).await;
        assert!(
            matches!(first, Ok(Some(_))),
            "{name} has something to write"
        );
        fence.close();
        // What was in flight arrives at once.
        sleep(Duration::from_secs(1)).await;
        while written.try_recv().is_ok() {}
        sleep(WHILE).await;
        assert_eq!(written.try_recv().ok(), None, "{name} leads no more");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

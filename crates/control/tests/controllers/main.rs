//! The controllers against a mock API.
//!
//! It answers lists from fixtures, watches with silence, and records writes. The rules are tested in `kennel_core`; here it
//! is that the controllers carry out what they decide.

mod fence;

use std::convert::Infallible;
use std::future::pending;

use http::{Method, Request, Response};
use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

type Write = (Method, String, Value);
/// More than any test makes.
const WRITES: usize = 256;
/// Lists, and single objects, by path.
type Lists = fn(&str) -> Value;
/// Instead of a list: there is nothing at this path.
const ABSENT: Value = Value::Null;

/// A client of the fixture, and the writes it makes.
fn api(lists: Lists) -> (Client, mpsc::Receiver<Write>) {
    let (notes, written) = mpsc::channel(WRITES);
    let service = tower::service_fn(move |request: Request<Body>| {
        let notes = notes.clone();
        async move { Ok::<_, Infallible>(answer(lists, &notes, request).await) }
    });
    (Client::new(service, "default"), written)
}

async fn answer(
    lists: Lists,
    notes: &mpsc::Sender<Write>,
    request: Request<Body>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if head.uri.query().is_some_and(|q| q.contains("watch=true")) {
        return pending().await;
    }
    if head.method == Method::GET {
        return get(&path, &lists(&path));
    }
    let body = body
        .collect_bytes()
        .await
        .expect("bodies of tests are whole");
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let recorded = notes.try_send((head.method, path, body.clone()));
    assert!(
        !matches!(recorded, Err(TrySendError::Full(_))),
        "a test makes few writes"
    );
    reply(201, &body)
}

fn get(path: &str, items: &Value) -> Response<Body> {
    if *items == ABSENT {
        return reply(
            404,
            &json!({"kind": "Status", "code": 404, "reason": "NotFound"}),
        );
    }
    let resource = |plural: &str, kind: &str| {
        json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind,
               "verbs": ["list", "watch", "delete", "deletecollection"]})
    };
    reply(
        200,
        &match path {
            "/api" => json!({"kind": "APIVersions", "versions": ["v1"],
                             "serverAddressByClientCIDRs": []}),
            "/apis" => json!({"kind": "APIGroupList", "groups": []}),
            "/api/v1" => json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                resource("pods", "Pod"), resource("configmaps", "ConfigMap")]}),
            _ if items.is_object() => items.clone(),
            _ => json!({"metadata": {"resourceVersion": "1"}, "items": items}),
        },
    )
}

fn reply(code: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).expect("codes of tests are valid");
    response
}

fn node(name: &str) -> Value {
    let allocatable = json!({"cpu": "4", "memory": "4Gi", "pods": "10"});
    json!({"metadata": {"name": name, "uid": name}, "status": {"allocatable": allocatable}})
}

fn daemon_set_lists(path: &str) -> Value {
    match path {
        "/apis/apps/v1/daemonsets" => json!([{
            "metadata": {"name": "d", "namespace": "ns", "uid": "du", "generation": 4},
            "spec": {"selector": {"matchLabels": {"app": "d"}},
                     "template": {"metadata": {"labels": {"app": "d"}}, "spec": {}}}}]),
        "/api/v1/nodes" => json!([node("n1"), node("n2")]),
        "/api/v1/pods" => json!([{
            "metadata": {"name": "stray", "namespace": "ns", "uid": "pu", "labels": {"app": "d"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d",
                                     "uid": "du", "controller": true}]},
            "spec": {"containers": [], "nodeName": "n1"},
            "status": {"conditions": [{"type": "Ready", "status": "True",
                                       "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}]),
        _ => json!([]),
    }
}

#[tokio::test]
async fn daemon_pods_are_created_where_they_are_missing_and_the_status_is_written() {
    let (client, mut written) = api(daemon_set_lists);
    let stop = CancellationToken::new();
    let mut informers = Informers::new(&client);
    let settings = kennel_control::daemonset::Settings::default();
    let setup = Setup::unfenced(stop.clone());
    let controller = kennel_control::daemonset::run(client, &mut informers, settings, setup);
    let running = tokio::spawn(controller);
    tokio::spawn(informers.run(stop.clone()));
    let (method, path, revision) = written.recv().await.unwrap();
    let revisions = "/apis/apps/v1/namespaces/ns/controllerrevisions";
    assert_eq!((method, path.as_str()), (Method::POST, revisions));
    assert_eq!(revision["revision"], 1);
    let (method, path, pod) = written.recv().await.unwrap();
    let pods = "/api/v1/namespaces/ns/pods";
    assert_eq!((method, path.as_str()), (Method::POST, pods));
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = &pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchFields"][0]["values"], json!(["n2"]));
    let status = loop {
        let (method, path, body) = written.recv().await.unwrap();
        if path == "/apis/apps/v1/namespaces/ns/daemonsets/d/status" {
            assert_eq!(method, Method::PUT);
            assert_eq!(body["metadata"]["uid"], "du");
            break body["status"].clone();
        }
        assert_eq!(path, "/api/v1/namespaces/ns/events");
    };
    assert_eq!(status["desiredNumberScheduled"], 2);
    assert_eq!(status["currentNumberScheduled"], 1);
    assert_eq!(status["numberReady"], 1);
    assert_eq!(status["observedGeneration"], 4);
    stop.cancel();
    running.await.unwrap().unwrap();
    while let Some((_, path, _)) = written.recv().await {
        assert_eq!(
            path, "/api/v1/namespaces/ns/events",
            "nothing is asked for twice"
        );
    }
}

fn pending_pod_lists(path: &str) -> Value {
    match path {
        "/api/v1/nodes" => json!([node("n1"), node("n2")]),
        "/api/v1/pods" => json!([{
            "metadata": {"name": "p", "namespace": "ns", "uid": "pu"},
            "spec": {"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In",
                                      "values": ["n2"]}]}]}}}}}]),
        _ => json!([]),
    }
}

#[tokio::test]
async fn a_pinned_pod_is_bound_to_its_node() {
    let (client, mut written) = api(pending_pod_lists);
    let stop = CancellationToken::new();
    let mut informers = Informers::new(&client);
    let setup = Setup::unfenced(stop.clone());
    let controller = kennel_control::scheduler::run(client, &mut informers, setup);
    let running = tokio::spawn(controller);
    tokio::spawn(informers.run(stop.clone()));
    let (method, path, binding) = written.recv().await.unwrap();
    assert_eq!(method, Method::POST);
    assert_eq!(path, "/api/v1/namespaces/ns/pods/p/binding");
    assert_eq!(binding["target"]["name"], "n2");
    assert_eq!(binding["metadata"]["uid"], "pu");
    stop.cancel();
    running.await.unwrap().unwrap();
}

fn service_lists(path: &str) -> Value {
    match path {
        "/api/v1/nodes" => json!([node("n1")]),
        "/api/v1/services" => json!([
            {"metadata": {"name": "web", "namespace": "ns", "uid": "su"},
             "spec": {"selector": {"app": "web"}, "clusterIP": "None", "ports": [{"port": 80}]}},
            {"metadata": {"name": "kubernetes", "namespace": "default", "uid": "ku"},
             "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 443}]}}]),
        "/api/v1/pods" => json!([{
            "metadata": {"name": "p", "namespace": "ns", "uid": "pu", "labels": {"app": "web"}},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True",
                                "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}]),
        "/api/v1/endpoints" => json!([
            {"metadata": {"name": "kubernetes", "namespace": "default", "uid": "eu"},
             "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]},
            {"metadata": {"name": "left", "namespace": "ns", "uid": "lu",
                "labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}}]),
        _ => json!([]),
    }
}

#[tokio::test]
async fn endpoints_are_written_for_services_with_a_selector_only() {
    let (client, mut written) = api(service_lists);
    let stop = CancellationToken::new();
    let mut informers = Informers::new(&client);
    let clients = kennel_control::endpoints::Clients {
        slices: Some(client.clone()),
        endpoints: Some(client),
    };
    let setup = Setup::unfenced(stop.clone());
    let controller = kennel_control::endpoints::run(clients, &mut informers, setup);
    let running = tokio::spawn(controller);
    tokio::spawn(informers.run(stop.clone()));
    let mut writes = Vec::new();
    for _ in 0..3 {
        writes.push(written.recv().await.unwrap());
    }
    writes.sort_by_key(|(method, path, _)| (method.to_string(), path.clone()));
    let left = "/api/v1/namespaces/ns/endpoints/left";
    assert_eq!(
        (&writes[0].0, writes[0].1.as_str()),
        (&Method::DELETE, left)
    );
    let (_, path, endpoints) = &writes[1];
    assert_eq!(path, "/api/v1/namespaces/ns/endpoints");
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "10.0.0.1");
    let (_, path, slice) = &writes[2];
    assert_eq!(
        path,
        "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
    );
    assert_eq!(slice["endpoints"][0]["targetRef"]["uid"], "pu");
    let trigger = "endpoints.kubernetes.io/last-change-trigger-time";
    assert_eq!(
        slice["metadata"]["annotations"][trigger],
        "1970-01-01T00:00:00Z"
    );
    let name = slice["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(written.recv().await.is_none(), "nothing is asked for twice");
}

//! A DaemonSet controller that panics in the middle of a rollout: it is restarted and finishes the rollout, and
//! the other components keep running.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Method, Request};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kennel_control::daemonset::{self, Settings};
use kennel_control::frame::Setup;
use kennel_control::nodes::lifecycle;
use kennel_control::scheduler;
use kennel_simulation::{Clients, Simulation, Watcher};
use kennel_testkit::inprocess::{self, Server};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use kube::client::Body;
use serde_json::json;

use super::*;

const NODES: u32 = 8;
/// The pod whose creation panics.
const FATAL: u32 = 4;

/// A client that panics instead of sending the fourth pod, once.
fn panicking(client: Client) -> Client {
    let pods = Arc::new(AtomicU32::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, pods) = (client.clone(), pods.clone());
        async move {
            let is_pod =
                request.method() == Method::POST && request.uri().path().ends_with("/pods");
            let is_fatal = is_pod && pods.fetch_add(1, Ordering::SeqCst) + 1 == FATAL;
            assert!(!is_fatal, "on purpose");
            let answer = client.send(request).await;
            Ok::<_, Infallible>(answer.expect("a server in the same process answers"))
        }
    });
    Client::new(service, "default")
}

fn components(server: &Server) -> Supervisor {
    let mut supervisor = Supervisor::new(server.client("informers"));
    let controller = panicking(server.client("controller"));
    supervisor.start_controller("daemonset controller", move |informers, stop| {
        let setup = Setup::unfenced(stop);
        daemonset::run(controller.clone(), informers, Settings::default(), setup)
    });
    let client = server.client("scheduler");
    supervisor.start_controller("scheduler", move |informers, stop| {
        scheduler::run(client.clone(), informers, Setup::unfenced(stop))
    });
    let client = server.client("node lifecycle");
    supervisor.start_controller("node lifecycle controller", move |informers, stop| {
        let settings = lifecycle::Settings::default();
        lifecycle::run(client.clone(), informers, settings, Setup::unfenced(stop))
    });
    let api = server.api();
    supervisor.start("simulated nodes", move |_, stop| {
        let api = api.clone();
        let clients = Clients {
            watcher: Watcher::Shared(inprocess::client(api.clone(), "nodes")),
            node: Box::new(move |name| inprocess::client(api.clone(), name)),
        };
        kennel_simulation::run(clients, Simulation::new(NODES), stop)
    });
    supervisor
}

/// Waits until `wanted` daemons are available.
async fn available(client: &Client, wanted: u32) {
    let sets: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let set = sets.get("agent").await.unwrap();
        let status = set.status.unwrap_or_default();
        if status.number_available == Some(wanted.cast_signed()) {
            return;
        }
        assert!(Instant::now() < deadline, "{status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_panics_finishes_its_work_after_the_restart() {
    let server = Server::open().await;
    let supervisor = components(&server);
    let restarts = supervisor.restart_metrics();
    let running = supervisor.run();
    let admin = server.client("admin");
    let sets: Api<DaemonSet> = Api::default_namespaced(admin.clone());
    let set = json!({"metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}},
                     "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let set: DaemonSet = serde_json::from_value(set).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();
    available(&admin, NODES).await;
    let page = Page::of([&restarts as &dyn Observed]);
    let has = |line: &str| assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
    has("kennel_component_failures_total{component=\"daemonset controller\"} 1");
    has("kennel_component_starts_total{component=\"daemonset controller\"} 2");
    for unharmed in ["scheduler", "simulated nodes"] {
        has(&format!(
            "kennel_component_failures_total{{component=\"{unharmed}\"}} 0"
        ));
        has(&format!(
            "kennel_component_starts_total{{component=\"{unharmed}\"}} 1"
        ));
    }
    let pods: Api<Pod> = Api::default_namespaced(admin);
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let mut nodes: Vec<String> = pods
        .iter()
        .map(|pod| pod.spec.clone().unwrap().node_name.unwrap())
        .collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), pods.items.len(), "one pod on each node");
    running.stop(Duration::from_secs(20)).await;
}

//! The pods of one node under the real agent with the fake runtime, against a real
//! API: what it writes, and what the API makes of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::fence::Fence;
use kennel_client::write::{Call, Writer};
use kennel_core::pod::eviction::Pressures;
use kennel_node::agent::Settings;
use kennel_node::inputs::Inputs;
use kennel_node::pods::{CommandSender, Dependencies, Origin, PodUpdate, manager, source};
use kennel_node::probes::Prober;
use kennel_node::runtime::Runtime as _;
use kennel_node::runtime::fake::FakeRuntime;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::simulation::fixture::{Fixture, PODS, condition, container, is_ready};

/// A node of the name `one`, with its directory; ends when it is dropped.
struct Node {
    runtime: FakeRuntime,
    _tasks: JoinSet<()>,
    _mirrors: mpsc::Receiver<PodUpdate>,
    _object: watch::Sender<Arc<Value>>,
    _dir: TempDir,
}

fn start(fixture: &Fixture, runtime: &FakeRuntime) -> Node {
    let dir = TempDir::new().unwrap();
    let settings = Settings::defaults("one", IpAddr::from([192, 0, 2, 1]), dir.path());
    let settings = Arc::new(settings);
    let client = fixture.client("system:node:one");
    let allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let node = json!({"metadata": {"name": "one"}, "status": {"allocatable": allocatable}});
    let (node, receiver) = watch::channel(Arc::new(node));
    let about = runtime.about();
    let dependencies = Dependencies {
        runtime: Arc::new(runtime.clone()),
        inputs: Arc::new(Inputs::new(client.clone(), Arc::clone(&settings), about)),
        probes: Arc::new(Prober::new(Arc::new(runtime.clone()))),
        settings,
        writer: Writer::new(client.clone(), Fence::open()),
        cache: Arc::default(),
        node: receiver,
        pressures: watch::channel(Pressures::default()).1,
        sources: vec![Origin::Api],
    };
    let (pods, changes) = mpsc::channel(16);
    let (mirrors, of_mirrors) = mpsc::channel(16);
    let (stop, (_orders, ordered)) = (CancellationToken::new(), CommandSender::channel());
    let mut tasks = JoinSet::new();
    tasks.spawn(manager::run(dependencies, changes, ordered, stop.clone()));
    tasks.spawn(async move { source::api(client, "one", pods, mirrors, stop).await });
    Node {
        runtime: runtime.clone(),
        _tasks: tasks,
        _mirrors: of_mirrors,
        _object: node,
        _dir: dir,
    }
}

/// A pod of one container that runs, and needs nothing of the cluster.
fn quiet() -> Value {
    json!({"automountServiceAccountToken": false})
}

fn first_sandbox(node: &Node) -> String {
    let found = node.runtime.all().remove(0);
    found.observed.sandbox.unwrap().id
}

#[tokio::test(start_paused = true)]
async fn a_node_s_pods_run_and_end_by_the_api() {
    let fixture = Fixture::new(0, "{}", 0).await;
    let node = start(&fixture, &FakeRuntime::new());
    fixture.pod("web", "one", quiet()).await;
    fixture.pod("elsewhere", "two", quiet()).await;
    let pod = fixture.pod_until("web", is_ready).await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["status"]["hostIP"], "192.0.2.1");
    assert_eq!(node.runtime.all().len(), 1);
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let path = format!("{PODS}/web");
    fixture.send(Call::delete(&path, uid)).await.unwrap();
    fixture.gone(&path).await;
    assert!(node.runtime.all().is_empty());
    let events = fixture
        .until("/api/v1/namespaces/default/events", |list| {
            let events = list["items"].as_array().into_iter().flatten();
            let mut reasons = events.map(|event| event["reason"].as_str().unwrap());
            reasons.any(|reason| reason == "Killing")
        })
        .await;
    let event = &events["items"][0];
    assert_eq!(event["involvedObject"]["uid"], uid);
    assert_eq!(
        event["source"],
        json!({"component": "kubelet", "host": "one"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_changes_only_what_is_the_node_s_to_say() {
    let fixture = Fixture::new(0, "{}", 0).await;
    let node = start(&fixture, &FakeRuntime::new());
    let mut spec = quiet();
    spec["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    fixture.pod("web", "one", spec).await;
    let waits = |pod: &Value| condition(pod, "ContainersReady") == "True";
    let pod = fixture.pod_until("web", waits).await;
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().unwrap().clone();
        conditions
            .into_iter()
            .find(|c| c["type"] == "Ready")
            .unwrap()
    };
    assert_eq!(ready(&pod)["reason"], "ReadinessGatesNotReady");
    let gate = json!({"status": {"conditions": [{"type": "example.com/gate", "status": "True"}]}});
    fixture.patch(&format!("{PODS}/web/status"), &gate).await;
    let pod = fixture.pod_until("web", is_ready).await;
    assert!(
        ready(&pod)["reason"].is_null(),
        "what does not hold any more is not said"
    );
    assert!(ready(&pod)["message"].is_null());
    let old = pod["status"]["podIP"].clone();
    node.runtime.crash_sandbox(&first_sandbox(&node));
    let moved = |pod: &Value| is_ready(pod) && pod["status"]["podIP"] != old;
    let pod = fixture.pod_until("web", moved).await;
    assert_eq!(condition(&pod, "example.com/gate"), "True");
    assert_eq!(
        pod["status"]["podIPs"],
        json!([{"ip": pod["status"]["podIP"]}])
    );
    assert_eq!(container(&pod)["restartCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn another_agent_takes_up_what_runs_and_a_new_pod_may_have_an_old_name() {
    let fixture = Fixture::new(0, "{}", 0).await;
    let runtime = FakeRuntime::new();
    let node = start(&fixture, &runtime);
    fixture.pod("web", "one", quiet()).await;
    let before = fixture.pod_until("web", is_ready).await;
    drop(node);
    let _node = start(&fixture, &runtime);
    fixture.pass(Duration::from_secs(30)).await;
    let after = fixture.pod_until("web", is_ready).await;
    assert_eq!(container(&after), container(&before));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    let by_force = Call {
        body: options.to_string(),
        ..Call::delete(format!("{PODS}/web"), "")
    };
    fixture.send(by_force).await.unwrap();
    fixture.pod("web", "one", quiet()).await;
    let new = fixture.pod_until("web", is_ready).await;
    assert_ne!(new["metadata"]["uid"], before["metadata"]["uid"]);
    fixture.pass(Duration::from_secs(5)).await;
    let left = runtime.all();
    assert_eq!(left.len(), 1, "the old one is gone");
    assert_eq!(left[0].pod.uid, new["metadata"]["uid"].as_str().unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_fails_for_all_to_see() {
    let fixture = Fixture::new(0, "{}", 0).await;
    let _node = start(&fixture, &FakeRuntime::new());
    let mut spec = quiet();
    spec["nodeSelector"] = json!({"disk": "ssd"});
    fixture.pod("picky", "one", spec).await;
    let failed = |pod: &Value| pod["status"]["phase"] == "Failed";
    let pod = fixture.pod_until("picky", failed).await;
    assert_eq!(pod["status"]["reason"], "NodeAffinity");
    assert!(pod["status"]["containerStatuses"].is_null());
}

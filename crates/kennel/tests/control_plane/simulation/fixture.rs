//! An API in the test's own process with simulated nodes, and what a test asks of it.
//!
//! The clock is paused, and it moves only while a test waits: a little at each look, so that the disk,
//! which knows nothing of it, keeps up.

use std::sync::mpsc;
use std::time::Duration;

use kennel_client::fence::Fence;
use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_simulation::scenario::Scenario;
use kennel_simulation::{Clients, Handle, Simulation};
use kennel_testkit::inprocess::Server;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const NODES: &str = "/api/v1/nodes";
/// How long a test waits at most: more than any scenario here takes.
const TIMEOUT: Duration = Duration::from_mins(20);
/// How far the clock moves from look to look.
const STEP: Duration = Duration::from_millis(500);
/// What the disk gets between two looks.
const BREATH: Duration = Duration::from_millis(5);

pub(crate) struct Fixture {
    server: Server,
    admin: Writer,
    nodes: Handle,
    _held: mpsc::SyncSender<()>,
}

impl Fixture {
    /// So many nodes to which this happens.
    pub(crate) async fn new(count: u32, scenario: &str, seed: u64) -> Self {
        let held = hold_the_clock();
        let server = Server::open().await;
        let admin = Writer::new(server.client("admin"), Fence::open());
        let account = json!({"metadata": {"name": "default"}}).to_string();
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        match admin.send(&Call::create(accounts, account)).await {
            Err(failure) if !failure.is(409) => panic!("{failure}"),
            _ => {}
        }
        let nodes = play(&server, count, scenario, seed).await;
        Self {
            server,
            admin,
            nodes,
            _held: held,
        }
    }

    /// Stops to play the nodes and begins anew, as an agent that is restarted does.
    pub(crate) async fn restart(self, count: u32, scenario: &str, seed: u64) -> Self {
        self.nodes.stop().await.unwrap();
        let nodes = play(&self.server, count, scenario, seed).await;
        Self { nodes, ..self }
    }

    /// One more client of the API.
    pub(crate) fn client(&self, name: &str) -> kube::Client {
        self.server.client(name)
    }

    pub(crate) async fn pod(&self, name: &str, node: &str, spec: Value) {
        let mut pod = json!({"metadata": {"name": name}, "spec": {
            "nodeName": node, "containers": [{"name": "c", "image": "good:1"}]}});
        for (key, value) in spec.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        self.send(Call::create(PODS, pod.to_string()))
            .await
            .unwrap();
    }

    pub(crate) async fn send(&self, call: Call) -> Result<Value, Failure> {
        self.admin.send(&call).await?.tree()
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.send(Call::get(path)).await {
            Ok(object) => Some(object),
            Err(failure) if failure.is(404) => None,
            Err(failure) => panic!("{failure}"),
        }
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> Value {
        let call = Call::patch(path, Content::Strategic, patch);
        self.send(call).await.unwrap()
    }

    /// Looks at an object until it is as expected, and returns it.
    pub(crate) async fn until(&self, path: &str, expected: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let object = self.get(path).await.unwrap_or_default();
            if expected(&object) {
                return object;
            }
            assert!(
                Instant::now() < deadline,
                "not in time: {}",
                object["status"]
            );
            step().await;
        }
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            step().await;
        }
    }

    pub(crate) async fn pod_until(&self, name: &str, expected: impl Fn(&Value) -> bool) -> Value {
        self.until(&format!("{PODS}/{name}"), expected).await
    }

    pub(crate) async fn gone(&self, path: &str) {
        self.until(path, Value::is_null).await;
    }
}

/// A paused clock runs ahead whenever nothing else is to be done, as if the disk took no time. It does
/// not while a blocking task runs: this one, until the sender is dropped.
fn hold_the_clock() -> mpsc::SyncSender<()> {
    let (sender, receiver) = mpsc::sync_channel(1);
    tokio::task::spawn_blocking(move || receiver.recv());
    sender
}

async fn step() {
    let breath = tokio::task::spawn_blocking(|| std::thread::sleep(BREATH));
    breath.await.unwrap();
    tokio::time::advance(STEP).await;
}

async fn play(server: &Server, count: u32, scenario: &str, seed: u64) -> Handle {
    let scenario = Scenario::parse(scenario).unwrap();
    let simulation = Simulation {
        scenario,
        seed,
        ..Simulation::new(count)
    };
    let mut nodes = Handle::start(Clients::shared(server.client("nodes")), simulation);
    nodes.registered().await.unwrap();
    nodes
}

/// The status of a condition.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.map_or("", |condition| condition["status"].as_str().unwrap())
}

pub(crate) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready") == "True"
}

pub(crate) fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

pub(crate) fn waits_for(pod: &Value, reason: &str) -> bool {
    container(pod)["state"]["waiting"]["reason"] == reason
}

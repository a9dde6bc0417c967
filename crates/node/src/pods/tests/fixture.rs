//! A node under test: a simulated runtime, a fake API server, and a pod manager that can be killed.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kennel_core::pod::eviction::Pressures;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fake_api::{FakeApi, FakeInputs, parse};
use crate::agent::Settings;
use crate::pods::{CommandSender, Dependencies, Origin, Pod, PodCache, PodUpdate, manager};
use crate::probes::Prober;
use crate::runtime::PodId;
use crate::runtime::fake::{FakeRuntime, RuntimeEvent};

/// More than the updates that any test makes before the pod manager receives them.
const UPDATE_QUEUE_CAPACITY: usize = 1024;

pub(super) struct TestNode {
    pub(super) runtime: FakeRuntime,
    pub(super) api: Arc<Mutex<FakeApi>>,
    pub(super) inputs: Arc<FakeInputs>,
    pub(super) cache: Arc<PodCache>,
    pub(super) commands: CommandSender,
    pub(super) pressures: watch::Sender<Pressures>,
    manager: Option<JoinHandle<()>>,
    started: tokio::time::Instant,
}

impl TestNode {
    pub(super) async fn new() -> Self {
        Self::with(FakeRuntime::new()).await
    }

    pub(super) async fn with(runtime: FakeRuntime) -> Self {
        let mut node = Self {
            runtime,
            api: Arc::default(),
            inputs: Arc::default(),
            cache: Arc::default(),
            commands: CommandSender::channel().0,
            pressures: watch::channel(Pressures::default()).0,
            manager: None,
            started: tokio::time::Instant::now(),
        };
        node.start().await;
        node
    }

    /// Starts the pod manager, after killing the one before. It first gets all pods of the API.
    pub(super) async fn start(&mut self) {
        self.kill().await;
        let (updates, received_updates) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
        let (commands, received_commands) = CommandSender::channel();
        self.commands = commands;
        {
            let mut api = self.api.lock().unwrap();
            api.watcher = Some(updates);
            for pod in api.pods.values() {
                api.notify(PodUpdate::Set(parse(pod.clone())));
            }
            api.notify(PodUpdate::Synced(Origin::Api));
        }
        self.cache = Arc::default();
        let (node, receiver) = watch::channel(Arc::new(node()));
        let dependencies = Dependencies {
            runtime: Arc::new(self.runtime.clone()),
            inputs: self.inputs.clone(),
            probes: Arc::new(Prober::new(Arc::new(self.runtime.clone()))),
            settings: Arc::new(settings()),
            writer: Writer::new(client(&self.api), Fence::open()),
            cache: self.cache.clone(),
            node: receiver,
            pressures: self.pressures.subscribe(),
            sources: vec![Origin::Api],
        };
        let stop = CancellationToken::new();
        let manage = manager::run(dependencies, received_updates, received_commands, stop);
        self.manager = Some(tokio::spawn(async move {
            let _node = node;
            manage.await;
        }));
    }

    /// Aborts the pod manager wherever it is.
    pub(super) async fn kill(&mut self) {
        if let Some(manager) = self.manager.take() {
            manager.abort();
            assert!(manager.await.unwrap_err().is_cancelled());
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "most callers make it on the spot"
    )]
    pub(super) fn create(&self, name: &str, spec: Value) {
        let created = format!("2026-01-01T00:00:{:02}Z", name.len());
        self.api
            .lock()
            .unwrap()
            .set(json!({"metadata": {"namespace": "ns", "name": name,
            "uid": format!("uid-{name}"), "creationTimestamp": created}, "spec": spec,
            "status": {"phase": "Pending"}}));
    }

    /// A manifest has a static pod.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "most callers make it on the spot"
    )]
    pub(super) fn file(&self, uid: &str, spec: Value) {
        let pod =
            json!({"metadata": {"namespace": "ns", "name": "static", "uid": uid}, "spec": spec});
        let pod = Pod::parse(pod, Origin::File).unwrap();
        self.api
            .lock()
            .unwrap()
            .notify(PodUpdate::Set(Arc::new(pod)));
    }

    pub(super) fn file_removed(&self, uid: &str) {
        let (namespace, name) = ("ns".to_owned(), "static".to_owned());
        let uid = uid.to_owned();
        let id = PodId {
            namespace,
            name,
            uid,
        };
        self.api.lock().unwrap().notify(PodUpdate::Removed(id));
    }

    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut api = self.api.lock().unwrap();
        let mut pod = api.pods[name].clone();
        change(&mut pod);
        api.set(pod);
    }

    /// Sets the deletion timestamp.
    pub(super) fn delete(&self, name: &str, grace: u64) {
        self.change(name, |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        });
    }

    pub(super) fn force_delete(&self, name: &str) {
        self.api.lock().unwrap().remove(name);
    }

    /// The pod in the API.
    pub(super) fn pod(&self, name: &str) -> Option<Value> {
        self.api.lock().unwrap().pods.get(name).cloned()
    }

    pub(super) fn status(&self, name: &str) -> Value {
        self.pod(name)
            .map_or(Value::Null, |pod| pod["status"].clone())
    }

    /// The state of a pod's first container.
    pub(super) fn state(&self, name: &str) -> Value {
        self.status(name)["containerStatuses"][0]["state"].clone()
    }

    pub(super) fn is_ready(&self, name: &str) -> bool {
        let status = self.status(name);
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.api.lock().unwrap().events.clone()
    }

    pub(super) fn has_event(&self, start: &str) -> bool {
        self.events().iter().any(|event| event.starts_with(start))
    }

    /// When runs of a container started, in seconds.
    pub(super) fn starts(&self, container: &str) -> Vec<u64> {
        let started = |(time, what): (Duration, RuntimeEvent)| match what {
            RuntimeEvent::Started(_, name, _) if name == container => Some(time.as_secs()),
            _ => None,
        };
        self.runtime
            .history()
            .into_iter()
            .filter_map(started)
            .collect()
    }

    /// Starts and exits of containers, as `+name` and `-name`, and executed commands.
    pub(super) fn history(&self) -> Vec<String> {
        let describe = |(_, what): (Duration, RuntimeEvent)| match what {
            RuntimeEvent::Started(_, name, _) => format!("+{name}"),
            RuntimeEvent::Exited(_, name, _) => format!("-{name}"),
            RuntimeEvent::StartedTwice(_, name) => format!("doubled {name}"),
            RuntimeEvent::Executed(command) => format!("ran {command}"),
        };
        self.runtime.history().into_iter().map(describe).collect()
    }

    pub(super) fn seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Waits until something holds, for an hour at most.
    pub(super) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_hours(1);
        while !holds(self) {
            let late = tokio::time::Instant::now() > deadline;
            assert!(
                !late,
                "never: {what}\n{:#?}\n{:#?}\n{:#?}",
                self.history(),
                self.events(),
                self.api.lock().unwrap().pods
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn until_ready(&self, name: &str) {
        self.until("ready", |node| node.is_ready(name)).await;
    }

    pub(super) async fn until_gone(&self, name: &str) {
        self.until("gone", |node| node.pod(name).is_none()).await;
    }

    pub(super) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

fn node() -> Value {
    json!({"metadata": {"name": "n", "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}}})
}

fn settings() -> Settings {
    let nowhere = Path::new("/nonexistent/kennel");
    Settings::defaults("n", IpAddr::from([192, 0, 2, 1]), nowhere)
}

fn client(api: &Arc<Mutex<FakeApi>>) -> kube::Client {
    let api = api.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let api = api.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let mut api = api.lock().unwrap();
            if api.unavailable {
                return Err(std::io::Error::other("connection refused"));
            }
            let (code, answer) = api.answer(&parts.method, parts.uri.path(), &body);
            let answer = Body::from(answer.to_string().into_bytes());
            Ok(Response::builder().status(code).body(answer).unwrap())
        }
    });
    kube::Client::new(service, "default")
}

/// A spec with one container that runs this command.
pub(super) fn one(command: &str) -> Value {
    json!({"containers": [container("app", command)]})
}

pub(super) fn container(name: &str, command: &str) -> Value {
    let words: Vec<&str> = command.split(' ').collect();
    json!({"name": name, "image": "image:1", "command": words})
}

/// The pods that the runtime has.
pub(super) fn runtime_pods(node: &TestNode) -> Vec<PodId> {
    let all = node.runtime.all();
    all.into_iter().map(|found| found.pod).collect()
}

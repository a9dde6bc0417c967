//! A node to try pods out on: a simulated runtime, an API that remembers, and a keeper that can be killed.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kennel_core::pod::evict::Pressures;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::store::{Shelf, Store, parse};
use crate::agent::Settings;
use crate::pods::{Change, Directory, Orders, Origin, Parts, Pod, keeper};
use crate::probes::Prober;
use crate::runtime::PodId;
use crate::runtime::simulated::{Happening, Simulated};

/// See the [module](self).
pub(super) struct World {
    pub(super) runtime: Simulated,
    pub(super) api: Arc<Mutex<Store>>,
    pub(super) supplies: Arc<Shelf>,
    pub(super) directory: Arc<Directory>,
    pub(super) orders: Orders,
    pub(super) pressures: watch::Sender<Pressures>,
    keeper: Option<JoinHandle<()>>,
    began: tokio::time::Instant,
}

impl World {
    /// A node with a keeper.
    pub(super) async fn new() -> Self {
        Self::with(Simulated::new()).await
    }

    pub(super) async fn with(runtime: Simulated) -> Self {
        let mut world = Self {
            runtime,
            api: Arc::default(),
            supplies: Arc::default(),
            directory: Arc::default(),
            orders: Orders::channel().0,
            pressures: watch::channel(Pressures::default()).0,
            keeper: None,
            began: tokio::time::Instant::now(),
        };
        world.start().await;
        world
    }

    /// Begins to keep pods. All that the API has is told first.
    pub(super) async fn start(&mut self) {
        self.kill().await;
        let (sender, mut told) = mpsc::unbounded_channel();
        let (changes, hears) = mpsc::channel(64);
        let (orders, ordered) = Orders::channel();
        self.orders = orders;
        {
            let mut api = self.api.lock().unwrap();
            api.keeper = Some(sender);
            for pod in api.pods.values() {
                api.tell(Change::Set(parse(pod.clone())));
            }
            api.tell(Change::Synced(Origin::Api));
        }
        self.directory = Arc::default();
        let (node, receiver) = watch::channel(Arc::new(node()));
        let parts = Parts {
            runtime: Arc::new(self.runtime.clone()),
            supplies: self.supplies.clone(),
            probes: Arc::new(Prober::new(Arc::new(self.runtime.clone()))),
            settings: Arc::new(settings()),
            client: client(&self.api),
            directory: self.directory.clone(),
            node: receiver,
            pressures: self.pressures.subscribe(),
            sources: vec![Origin::Api],
        };
        let keeping = keeper::run(parts, hears, ordered, CancellationToken::new());
        self.keeper = Some(tokio::spawn(async move {
            let _node = node;
            let pass_on = async {
                while let Some(change) = told.recv().await {
                    changes.send(change).await.unwrap();
                }
                std::future::pending::<()>().await;
            };
            tokio::join!(keeping, pass_on);
        }));
    }

    /// Ends the keeper wherever it is.
    pub(super) async fn kill(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.abort();
            assert!(keeper.await.unwrap_err().is_cancelled());
        }
    }

    /// A pod is bound to this node.
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

    /// A file has a pod.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "most callers make it on the spot"
    )]
    pub(super) fn file(&self, uid: &str, spec: Value) {
        let pod =
            json!({"metadata": {"namespace": "ns", "name": "static", "uid": uid}, "spec": spec});
        let pod = Pod::parse(pod, Origin::File).unwrap();
        self.api.lock().unwrap().tell(Change::Set(Arc::new(pod)));
    }

    /// A file has its pod no more.
    pub(super) fn file_gone(&self, uid: &str) {
        let (namespace, name) = ("ns".to_owned(), "static".to_owned());
        let uid = uid.to_owned();
        let id = PodId {
            namespace,
            name,
            uid,
        };
        self.api.lock().unwrap().tell(Change::Gone(id));
    }

    /// A pod is changed.
    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut api = self.api.lock().unwrap();
        let mut pod = api.pods[name].clone();
        change(&mut pod);
        api.set(pod);
    }

    /// Somebody asks for a pod's end.
    pub(super) fn delete(&self, name: &str, grace: u64) {
        self.change(name, |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        });
    }

    /// A pod is taken out of the API.
    pub(super) fn delete_by_force(&self, name: &str) {
        self.api.lock().unwrap().remove(name);
    }

    /// What the API says of a pod.
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

    /// When runs of a container began, in seconds.
    pub(super) fn starts(&self, container: &str) -> Vec<u64> {
        let began = |(time, what): (Duration, Happening)| match what {
            Happening::Began(_, name, _) if name == container => Some(time.as_secs()),
            _ => None,
        };
        self.runtime
            .happened()
            .into_iter()
            .filter_map(began)
            .collect()
    }

    /// What happened, as `+name` and `-name`.
    pub(super) fn story(&self) -> Vec<String> {
        let tell = |(_, what): (Duration, Happening)| match what {
            Happening::Began(_, name, _) => format!("+{name}"),
            Happening::Ended(_, name, _) => format!("-{name}"),
            Happening::Doubled(_, name) => format!("doubled {name}"),
            Happening::Ran(command) => format!("ran {command}"),
        };
        self.runtime.happened().into_iter().map(tell).collect()
    }

    pub(super) fn seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    /// Waits until something holds, for an hour at most.
    pub(super) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_hours(1);
        while !holds(self) {
            let late = tokio::time::Instant::now() > deadline;
            assert!(
                !late,
                "never: {what}\n{:#?}\n{:#?}\n{:#?}",
                self.story(),
                self.events(),
                self.api.lock().unwrap().pods
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn until_ready(&self, name: &str) {
        self.until("ready", |world| world.is_ready(name)).await;
    }

    pub(super) async fn until_gone(&self, name: &str) {
        self.until("gone", |world| world.pod(name).is_none()).await;
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
    Settings::plain("n", IpAddr::from([192, 0, 2, 1]), nowhere)
}

fn client(api: &Arc<Mutex<Store>>) -> kube::Client {
    let api = api.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let api = api.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let mut api = api.lock().unwrap();
            if api.away {
                return Err(std::io::Error::other("nobody answers"));
            }
            let (code, answer) = api.answer(&parts.method, parts.uri.path(), &body);
            let answer = Body::from(answer.to_string().into_bytes());
            Ok(Response::builder().status(code).body(answer).unwrap())
        }
    });
    kube::Client::new(service, "default")
}

/// One container with this command.
pub(super) fn one(command: &str) -> Value {
    json!({"containers": [container("app", command)]})
}

pub(super) fn container(name: &str, command: &str) -> Value {
    let words: Vec<&str> = command.split(' ').collect();
    json!({"name": name, "image": "image:1", "command": words})
}

/// Which pod something of which is left.
pub(super) fn left(world: &World) -> Vec<PodId> {
    let all = world.runtime.all();
    all.into_iter().map(|found| found.pod).collect()
}

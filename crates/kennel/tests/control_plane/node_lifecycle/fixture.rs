//! A cluster in the test's own process whose nodes are played by the test, and whose time passes only when
//! the test says so.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kennel_control::nodes::{eviction, lifecycle};
use kennel_control::{garbage_collector, podgc};
use kennel_testkit::inprocess::Server;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Far more than anything here takes; a passing test never waits for it.
const TIMEOUT: Duration = Duration::from_mins(2);
const POLL_EVERY: Duration = Duration::from_millis(2);
/// How often nodes renew their leases, in seconds.
const HEARTBEAT: u64 = 10;
/// A node that does not count in any zone; the test changes it and waits for the controller to follow, and so
/// knows that the controller has seen all that was before.
const MARKER: &str = "marker";

pub(crate) struct Fixture {
    server: Server,
    admin: Client,
    controllers: Option<(CancellationToken, JoinHandle<()>)>,
    /// Seconds that have passed.
    pub(crate) now: u64,
    renewals: i64,
    /// While a blocking thread runs, tokio does not advance the paused clock by itself.
    _still: mpsc::SyncSender<()>,
}

fn kind(name: &str) -> ApiResource {
    use k8s_openapi::api::{coordination::v1::Lease, core::v1};
    match name {
        "nodes" => ApiResource::erase::<v1::Node>(&()),
        "pods" => ApiResource::erase::<v1::Pod>(&()),
        "events" => ApiResource::erase::<v1::Event>(&()),
        "leases" => ApiResource::erase::<Lease>(&()),
        _ => unreachable!("{name} is not used"),
    }
}

impl Fixture {
    /// A cluster with these nodes, all ready.
    pub(crate) async fn new(nodes: &[&str]) -> Self {
        let (still, wait) = mpsc::sync_channel::<()>(1);
        tokio::task::spawn_blocking(move || wait.recv().ok());
        let server = Server::open().await;
        let admin = server.client("admin");
        let mut fixture = Self {
            server,
            admin,
            controllers: None,
            now: 0,
            renewals: 0,
            _still: still,
        };
        let label = json!({"node.kubernetes.io/exclude-disruption": ""});
        fixture.join(MARKER, &label).await;
        for node in nodes {
            fixture.join(node, &json!({})).await;
        }
        fixture.start();
        fixture.barrier().await;
        fixture
    }

    /// Starts the controllers.
    pub(crate) fn start(&mut self) {
        let stop = CancellationToken::new();
        let mut informers = Informers::new(&self.server.client("informers"));
        let client = || self.server.client("node-controller");
        let setup = || Setup::unfenced(stop.clone());
        let settings = lifecycle::Settings::default();
        let lifecycle = lifecycle::run(client(), &mut informers, settings, setup());
        let eviction = eviction::run(client(), &mut informers, setup());
        let pods = podgc::run(client(), &mut informers, setup());
        let garbage = garbage_collector::run(client(), &mut informers, setup());
        let informers = informers.run(stop.clone());
        let all = async move {
            let (a, b, c, d, ()) = tokio::join!(lifecycle, eviction, pods, garbage, informers);
            for ended in [a, b, c, d] {
                ended.unwrap();
            }
        };
        self.controllers = Some((stop, tokio::spawn(all)));
    }

    /// Stops the controllers.
    pub(crate) async fn stop(&mut self) {
        if let Some((stop, running)) = self.controllers.take() {
            stop.cancel();
            running.await.unwrap();
        }
    }

    pub(crate) fn api(&self, plural: &str) -> Api<DynamicObject> {
        let (client, kind) = (self.admin.clone(), kind(plural));
        match plural {
            "nodes" => Api::all_with(client, &kind),
            "leases" => Api::namespaced_with(client, "kube-node-lease", &kind),
            _ => Api::namespaced_with(client, "default", &kind),
        }
    }

    pub(crate) async fn get(&self, plural: &str, name: &str) -> Option<Value> {
        let found = self.api(plural).get_opt(name).await.unwrap()?;
        Some(serde_json::to_value(found).unwrap())
    }

    pub(crate) async fn create(&self, plural: &str, object: Value) -> Value {
        let object = serde_json::from_value(object).unwrap();
        let (api, parameters) = (self.api(plural), PostParams::default());
        let made = api.create(&parameters, &object).await.unwrap();
        serde_json::to_value(made).unwrap()
    }

    /// A strategic merge patch, of the status if it is about that.
    pub(crate) async fn patch(&self, plural: &str, name: &str, patch: Value) {
        let (api, parameters) = (self.api(plural), PatchParams::default());
        let is_status = patch.get("status").is_some();
        let patch = Patch::Strategic(patch);
        let patched = if is_status {
            api.patch_status(name, &parameters, &patch).await
        } else {
            api.patch(name, &parameters, &patch).await
        };
        patched.unwrap();
    }

    /// A node joins, with a lease.
    pub(crate) async fn join(&mut self, name: &str, labels: &Value) {
        let node = json!({"apiVersion": "v1", "kind": "Node",
                          "metadata": {"name": name, "labels": labels}});
        let node = self.create("nodes", node).await;
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name,
                           "uid": node["metadata"]["uid"]});
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name}});
        self.create("leases", lease).await;
        self.report(name, "True").await;
        self.renew(name).await;
    }

    /// A node updates its status.
    pub(crate) async fn report(&mut self, name: &str, ready: &str) {
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "Said", "message": "by the node",
                   "lastHeartbeatTime": "2026-01-02T03:04:05Z",
                   "lastTransitionTime": "2026-01-02T03:04:05Z"})
        };
        let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
        let mut conditions: Vec<Value> = pressures.map(|kind| condition(kind, "False")).into();
        conditions.push(condition("Ready", ready));
        let status = json!({"status": {"conditions": conditions}});
        self.patch("nodes", name, status).await;
    }

    /// A node renews its lease, at the time that its clock shows.
    pub(crate) async fn renew_at(&self, name: &str, time: &str) {
        let patch = json!({"spec": {"renewTime": time}});
        let (leases, parameters) = (self.api("leases"), PatchParams::default());
        let patch = Patch::Merge(patch);
        leases.patch(name, &parameters, &patch).await.unwrap();
    }

    pub(crate) async fn renew(&mut self, name: &str) {
        self.renewals += 1;
        let time = format!("2026-01-02T03:04:05.{:06}Z", self.renewals);
        self.renew_at(name, &time).await;
    }

    /// A pod runs on a node, ready, and stays there when it is deleted until the test confirms that.
    pub(crate) async fn pod(&self, name: &str, node: &str, tolerations: Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
        if !tolerations.is_null() {
            pod["spec"]["tolerations"] = tolerations;
        }
        self.create("pods", pod).await;
        let ready = json!({"type": "Ready", "status": "True",
                           "lastTransitionTime": "2026-01-02T03:04:05Z"});
        let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
        self.patch("pods", name, status).await;
    }

    /// Time passes until then. Nodes that live renew their leases meanwhile.
    pub(crate) async fn pass(&mut self, until: u64, living: &[&str]) {
        self.barrier().await;
        while self.now < until {
            let next = (self.now / HEARTBEAT + 1) * HEARTBEAT;
            let step = next.min(until) - self.now;
            tokio::time::advance(Duration::from_secs(step)).await;
            self.now += step;
            if self.now == next {
                for name in living {
                    self.renew(name).await;
                }
                self.renew(MARKER).await;
            }
            self.barrier().await;
        }
    }

    /// Waits until the controller has seen all that was before.
    pub(crate) async fn barrier(&mut self) {
        for unschedulable in [true, false] {
            let patch = json!({"spec": {"unschedulable": unschedulable}});
            self.patch("nodes", MARKER, patch).await;
            self.until(async || {
                let taints = self.taints(MARKER).await;
                let cordoned = taints
                    .iter()
                    .any(|taint| taint == "unschedulable:NoSchedule");
                (cordoned == unschedulable).then_some(()).ok_or(taints)
            })
            .await;
        }
    }

    /// Waits until `look` has nothing more to complain of.
    pub(crate) async fn until<T, E: std::fmt::Debug>(
        &self,
        look: impl AsyncFn() -> Result<T, E>,
    ) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match look().await {
                Ok(found) => return found,
                Err(complaint) => assert!(Instant::now() < deadline, "not in time: {complaint:?}"),
            }
            let pause = tokio::task::spawn_blocking(|| std::thread::sleep(POLL_EVERY));
            pause.await.unwrap();
        }
    }

    /// A node's taints, as `key:effect`.
    pub(crate) async fn taints(&self, node: &str) -> Vec<String> {
        let node = self.get("nodes", node).await.unwrap();
        let taints = node["spec"]["taints"].as_array().cloned();
        let show = |taint: Value| {
            let key = taint["key"].as_str().unwrap();
            let key = key.replace("node.kubernetes.io/", "");
            format!("{key}:{}", taint["effect"].as_str().unwrap())
        };
        taints.unwrap_or_default().into_iter().map(show).collect()
    }

    /// Waits until a node has these taints.
    pub(crate) async fn tainted(&self, node: &str, expected: &[&str]) {
        self.until(async || {
            let found = self.taints(node).await;
            (found == expected).then_some(()).ok_or(found)
        })
        .await;
    }

    /// A condition of an object.
    pub(crate) async fn condition(&self, plural: &str, name: &str, kind: &str) -> Value {
        let object = self.get(plural, name).await.unwrap();
        let conditions = object["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.unwrap_or_default().into_iter();
        conditions.find(|c| c["type"] == kind).unwrap_or_default()
    }

    /// Waits for an event about an object.
    pub(crate) async fn told(&self, about: &str, reason: &str, message: &str) {
        self.until(async || {
            let events = self
                .api("events")
                .list(&ListParams::default())
                .await
                .unwrap();
            let of = |event: &DynamicObject| {
                let event = &event.data;
                event["involvedObject"]["name"] == about
                    && event["reason"] == reason
                    && event["message"] == message
            };
            events.iter().any(of).then_some(()).ok_or("no such event")
        })
        .await;
    }

    /// Is a pod being deleted, or gone?
    pub(crate) async fn is_leaving(&self, pod: &str) -> bool {
        let pod = self.get("pods", pod).await;
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    }
}

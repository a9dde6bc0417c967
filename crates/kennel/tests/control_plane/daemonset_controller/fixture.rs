//! A cluster in the test's own process: an API, a scheduler, what finds nodes ready, simulated nodes; controllers
//! come and go.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kennel_client::fence::Fence;
use kennel_control::daemonset::{self, Settings};
use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kennel_control::nodes::lifecycle;
use kennel_control::scheduler;
use kennel_simulation::{Clients, Simulation, Watcher};
use kennel_testkit::faulty::Faults;
use kennel_testkit::inprocess::{self, Server};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::daemonset_controller::pod_log::{Ledger, known};

/// Far more than anything here takes; a passing test never waits for it.
const TIMEOUT: Duration = Duration::from_mins(2);
const POLL_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) ledger: Ledger,
    nodes: u16,
    admin: Client,
}

impl Fixture {
    /// A cluster with so many nodes and no DaemonSet controller.
    pub(crate) async fn new(nodes: u16) -> Self {
        let server = Server::open().await;
        let forever = CancellationToken::new();
        let mut informers = Informers::new(&server.client("informers"));
        let scheduler = server.client("scheduler");
        let setup = Setup::unfenced(forever.clone());
        let scheduler = scheduler::run(scheduler, &mut informers, setup.clone());
        tokio::spawn(scheduler);
        let client = server.client("node lifecycle");
        let settings = lifecycle::Settings::default();
        tokio::spawn(lifecycle::run(client, &mut informers, settings, setup));
        tokio::spawn(informers.run(forever.clone()));
        let simulation = Simulation::new(nodes.into());
        let api = server.api();
        let machines = Clients {
            watcher: Watcher::Shared(server.client("nodes")),
            node: Box::new(move |name| inprocess::client(api.clone(), name)),
        };
        tokio::spawn(kennel_simulation::run(machines, simulation, forever));
        let admin = server.client("admin");
        let ledger = Ledger::open(admin.clone());
        Self {
            server,
            ledger,
            nodes,
            admin,
        }
    }

    /// Starts a controller for which this goes wrong.
    pub(crate) fn controller(&self, faults: &Faults, fence: &Fence) -> JoinHandle<()> {
        let client = faults.client(self.server.api(), "controller");
        let fence = fence.clone();
        tokio::spawn(run(client, fence, CancellationToken::new()))
    }

    pub(crate) async fn create(&self, image: &str) {
        self.create_with(image, &json!({})).await;
    }

    /// Creates the DaemonSet, with an update strategy.
    pub(crate) async fn create_with(&self, image: &str, strategy: &Value) {
        let object = json!({
            "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "updateStrategy": strategy,
                "template": {
                    "metadata": {"labels": {"app": "agent"}},
                    "spec": {"terminationGracePeriodSeconds": 0,
                             "containers": [{"name": "agent", "image": image}]}}}});
        let object = serde_json::from_value(object).unwrap();
        self.sets()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub(crate) async fn set_image(&self, image: &str) {
        let containers = json!([{"name": "agent", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let patch = Patch::Strategic(patch);
        let sets = self.sets();
        sets.patch("agent", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) fn sets(&self) -> Api<DaemonSet> {
        Api::default_namespaced(self.admin.clone())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.admin.clone())
    }

    /// Waits until every node has one pod with this image, ready, and the status says so.
    pub(crate) async fn settled(&self, image: &str) {
        self.until(|| self.unsettled(image)).await;
    }

    /// Waits until `look` has nothing more to complain of.
    pub(crate) async fn until<F: Future<Output = Option<String>>>(&self, look: impl Fn() -> F) {
        let deadline = Instant::now() + TIMEOUT;
        while let Some(complaint) = look().await {
            assert!(Instant::now() < deadline, "not in time: {complaint}");
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// What is not yet as it should be.
    async fn unsettled(&self, image: &str) -> Option<String> {
        let pods = self.pods().list(&ListParams::default()).await.unwrap();
        let mut nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pod in &pods {
            let (node, of) = known(pod);
            nodes.entry(node).or_default().push(of);
        }
        let full = nodes.len() == usize::from(self.nodes);
        if !full || nodes.values().any(|images| *images != [image]) {
            return Some(format!("pods: {nodes:?}"));
        }
        let set = self.sets().get("agent").await.unwrap();
        let status = set.status.clone().unwrap_or_default();
        let all = i32::from(self.nodes);
        let good = status.desired_number_scheduled == all
            && status.number_available == Some(all)
            && status.updated_number_scheduled == Some(all)
            && status.observed_generation == set.metadata.generation;
        (!good).then(|| format!("status: {status:?}"))
    }
}

/// Runs a controller until told to stop.
pub(crate) async fn run(client: Client, fence: Fence, stop: CancellationToken) {
    let mut informers = Informers::new(&client);
    let setup = Setup::new(fence, stop.clone());
    let controller = daemonset::run(client, &mut informers, Settings::default(), setup);
    let (ended, ()) = tokio::join!(controller, informers.run(stop));
    ended.unwrap();
}

//! The scheduler when things go wrong, and when room must be made: whatever is refused or lost, every pod
//! ends on a node that has room for it, and no room stays reserved.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kennel_control::frame::Setup;
use kennel_control::informers::Informers;
use kennel_control::scheduler;
use kennel_testkit::faulty::Faults;
use kennel_testkit::inprocess::Server;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Far more than anything here takes; a passing test never waits for it.
const TIMEOUT: Duration = Duration::from_mins(2);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// An API with Node objects, and a scheduler whose requests fail.
struct Cluster {
    admin: Client,
    faults: Faults,
    stop: CancellationToken,
    server: Server,
}

impl Cluster {
    async fn new(faults: Faults, nodes: usize) -> Self {
        let server = Server::open().await;
        let cluster = Self {
            admin: server.client("admin"),
            faults,
            stop: CancellationToken::new(),
            server,
        };
        for number in 0..nodes {
            let object = json!({"metadata": {"name": format!("n{number}")}, "status":
                {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "20"}}});
            let node: Node = serde_json::from_value(object).unwrap();
            let nodes: Api<Node> = Api::all(cluster.admin.clone());
            nodes.create(&PostParams::default(), &node).await.unwrap();
            // No probe finds it ready.
            let ready = Patch::Merge(json!({"spec": {"taints": null}}));
            let name = format!("n{number}");
            let how = PatchParams::default();
            nodes.patch(&name, &how, &ready).await.unwrap();
        }
        cluster.start();
        cluster
    }

    fn start(&self) {
        let client = self.faults.client(self.server.api(), "scheduler");
        let mut informers = Informers::new(&client);
        let scheduler = scheduler::run(client, &mut informers, Setup::unfenced(self.stop.clone()));
        tokio::spawn(scheduler);
        tokio::spawn(informers.run(self.stop.clone()));
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.admin.clone())
    }

    /// Creates a pod that requests so much.
    async fn pod(&self, name: &str, cpu: &str, more: &Value) {
        let mut spec = json!({"containers": [{"name": "main", "image": "example.com/x:1",
            "resources": {"requests": {"cpu": cpu}}}]});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let pod: Pod = serde_json::from_value(object).unwrap();
        self.pods()
            .create(&PostParams::default(), &pod)
            .await
            .unwrap();
    }

    async fn until<F: Future<Output = Option<String>>>(&self, look: impl Fn() -> F) {
        let deadline = Instant::now() + TIMEOUT;
        while let Some(complaint) = look().await {
            assert!(Instant::now() < deadline, "not in time: {complaint}");
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Waits until all pods are bound; how many are on each node.
    async fn all_bound(&self) -> BTreeMap<String, usize> {
        self.until(|| async {
            let pods = self.pods().list(&ListParams::default()).await.unwrap();
            let unbound = pods.iter().filter(|pod| node_of(pod).is_empty());
            let names: Vec<String> = unbound.map(ResourceExt::name_any).collect();
            (!names.is_empty()).then(|| format!("unbound: {names:?}"))
        })
        .await;
        let mut nodes = BTreeMap::new();
        for pod in &self.pods().list(&ListParams::default()).await.unwrap() {
            *nodes.entry(node_of(pod)).or_default() += 1;
        }
        nodes
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn node_of(pod: &Pod) -> String {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.node_name.clone())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_that_fail_or_whose_answers_get_lost_leave_nothing_assumed() {
    for seed in 1..=3 {
        let cluster = Cluster::new(Faults::seeded(seed), 3).await;
        // All the room there is: a pod that is counted twice would keep another one out.
        for number in 0..12 {
            cluster.pod(&format!("p{number}"), "1", &json!({})).await;
        }
        let placed = cluster.all_bound().await;
        assert!(
            placed.values().all(|count| *count == 4),
            "seed {seed}: {placed:?}"
        );
        cluster.faults.end();
        let gone = DeleteParams::default().grace_period(0);
        cluster.pods().delete("p3", &gone).await.unwrap();
        cluster.pod("last", "1", &json!({})).await;
        let placed = cluster.all_bound().await;
        assert!(
            placed.values().all(|count| *count == 4),
            "seed {seed}: {placed:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn room_is_made_for_the_more_important_and_kept_until_it_is_theirs() {
    let cluster = Cluster::new(Faults::none(), 1).await;
    cluster
        .pod("low", "4", &json!({"terminationGracePeriodSeconds": 30}))
        .await;
    cluster.all_bound().await;
    cluster
        .pod(
            "high",
            "4",
            &json!({"priorityClassName": "system-node-critical"}),
        )
        .await;
    cluster
        .until(|| async {
            let high = cluster.pods().get("high").await.unwrap();
            let nominated = high.status.and_then(|s| s.nominated_node_name);
            (nominated.as_deref() != Some("n0")).then(|| format!("nominated for {nominated:?}"))
        })
        .await;
    cluster
        .until(|| async {
            let low = cluster.pods().get("low").await.unwrap();
            low.metadata
                .deletion_timestamp
                .is_none()
                .then(|| "the victim lives".to_owned())
        })
        .await;
    let low = cluster.pods().get("low").await.unwrap();
    let conditions = low.status.clone().unwrap().conditions.unwrap();
    let condition = conditions
        .iter()
        .find(|c| c.type_ == "DisruptionTarget")
        .unwrap();
    assert_eq!(condition.status, "True");
    assert_eq!(condition.reason.as_deref(), Some("PreemptionByScheduler"));
    cluster.pod("thief", "1", &json!({})).await;
    cluster.until(|| told(&cluster, "thief")).await;
    let gone = DeleteParams::default().grace_period(0);
    cluster.pods().delete("low", &gone).await.unwrap();
    cluster
        .until(|| async {
            let high = cluster.pods().get("high").await.unwrap();
            (node_of(&high) != "n0").then(|| "not bound".to_owned())
        })
        .await;
    let thief = cluster.pods().get("thief").await.unwrap();
    assert_eq!(node_of(&thief), "", "the room was not the thief's");
    cluster.until(|| events(&cluster)).await;
}

/// Has it been told why this pod fits nowhere?
async fn told(cluster: &Cluster, name: &str) -> Option<String> {
    let pod = cluster.pods().get(name).await.unwrap();
    let conditions = pod.status.and_then(|s| s.conditions).unwrap_or_default();
    let mut found = conditions.iter().filter(|c| c.type_ == "PodScheduled");
    let reason = found.next().and_then(|c| c.reason.clone());
    (reason.as_deref() != Some("Unschedulable")).then(|| format!("{reason:?}"))
}

async fn events(cluster: &Cluster) -> Option<String> {
    let events: Api<Event> = Api::default_namespaced(cluster.admin.clone());
    let events = events.list(&ListParams::default()).await.unwrap();
    let told = |event: &Event| {
        let about = event.involved_object.name.clone().unwrap_or_default();
        (about, event.reason.clone().unwrap_or_default(), event.count)
    };
    let seen: Vec<_> = events.iter().map(told).collect();
    let has = |about: &str, reason: &str| {
        seen.iter()
            .filter(|(a, r, _)| a == about && r == reason)
            .count()
            == 1
    };
    let complete = has("low", "Preempted") && has("high", "Scheduled") && has("low", "Scheduled");
    (!complete).then(|| format!("{seen:?}"))
}

//! Pages about the node as a whole: its pods, its numbers.

use jiff::Timestamp;
use kennel_client::metrics::{Observed, Page};
use kennel_core::pod::State;
use serde_json::{Value, json};

use super::answer::{self, Answer, Refusal};
use super::server::Rooms;
use crate::pods::{CachedPod, PodCache};

/// All pods, each with the status that was last worked out.
pub(super) fn pods(directory: &PodCache) -> Value {
    let pods = directory.all().into_iter().map(|view| {
        let mut pod = view.pod.object.clone();
        pod["status"] = view.status.clone();
        pod
    });
    let pods: Vec<Value> = pods.collect();
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})
}

kennel_core::metrics! {
    pub METRICS;
    Gauge NODE = "kubelet_node_name" ["node"] "The node's name.";
    Gauge PODS = "kubelet_running_pods" [] "Pods with something that runs.";
    Gauge CONTAINERS = "kubelet_running_containers" ["container_state"] "Containers, by state.";
    Counter RESTARTS = "kennel_container_restarts_total" ["namespace" "pod" "container"]
        "How often containers were started again.";
}

/// The text of `/metrics`.
pub(super) fn metrics(rooms: &Rooms) -> String {
    let own = Own {
        views: rooms.directory.all(),
        node: &rooms.settings.node_name,
    };
    let others = rooms.metrics.iter().map(|one| &**one as &dyn Observed);
    Page::of(std::iter::once(&own as &dyn Observed).chain(others))
}

/// Numbers that are counted when somebody asks.
struct Own<'a> {
    views: Vec<std::sync::Arc<CachedPod>>,
    node: &'a str,
}

impl Observed for Own<'_> {
    fn show(&self, page: &mut Page) {
        let node = format!("node={:?}", self.node);
        page.rows(&NODE, [(node, 1)]);
        let running = |view: &&std::sync::Arc<CachedPod>| view.observed.alive().next().is_some();
        let pods = count(self.views.iter().filter(running).count());
        page.number(&PODS, pods);
        let runs = || self.views.iter().flat_map(|view| &view.observed.runs);
        let of = |wanted: &str| count(runs().filter(|run| state(&run.state) == wanted).count());
        let rows = [
            ("container_state=\"created\"", of("created")),
            ("container_state=\"exited\"", of("exited")),
            ("container_state=\"running\"", of("running")),
        ];
        page.rows(&CONTAINERS, rows);
        self.restarts(page);
    }
}

impl Own<'_> {
    fn restarts(&self, page: &mut Page) {
        let mut rows = Vec::new();
        for view in &self.views {
            let id = &view.pod.id;
            for status in statuses(&view.status) {
                let name = status["name"].as_str().unwrap_or_default();
                let labels = format!(
                    "namespace={:?},pod={:?},container={name:?}",
                    id.namespace, id.name
                );
                rows.push((labels, status["restartCount"].as_u64().unwrap_or(0)));
            }
        }
        page.rows(&RESTARTS, rows);
    }
}

/// The statuses of all containers of a pod.
pub(super) fn statuses(status: &Value) -> impl Iterator<Item = &Value> {
    let lists = [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ];
    let lists = lists.into_iter().filter_map(|list| status[list].as_array());
    lists.flatten()
}

fn state(state: &State) -> &'static str {
    match state {
        State::Created => "created",
        State::Running { .. } => "running",
        State::Exited(_) => "exited",
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What containers use.
pub(super) async fn summary(rooms: &Rooms) -> Result<Answer, Refusal> {
    let usage = rooms.runtime.usage().await;
    let usage = usage.map_err(|error| Refusal::internal(error.to_string()))?;
    let now = Timestamp::now().to_string();
    let pods = rooms.directory.all().into_iter().map(|view| {
        let id = &view.pod.id;
        let own = usage.iter().filter(|usage| usage.pod == id.uid);
        let containers = own.map(|usage| {
            json!({
                "name": usage.container,
                "cpu": {"time": now, "usageCoreNanoSeconds": usage.cpu},
                "memory": {"time": now, "workingSetBytes": usage.memory},
                "rootfs": {"time": now, "usedBytes": usage.disk},
            })
        });
        let containers: Vec<Value> = containers.collect();
        let pod = json!({"name": id.name, "namespace": id.namespace, "uid": id.uid});
        json!({"podRef": pod, "containers": containers})
    });
    let pods: Vec<Value> = pods.collect();
    let node = json!({"nodeName": rooms.settings.node_name});
    Ok(answer::json(&json!({"node": node, "pods": pods})))
}

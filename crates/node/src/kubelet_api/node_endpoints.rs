//! Endpoints about the node as a whole: `/healthz`, `/pods` and `/metrics`.

use http::StatusCode;
use kennel_client::metrics::{Observed, Page};
use kennel_core::health::{self, Endpoint, Question};
use kennel_core::pod::State;
use serde_json::{Value, json};

use super::response::{self, HttpError, HttpResponse};
use super::route::Query;
use super::server::ServerContext;
use crate::pods::{CachedPod, PodCache};

/// Everybody may ask, so reasons are withheld.
pub(super) fn healthz(
    context: &ServerContext,
    check: &str,
    query: &Query,
) -> Result<HttpResponse, HttpError> {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let question = Question {
        endpoint: Endpoint::Healthz,
        check,
        verbose: query.has("verbose"),
        excluded: &excluded,
        trusted: false,
    };
    let answer = health::answer(&question, &context.health.outcomes());
    let answer = answer.ok_or_else(|| HttpError::not_found("404 page not found"))?;
    let status = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(response::text_with(status, answer.text))
}

/// All pods, each with the newest status.
pub(super) fn pods(pod_cache: &PodCache) -> Value {
    let pods = pod_cache.all().into_iter().map(|cached| {
        let mut pod = cached.pod.object.clone();
        pod["status"] = cached.status.clone();
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
pub(super) fn metrics(context: &ServerContext) -> String {
    let own = PodMetrics {
        pods: context.pod_cache.all(),
        node: &context.settings.node_name,
    };
    let others = context.metrics.iter().map(|one| &**one as &dyn Observed);
    Page::of(std::iter::once(&own as &dyn Observed).chain(others))
}

/// Metrics that are computed at each scrape.
struct PodMetrics<'a> {
    pods: Vec<std::sync::Arc<CachedPod>>,
    node: &'a str,
}

impl Observed for PodMetrics<'_> {
    fn show(&self, page: &mut Page) {
        let node = format!("node={:?}", self.node);
        page.rows(&NODE, [(node, 1)]);
        let running =
            |cached: &&std::sync::Arc<CachedPod>| cached.observed.running().next().is_some();
        let running = count(self.pods.iter().filter(running).count());
        page.number(&PODS, running);
        let runs = || self.pods.iter().flat_map(|cached| &cached.observed.runs);
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

impl PodMetrics<'_> {
    fn restarts(&self, page: &mut Page) {
        let mut rows = Vec::new();
        for cached in &self.pods {
            let id = &cached.pod.id;
            for status in container_statuses(&cached.status) {
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

pub(super) fn container_statuses(status: &Value) -> impl Iterator<Item = &Value> {
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

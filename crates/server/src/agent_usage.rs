//! What nodes and their containers use, as the nodes' agents measure it.
//!
//! An agent is asked when somebody wants to know, and its answer is kept for a short time. While nobody asks, this costs
//! nothing: neither requests nor memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use kennel_types::Timestamp;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::agent_client::{Agent, AgentClient, Request, SendError};
use crate::limits;

/// What is asked for.
const SUMMARY: &str = "/stats/summary?only_cpu_and_memory=true";
/// The window of a kubelet, which does not tell: the interval of cAdvisor.
const WINDOW_DEFAULT: Duration = Duration::from_secs(10);

/// The usage of a node or a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// The end of the window.
    pub(crate) time: Timestamp,
    pub(crate) window: Duration,
    /// Thousand-millionths of a core, on average over the window.
    pub(crate) nano_cores: u64,
    /// In bytes.
    pub(crate) working_set: u64,
}

/// The usage of a node and its pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeUsage {
    pub(crate) node: Option<Point>,
    /// Containers with their names, by namespace and name of the pod.
    pods: HashMap<(String, String), Vec<(String, Point)>>,
}

impl NodeUsage {
    /// The containers of a pod.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> &[(String, Point)] {
        let key = (namespace.to_owned(), name.to_owned());
        self.pods.get(&key).map_or(&[], Vec::as_slice)
    }

    fn parse(summary: &[u8]) -> serde_json::Result<Self> {
        let summary: Summary = serde_json::from_slice(summary)?;
        let pods = summary.pods.into_iter().map(|pod| {
            let containers = pod.containers.into_iter();
            let containers = containers.filter_map(|one| Some((one.name, one.stats.point()?)));
            let PodReference { name, namespace } = pod.pod_ref;
            ((namespace, name), containers.collect())
        });
        Ok(Self {
            node: summary.node.point(),
            pods: pods.collect(),
        })
    }
}

/// `/stats/summary` of the kubelet API, as far as it is read.
#[derive(Deserialize)]
struct Summary {
    node: Stats,
    #[serde(default)]
    pods: Vec<PodStats>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStats {
    pod_ref: PodReference,
    #[serde(default)]
    containers: Vec<ContainerStats>,
}

#[derive(Deserialize)]
struct PodReference {
    name: String,
    namespace: String,
}

#[derive(Deserialize)]
struct ContainerStats {
    name: String,
    #[serde(flatten)]
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    cpu: Option<Cpu>,
    memory: Option<Memory>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cpu {
    time: Timestamp,
    usage_nano_cores: Option<u64>,
    /// Only Kennel's agents tell.
    window_nano_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    working_set_bytes: Option<u64>,
}

impl Stats {
    /// `None` unless both have been measured.
    fn point(&self) -> Option<Point> {
        let cpu = self.cpu.as_ref()?;
        let window = cpu.window_nano_seconds.map(Duration::from_nanos);
        Some(Point {
            time: cpu.time,
            window: window.unwrap_or(WINDOW_DEFAULT),
            nano_cores: cpu.usage_nano_cores?,
            working_set: self.memory.as_ref()?.working_set_bytes?,
        })
    }
}

/// See the [module](self).
pub(crate) struct AgentUsage {
    cache: Arc<Mutex<UsageCache>>,
    permits: Semaphore,
}

#[derive(Default)]
struct UsageCache {
    /// By node.
    slots: HashMap<String, Arc<Slot>>,
    /// Whether a task waits to remove old answers.
    is_cleaned: bool,
}

/// Held while the agent is asked, so that requests at the same time share its answer.
type Slot = tokio::sync::Mutex<Option<Answer>>;

struct Answer {
    until: Instant,
    /// `None` if the agent did not answer.
    usage: Option<Arc<NodeUsage>>,
}

impl Answer {
    fn is_valid(&self) -> bool {
        Instant::now() < self.until
    }
}

impl Default for AgentUsage {
    fn default() -> Self {
        Self {
            cache: Arc::default(),
            permits: Semaphore::new(limits::USAGE_REQUESTS),
        }
    }
}

impl AgentUsage {
    /// The usage of a node. `None` if its agent does not answer.
    pub(crate) async fn of(&self, client: &AgentClient, agent: &Agent) -> Option<Arc<NodeUsage>> {
        let slot = self.slot(&agent.node);
        let mut slot = slot.lock().await;
        if let Some(answer) = slot.as_ref().filter(|answer| answer.is_valid()) {
            return answer.usage.clone();
        }
        let _permit = self.permits.acquire().await.ok()?;
        let asked = tokio::time::timeout(limits::USAGE_TIMEOUT, ask(client, agent)).await;
        let usage = match asked.unwrap_or(Err(AskError::Timeout)) {
            Ok(usage) => Some(Arc::new(usage)),
            Err(error) => {
                tracing::debug!(node = agent.node, %error, "cannot read the usage of a node");
                None
            }
        };
        *slot = Some(Answer {
            until: Instant::now() + limits::USAGE_KEPT,
            usage: usage.clone(),
        });
        usage
    }

    fn slot(&self, node: &str) -> Arc<Slot> {
        let mut cache = lock(&self.cache);
        if !cache.is_cleaned {
            cache.is_cleaned = true;
            tokio::spawn(clean(Arc::clone(&self.cache)));
        }
        Arc::clone(cache.slots.entry(node.to_owned()).or_default())
    }
}

fn lock(cache: &Mutex<UsageCache>) -> MutexGuard<'_, UsageCache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes old answers, until there are none.
async fn clean(cache: Arc<Mutex<UsageCache>>) {
    loop {
        tokio::time::sleep(limits::USAGE_KEPT).await;
        let mut cache = lock(&cache);
        cache.slots.retain(|_, slot| match slot.try_lock() {
            Ok(slot) => slot.as_ref().is_some_and(Answer::is_valid),
            // The agent is being asked.
            Err(_) => true,
        });
        if cache.slots.is_empty() {
            *cache = UsageCache::default();
            return;
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("no answer within {} s", limits::USAGE_TIMEOUT.as_secs())]
    Timeout,
    #[error("the agent answered {0}")]
    Refused(StatusCode),
    #[error("cannot read the answer: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("the agent's answer is not a summary: {0}")]
    Summary(#[from] serde_json::Error),
}

async fn ask(client: &AgentClient, agent: &Agent) -> Result<NodeUsage, AskError> {
    let mut request: Request = http::Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = Uri::from_static(SUMMARY);
    if let Ok(host) = HeaderValue::try_from(agent.authority()) {
        request.headers_mut().insert(header::HOST, host);
    }
    let answer = client.send(agent, request).await?;
    if !answer.status().is_success() {
        return Err(AskError::Refused(answer.status()));
    }
    let body = Limited::new(answer.into_body(), limits::USAGE_BYTES_MAX);
    let body = body.collect().await.map_err(AskError::Body)?;
    Ok(NodeUsage::parse(&body.to_bytes())?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn summaries_of_agents_and_kubelets_are_read() {
        let time = "2026-01-02T03:04:05Z";
        let memory = json!({"time": time, "workingSetBytes": 4096});
        let rate = json!({"time": time, "usageCoreNanoSeconds": 5, "usageNanoCores": 7});
        let mut with_window = rate.clone();
        with_window["windowNanoSeconds"] = json!(12_500_000_000_u64);
        let unknown = json!({"time": time, "usageCoreNanoSeconds": 5});
        let summary = json!({
            "node": {"nodeName": "n", "cpu": rate, "memory": memory, "fs": {"usedBytes": 1}},
            "pods": [{
                "podRef": {"name": "p", "namespace": "ns", "uid": "u"},
                "containers": [
                    {"name": "a", "cpu": with_window, "memory": memory},
                    {"name": "new", "cpu": unknown, "memory": memory},
                    {"name": "ended"},
                ],
            }],
        });
        let usage = NodeUsage::parse(summary.to_string().as_bytes()).unwrap();
        let expected = Point {
            time: Timestamp::parse(time).unwrap(),
            window: WINDOW_DEFAULT,
            nano_cores: 7,
            working_set: 4096,
        };
        assert_eq!(usage.node, Some(expected));
        let container = Point {
            window: Duration::from_millis(12_500),
            ..expected
        };
        assert_eq!(usage.pod("ns", "p"), [("a".to_owned(), container)]);
        assert_eq!(usage.pod("other", "p"), []);
        NodeUsage::parse(b"{}").unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn old_answers_are_removed() {
        let usage = AgentUsage::default();
        let slot = usage.slot("n");
        *slot.lock().await = Some(Answer {
            until: Instant::now() + limits::USAGE_KEPT,
            usage: None,
        });
        assert_eq!(lock(&usage.cache).slots.len(), 1);
        tokio::time::sleep(3 * limits::USAGE_KEPT).await;
        let cache = lock(&usage.cache);
        assert!(cache.slots.is_empty() && !cache.is_cleaned);
    }
}

//! The scheduler: binds the pending pods of `default-scheduler` where [`kennel_core::schedule`]
//! says.
//!
//! What that does not weigh yet is said there. This shell does not yet tell anyone that a pod fits
//! nowhere (neither the condition `PodScheduled` nor an event): such a pod stays pending in silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kennel_core::daemonset::NodeView;
use kennel_core::daemonset::fit::Rules;
use kennel_core::schedule::{Binding, Scheduler};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::view;
use kennel_client::feed::{self, Change, Identity};
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::{Error, api};

/// The scheduler that pods name when they name none.
const NAME: &str = "default-scheduler";
/// How long to wait after the first failure to bind a pod; doubled each time.
const RETRY: Duration = Duration::from_millis(100);
/// The wait is doubled at most so often.
const RETRY_DOUBLINGS: u32 = 8;

enum Seen {
    Pod(Change<SeenPod>),
    Node(Change<NodeView>),
}

struct SeenPod {
    id: Identity,
    /// What it asks of its node, if it is ours to place.
    rules: Option<Rules>,
}

enum Outcome {
    Bound,
    Failed(Arc<str>),
    Retry(Arc<str>),
}

struct Controller {
    client: Client,
    scheduler: Scheduler,
    work: Work<Outcome>,
    /// The pods that wait, by uid.
    waiting: BTreeMap<Arc<str>, Waiting>,
}

struct Waiting {
    namespace: Arc<str>,
    name: Arc<str>,
    failures: u32,
}

/// Runs until told to stop.
pub async fn run(client: Client, stop: CancellationToken) -> Result<(), Error> {
    let mut seen = watches(&client);
    let mut controller = Controller {
        client,
        scheduler: Scheduler::new(),
        work: Work::new(WRITES_AT_ONCE),
        waiting: BTreeMap::new(),
    };
    tracing::info!("scheduler started");
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            change = seen.next() => match change {
                Some(change) => controller.saw(change),
                None => return Err(Error::WatchEnded("pods and nodes")),
            },
            outcome = controller.work.next() => controller.ended(outcome),
        }
    }
    controller.work.finish().await;
    tracing::info!("scheduler stopped");
    Ok(())
}

fn watches(client: &Client) -> BoxStream<'static, Seen> {
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let unbound = Config::default().fields("spec.nodeName=");
    let pods =
        feed::watch(pods, unbound, "pending pods").map(|c| Seen::Pod(c.map(|pod| seen_pod(&pod))));
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = feed::watch(nodes, Config::default(), "nodes");
    let nodes = nodes.map(|c| Seen::Node(c.map(|node| view::node(&node))));
    stream::select_all([pods.boxed(), nodes.boxed()]).boxed()
}

/// A pod that this scheduler should bind: unbound, alive, ours, and not held back by a gate.
fn is_ours(object: &DynamicObject) -> bool {
    let (spec, phase) = (
        &object.data["spec"],
        object.data["status"]["phase"].as_str(),
    );
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let gates = spec["schedulingGates"].as_array();
    text("nodeName").is_empty()
        && matches!(text("schedulerName"), "" | NAME)
        && object.metadata.deletion_timestamp.is_none()
        && !matches!(phase, Some("Failed" | "Succeeded"))
        && gates.is_none_or(Vec::is_empty)
}

fn seen_pod(object: &DynamicObject) -> SeenPod {
    SeenPod {
        id: Identity::of(object),
        rules: is_ours(object).then(|| Rules::of_pod_spec(&object.data["spec"])),
    }
}

impl Controller {
    fn saw(&mut self, seen: Seen) {
        match seen {
            Seen::Pod(Change::Applied(pod)) => self.pod(pod),
            Seen::Pod(Change::Gone(id)) => self.forget(&id.uid),
            Seen::Node(Change::Applied(node)) => {
                for binding in self.scheduler.node(node) {
                    self.bind(binding);
                }
            }
            Seen::Node(Change::Gone(id)) => self.scheduler.node_gone(&id.name),
            Seen::Pod(Change::Synced) | Seen::Node(Change::Synced) => {}
        }
    }

    fn pod(&mut self, SeenPod { id, rules }: SeenPod) {
        let Some(rules) = rules else {
            return self.forget(&id.uid);
        };
        let Identity {
            namespace,
            name,
            uid,
        } = id;
        self.waiting.entry(uid.clone()).or_insert(Waiting {
            namespace,
            name,
            failures: 0,
        });
        if let Some(binding) = self.scheduler.pod(&uid, rules) {
            self.bind(binding);
        }
    }

    fn forget(&mut self, uid: &str) {
        self.waiting.remove(uid);
        self.scheduler.pod_gone(uid);
    }

    fn bind(&mut self, binding: Binding) {
        let Some(pod) = self.waiting.get(&binding.pod) else {
            return;
        };
        let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
        let client = self.client.clone();
        self.work.push(async move {
            let path = format!("{}/{name}/binding", api::core_path(&namespace, "pods"));
            let body = body(&binding, &namespace, &name);
            match api::create(&client, &path, &body).await {
                Ok(()) => Outcome::Bound,
                // Gone, or bound by someone else: the watch says so too.
                Err(error) if api::already_gone(&error) => {
                    let why = api::explain(&error);
                    tracing::debug!("pod {namespace}/{name} needs no binding any more: {why}");
                    Outcome::Failed(binding.pod)
                }
                Err(error) => {
                    let why = api::explain(&error);
                    tracing::warn!("binding pod {namespace}/{name} failed: {why}");
                    Outcome::Failed(binding.pod)
                }
            }
        });
    }

    fn ended(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Bound => {}
            Outcome::Failed(uid) => {
                self.scheduler.failed(&uid);
                if let Some(pod) = self.waiting.get_mut(&uid) {
                    let delay = RETRY * 2_u32.pow(pod.failures.min(RETRY_DOUBLINGS));
                    pod.failures += 1;
                    self.work.later(delay, Outcome::Retry(uid));
                }
            }
            Outcome::Retry(uid) => {
                if let Some(binding) = self.scheduler.retry(&uid) {
                    self.bind(binding);
                }
            }
        }
    }
}

fn body(binding: &Binding, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": &*binding.pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": &*binding.node},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &Value, expected: bool) {
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        assert_eq!(is_ours(&object), expected, "{spec}");
    }

    #[test]
    fn only_pods_that_wait_for_this_scheduler_are_bound() {
        check(&json!({}), true);
        check(&json!({"schedulerName": "default-scheduler"}), true);
        check(&json!({"schedulerName": "other"}), false);
        check(&json!({"nodeName": "n1"}), false);
        check(&json!({"schedulingGates": [{"name": "wait"}]}), false);
        check(&json!({"schedulingGates": []}), true);
    }
}

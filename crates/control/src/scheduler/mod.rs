//! The scheduler: binds the pending pods of `default-scheduler` where [`kennel_core::schedule`]
//! says.
//!
//! What that does not weigh yet is said there. This shell does not yet tell anyone that a pod fits
//! nowhere (neither the condition `PodScheduled` nor an event): such a pod stays pending in silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use kennel_core::daemonset::NodeView;
use kennel_core::daemonset::fit::Rules;
use kennel_core::schedule::{Binding, Scheduler};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::informers::Informers;
use crate::shape::Pod;
use crate::view;
use kennel_client::feed::{Change, Identity};
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

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let seen = watches(informers);
    let controller = Controller {
        client,
        scheduler: Scheduler::new(),
        work: Work::new(WRITES_AT_ONCE),
        waiting: BTreeMap::new(),
    };
    controller.run(seen, stop)
}

fn watches(informers: &mut Informers) -> BoxStream<'static, Seen> {
    let pods = informers.pods();
    let pods = pods.map(|c| Seen::Pod(c.map(|pod| seen_pod(&pod))));
    let nodes = informers.nodes();
    let nodes = nodes.map(|c| Seen::Node(c.map(|node| view::node(&node))));
    stream::select_all([pods.boxed(), nodes.boxed()]).boxed()
}

/// A pod that this scheduler should bind: unbound, alive, ours, and not held back by a gate.
fn is_ours(pod: &Pod) -> bool {
    let (spec, phase) = (&pod.spec, pod.status.phase.as_deref());
    spec.node_name.as_deref().unwrap_or_default().is_empty()
        && matches!(spec.scheduler_name.as_deref(), None | Some("" | NAME))
        && pod.metadata.deletion_timestamp.is_none()
        && !matches!(phase, Some("Failed" | "Succeeded"))
        && spec.scheduling_gates.is_empty()
}

fn seen_pod(pod: &Pod) -> SeenPod {
    SeenPod {
        id: Identity::of(pod),
        rules: is_ours(pod).then(|| pod.rules()),
    }
}

impl Controller {
    async fn run(
        mut self,
        mut seen: BoxStream<'static, Seen>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        tracing::info!("scheduler started");
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                change = seen.next() => match change {
                    Some(change) => self.saw(change),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("pods and nodes")),
                },
                outcome = self.work.next() => self.ended(outcome),
            }
        }
        self.work.finish().await;
        tracing::info!("scheduler stopped");
        Ok(())
    }

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
        let pod: Pod = serde_json::from_value(object).unwrap();
        assert_eq!(is_ours(&pod), expected, "{spec}");
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

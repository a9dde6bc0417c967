//! The taint eviction controller: deletes pods that do not tolerate their node's `NoExecute` taints.

use std::sync::Arc;

use kennel_client::Error;
use kennel_client::backoff::Failures;
use kennel_client::clock::Clock;
use kennel_client::events::{Note, Recorder};
use kennel_client::write::Writer;
use kennel_core::daemonset::fit::parse_tolerations;
use kennel_core::lifecycle::eviction::{Action, Evictions};
use kennel_types::{Identity, Monotonic, Node};
use kube::{Client, ResourceExt as _};

use super::{RETRY, view, writes};
use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use crate::informers::{Informers, Pod};

enum Event {
    Node(Update<Arc<Node>>),
    Pod(Update<Arc<Pod>>),
}

/// A pod is named by its uid.
enum Outcome {
    Evicted,
    Failed(Arc<str>),
    RetryDue(Arc<str>),
}

struct TaintEviction {
    writer: Writer,
    recorder: Recorder,
    evictions: Evictions,
    /// Of deletions, by uid.
    failures: Failures<Arc<str>>,
}

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut watches = Watches::default();
    watches.add("nodes", informers.nodes.subscribe(), Event::Node);
    watches.add("pods", informers.pods.subscribe(), Event::Pod);
    let (writer, recorder, recording) = setup.recording_writer(client, "taint-eviction-controller");
    let controller = TaintEviction {
        writer,
        recorder,
        evictions: Evictions::default(),
        failures: Failures::new(RETRY),
    };
    frame::run_with(controller, watches, recording, setup)
}

impl Controller for TaintEviction {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "taint eviction controller"
    }

    fn handle(&mut self, event: Event, cx: &mut Context<Self>) {
        match event {
            Event::Node(Update::Applied(node)) => {
                let name = node.name_any().into();
                self.evictions.on_node(cx.now(), &name, &node.spec.taints);
            }
            Event::Node(Update::Gone(id)) => self.evictions.on_node_deleted(&id.name),
            Event::Pod(Update::Applied(pod)) => self.pod_applied(&pod, cx),
            Event::Pod(Update::Gone(id)) => {
                self.evictions.on_pod_deleted(&id.uid);
                self.failures.reset(&id.uid);
            }
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        for action in self.evictions.take_actions(cx.now()) {
            match action {
                Action::Delete(pod) => {
                    let (writer, recorder) = (self.writer.clone(), self.recorder.clone());
                    cx.spawn(async move { evict(&writer, &recorder, pod).await });
                }
                Action::Cancelled(pod) => {
                    record(&self.recorder, &pod, "Cancelling deletion of Pod");
                }
            }
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Evicted => {}
            Outcome::Failed(uid) => {
                let delay = self.failures.next_delay(uid.clone());
                cx.after(delay, Outcome::RetryDue(uid));
            }
            Outcome::RetryDue(uid) => self.evictions.retry(cx.now(), &uid),
        }
    }

    fn next_deadline(&self, _: &Clock) -> Option<Monotonic> {
        self.evictions.next_deadline()
    }
}

impl TaintEviction {
    /// Pods that are being deleted anyway are not evicted.
    fn pod_applied(&mut self, pod: &Pod, cx: &Context<Self>) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let tolerations = parse_tolerations(&pod.spec.tolerations);
        let staying = pod.metadata.deletion_timestamp.is_none();
        match view::node_pod(pod, &tolerations[..]).filter(|_| staying) {
            Some(pod) => self.evictions.on_pod(cx.now(), pod),
            None => self.evictions.on_pod_deleted(uid),
        }
    }
}

async fn evict(writer: &Writer, recorder: &Recorder, pod: Identity) -> Outcome {
    tracing::info!("deleting pod {pod}: it does not tolerate its node's taints");
    record(recorder, &pod, "Marking for deletion Pod");
    match writes::evict(writer, &pod).await {
        Ok(()) => Outcome::Evicted,
        Err(failure) => {
            tracing::warn!("deleting pod {pod} failed: {failure}");
            Outcome::Failed(pod.uid)
        }
    }
}

fn record(recorder: &Recorder, pod: &Identity, what: &str) {
    let note = Note::new(false, "TaintManagerEviction", format!("{what} {pod}"));
    writes::record_on_pod(recorder, pod, note);
}

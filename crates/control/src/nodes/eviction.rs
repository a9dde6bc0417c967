//! The taint eviction controller: its loop.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kennel_client::Error;
use kennel_client::events::{Note, Recorder};
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::Writer;
use kennel_core::lifecycle::eviction::{Action, Evictions};
use kennel_core::lifecycle::monitor::PodName;
use kube::{Client, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use super::{RETRY, Stopwatch, act, facts};
use crate::informers::Informers;
use crate::shape::{Node, Pod};

enum Seen {
    Node(Change<Arc<Node>>),
    Pod(Change<Arc<Pod>>),
}

enum Ended {
    Evicted,
    Failed(Arc<str>),
    /// It is time to try again.
    Again(Arc<str>),
}

struct Controller {
    writer: Writer,
    recorder: Recorder,
    evictions: Evictions,
    work: Work<Ended>,
    watch: Stopwatch,
    /// Kinds of which not all has been seen yet.
    unsynced: u8,
}

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let nodes = informers.nodes().map(Seen::Node);
    let pods = informers.pods().map(Seen::Pod);
    let seen = stream::select_all([nodes.boxed(), pods.boxed()]).boxed();
    let writer = Writer::new(client, Fence::open());
    let component = "taint-eviction-controller";
    let (recorder, scribe) = Recorder::new(writer.clone(), component, stop.clone());
    let controller = Controller {
        writer,
        recorder,
        evictions: Evictions::new(),
        work: Work::new(WRITES_AT_ONCE),
        watch: Stopwatch::start(),
        unsynced: 2,
    };
    async move { tokio::join!(controller.run(seen, stop), scribe).0 }
}

impl Controller {
    async fn run(
        mut self,
        mut seen: BoxStream<'static, Seen>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        tracing::info!("taint eviction controller started");
        loop {
            let deadline = self
                .evictions
                .next_deadline()
                .filter(|_| self.unsynced == 0);
            tokio::select! {
                () = stop.cancelled() => break,
                change = seen.next() => match change {
                    Some(change) => self.saw(change),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("nodes and pods")),
                },
                ended = self.work.next() => self.ended(ended),
                () = self.watch.sleep_until(deadline) => {}
            }
            if self.unsynced == 0 {
                for action in self.evictions.take(self.watch.now()) {
                    self.start(action);
                }
            }
        }
        self.work.finish().await;
        tracing::info!("taint eviction controller stopped");
        Ok(())
    }

    fn saw(&mut self, seen: Seen) {
        match seen {
            Seen::Node(Change::Applied(node)) => {
                let taints: Vec<_> = node.spec.taints.iter().map(facts::taint).collect();
                let name = node.name_any().into();
                self.evictions.node(self.watch.now(), &name, &taints);
            }
            Seen::Node(Change::Gone(id)) => self.evictions.node_gone(&id.name),
            Seen::Pod(Change::Applied(pod)) => self.saw_pod(&pod),
            Seen::Pod(Change::Gone(id)) => self.evictions.pod_gone(&id.uid),
            Seen::Node(Change::Synced) | Seen::Pod(Change::Synced) => {
                self.unsynced = self.unsynced.saturating_sub(1);
            }
        }
    }

    /// A pod that is going anyway needs no pushing.
    fn saw_pod(&mut self, pod: &Pod) {
        let uid: Arc<str> = pod.metadata.uid.as_deref().unwrap_or_default().into();
        let tolerations = facts::tolerations(pod);
        let staying = pod.metadata.deletion_timestamp.is_none();
        match facts::resident(pod, &tolerations[..]).filter(|_| staying) {
            Some(resident) => self.evictions.pod(self.watch.now(), &uid, resident),
            None => self.evictions.pod_gone(&uid),
        }
    }

    fn start(&mut self, action: Action) {
        match action {
            Action::Delete(pod) => {
                let (writer, recorder) = (self.writer.clone(), self.recorder.clone());
                self.work
                    .push(async move { evict(&writer, &recorder, pod).await });
            }
            Action::Cancelled(pod) => tell(&self.recorder, &pod, "Cancelling deletion of Pod"),
        }
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Evicted => {}
            Ended::Failed(uid) => self.work.later(RETRY, Ended::Again(uid)),
            Ended::Again(uid) => self.evictions.again(self.watch.now(), &uid),
        }
    }
}

async fn evict(writer: &Writer, recorder: &Recorder, pod: PodName) -> Ended {
    let PodName {
        namespace, name, ..
    } = &pod;
    tracing::info!("deleting pod {namespace}/{name}: its node's taints drive it off");
    tell(recorder, &pod, "Marking for deletion Pod");
    match act::evict(writer, &pod).await {
        Ok(()) => Ended::Evicted,
        Err(failure) => {
            tracing::warn!("deleting pod {namespace}/{name} failed: {failure}");
            Ended::Failed(pod.uid)
        }
    }
}

fn tell(recorder: &Recorder, pod: &PodName, what: &str) {
    let note = Note {
        warning: false,
        reason: "TaintManagerEviction".into(),
        message: format!("{what} {}/{}", pod.namespace, pod.name),
    };
    act::tell_of_pod(recorder, pod, note);
}

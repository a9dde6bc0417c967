//! The node lifecycle controller: its loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kennel_client::Error;
use kennel_client::events::{Note, Recorder};
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::{Failure, Writer, Written};
use kennel_core::lifecycle::NodeFacts;
use kennel_core::lifecycle::conditions::Silence;
use kennel_core::lifecycle::monitor::{Action, Monitor, NodeVersion, PodName};
use kennel_core::lifecycle::residents::Resident;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::{RETRY, RETRY_CONFLICT, Stopwatch, act, facts};
use crate::informers::Informers;
use crate::shape::{Lease, Pod};

pub use kennel_core::lifecycle::monitor::Settings;
pub use kennel_core::lifecycle::zones::Rates;

/// A pod's uid, and the pod with whether it is ready, if it is on a node.
type SeenPod = (Arc<str>, Option<Resident<bool>>);

enum Seen {
    Node(Change<NodeFacts>),
    /// Whose, and what it says of when it was renewed.
    Lease(Change<(String, Option<i64>)>),
    Pod(Change<SeenPod>),
}

/// Which node, by name and uid.
type Which = (Arc<str>, Arc<str>);

enum Ended {
    Wrote(Which, Arc<str>),
    Failed(Which, bool),
    /// It is time to try again.
    Again(Which),
    /// The API did not answer for a while, in which no node could be heard.
    WasDeaf(Which),
    Marked,
    NotMarked(PodName, bool),
    MarkAgain(Arc<str>),
}

struct Controller {
    writer: Writer,
    recorder: Recorder,
    monitor: Monitor,
    work: Work<Ended>,
    watch: Stopwatch,
    /// Kinds of which not all has been seen yet: nodes, leases, pods.
    unsynced: [bool; 3],
    /// How often the API did not answer for a while.
    silences: Arc<AtomicU64>,
}

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    settings: Settings,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let nodes = informers.nodes();
    let nodes = nodes.map(|change| Seen::Node(change.map(|node| facts::node(&node))));
    let leases = informers.node_leases();
    let leases = leases.map(|change| Seen::Lease(change.map(|lease| renewed(&lease))));
    let pods = informers.pods();
    let pods = pods.map(|change| Seen::Pod(change.map(|pod| resident(&pod))));
    let seen = stream::select_all([nodes.boxed(), leases.boxed(), pods.boxed()]).boxed();
    let writer = Writer::new(client, Fence::open());
    let (recorder, scribe) = Recorder::new(writer.clone(), "node-controller", stop.clone());
    let controller = Controller {
        writer,
        recorder,
        monitor: Monitor::new(settings),
        work: Work::new(WRITES_AT_ONCE),
        watch: Stopwatch::start(),
        unsynced: [true; 3],
        silences: Arc::default(),
    };
    async move { tokio::join!(controller.run(seen, stop), scribe).0 }
}

fn renewed(lease: &Lease) -> (String, Option<i64>) {
    let name = lease.metadata.name.clone().unwrap_or_default();
    let time = lease.spec.renew_time.as_ref();
    (name, time.map(|time| time.0.as_microsecond()))
}

fn resident(pod: &Pod) -> SeenPod {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default().into();
    (uid, facts::resident(pod, facts::is_ready(pod)))
}

impl Controller {
    async fn run(
        mut self,
        mut seen: BoxStream<'static, Seen>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        tracing::info!("node lifecycle controller started");
        loop {
            let deadline = self.monitor.next_deadline();
            tokio::select! {
                () = stop.cancelled() => break,
                change = seen.next() => match change {
                    Some(change) => self.saw(change),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("nodes, leases and pods")),
                },
                ended = self.work.next() => self.ended(ended),
                () = self.watch.sleep_until(deadline) => {}
            }
            for action in self.monitor.take(self.watch.now()) {
                self.start(action);
            }
        }
        self.work.finish().await;
        tracing::info!("node lifecycle controller stopped");
        Ok(())
    }

    fn saw(&mut self, seen: Seen) {
        let now = self.watch.now();
        match seen {
            Seen::Node(Change::Applied(node)) => self.monitor.node(now, node),
            Seen::Node(Change::Gone(id)) => self.monitor.node_gone(&id.name),
            Seen::Lease(Change::Applied((name, renewed))) => {
                self.monitor.lease(now, &name, renewed);
            }
            Seen::Lease(Change::Gone(_)) => {}
            Seen::Pod(Change::Applied((uid, Some(pod)))) => self.monitor.pod(&uid, pod),
            Seen::Pod(Change::Applied((uid, None))) => self.monitor.pod_gone(&uid),
            Seen::Pod(Change::Gone(id)) => self.monitor.pod_gone(&id.uid),
            Seen::Node(Change::Synced) => self.synced(0),
            Seen::Lease(Change::Synced) => self.synced(1),
            Seen::Pod(Change::Synced) => self.synced(2),
        }
    }

    /// One more kind has been seen as a whole; a later listing changes nothing.
    fn synced(&mut self, kind: usize) {
        self.unsynced[kind] = false;
        if self.unsynced == [false; 3] {
            self.monitor.synced(self.watch.now());
        }
    }

    fn start(&mut self, action: Action) {
        let writer = self.writer.clone();
        match action {
            Action::SetUnknown {
                node,
                created,
                conditions,
            } => {
                let silences = self.silences.clone();
                let known = silences.load(Ordering::SeqCst);
                self.work.push(async move {
                    let which = (node.name.clone(), node.uid.clone());
                    if silences.load(Ordering::SeqCst) != known {
                        // Decided before we knew that nobody could be heard.
                        return Ended::Failed(which, true);
                    }
                    let written = set_unknown(&writer, &node, created, &conditions).await;
                    let Some(written) = written else {
                        let (next, order) = (known + 1, Ordering::SeqCst);
                        let first = silences.compare_exchange(known, next, order, order);
                        return match first {
                            Ok(_) => Ended::WasDeaf(which),
                            Err(_) => Ended::Failed(which, true),
                        };
                    };
                    wrote(which, written)
                });
            }
            Action::SetTaints { node, change } => self.work.push(async move {
                let written = act::set_taints(&writer, &node, &change).await;
                wrote((node.name, node.uid), written)
            }),
            Action::MarkNotReady(pod) => {
                let recorder = self.recorder.clone();
                self.work
                    .push(async move { mark(&writer, &recorder, pod).await });
            }
            Action::Tell { name, uid, news } => act::tell(&self.recorder, &name, &uid, news),
        }
    }

    fn ended(&mut self, ended: Ended) {
        let after = |conflict: bool| if conflict { RETRY_CONFLICT } else { RETRY };
        match ended {
            Ended::Wrote((name, uid), version) => self.monitor.wrote(&name, &uid, &version),
            Ended::Failed(which, conflict) => {
                self.work.later(after(conflict), Ended::Again(which));
            }
            Ended::Again((name, uid)) => self.monitor.again(&name, &uid),
            Ended::WasDeaf((name, uid)) => {
                self.monitor.was_deaf(self.watch.now());
                self.monitor.again(&name, &uid);
            }
            Ended::Marked => {}
            Ended::NotMarked(pod, conflict) => {
                self.work.later(after(conflict), Ended::MarkAgain(pod.uid));
            }
            Ended::MarkAgain(uid) => self.monitor.pod_again(&uid),
        }
    }
}

/// Says of a node that nobody knows how it is; nothing, if the API did not answer. Then this returns when it
/// does again.
async fn set_unknown(
    writer: &Writer,
    node: &NodeVersion,
    created: Option<i64>,
    conditions: &[Silence],
) -> Option<Result<Written, Failure>> {
    tracing::info!("node {} has not been heard of for too long", node.name);
    match act::set_unknown(writer, node, created, conditions).await {
        Err(failure) if failure.pushes_back() => {
            tracing::warn!("the API does not answer, and no node is judged: {failure}");
            act::until_answered(writer, &node.name).await;
            None
        }
        written => Some(written),
    }
}

fn wrote(which: Which, written: Result<Written, Failure>) -> Ended {
    match written {
        Ok(written) => Ended::Wrote(which, written.resource_version.into()),
        Err(failure) => {
            if !failure.is(404) && !failure.is(409) {
                tracing::warn!("writing node {} failed: {failure}", which.0);
            }
            Ended::Failed(which, failure.is(409))
        }
    }
}

async fn mark(writer: &Writer, recorder: &Recorder, pod: PodName) -> Ended {
    match act::mark_not_ready(writer, &pod).await {
        Ok(marked) => {
            if marked {
                let note = Note {
                    warning: true,
                    reason: "NodeNotReady".into(),
                    message: "Node is not ready".to_owned(),
                };
                act::tell_of_pod(recorder, &pod, note);
            }
            Ended::Marked
        }
        Err(failure) => {
            if !failure.is(409) {
                let PodName {
                    namespace, name, ..
                } = &pod;
                tracing::warn!("marking pod {namespace}/{name} not ready failed: {failure}");
            }
            Ended::NotMarked(pod, failure.is(409))
        }
    }
}

#[cfg(test)]
mod tests;

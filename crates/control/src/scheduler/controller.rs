//! The loop: news in, writes out.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _};
use kennel_client::Error;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::Writer;
use kennel_core::schedule::{Action, PodRef, Scheduler};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::act::{self, Bound, Telling};
use super::allowance::Allowance;
use super::metrics::Metrics;
use super::seen::{Seen, Watch};

/// How many pods are decided about before the news is looked at again.
const DECISIONS: usize = 256;
/// How long a pod rests after a write about it has failed; doubled each time.
const REST: Duration = Duration::from_millis(100);
/// The rest is doubled at most so often: to 26 s.
const REST_DOUBLINGS: u32 = 8;

/// A write about a pod that waits. Those about one pod come one after another: what is told of it must not
/// arrive after it was bound.
enum Write {
    Bind(Arc<str>),
    Tell(Telling),
}

enum Ended {
    Bound(PodRef, Arc<str>, Bound),
    Told(PodRef, bool),
    TellAgain(Arc<str>),
    Evicted { preemptor: PodRef, done: bool },
    Rested(Arc<str>),
}

pub(super) struct Controller {
    scheduler: Scheduler,
    writer: Writer,
    recorder: Recorder,
    /// For events about pods that were placed.
    allowance: Allowance,
    work: Work<Ended>,
    /// By uid, the writes that wait for one about the same pod to end.
    busy: HashMap<Arc<str>, VecDeque<Write>>,
    /// How often in a row writes about a pod have failed, by uid.
    failures: HashMap<Arc<str>, u32>,
    /// Watches that have not delivered everything yet.
    unsynced: BTreeSet<Watch>,
    metrics: Arc<Metrics>,
}

impl Controller {
    pub(super) fn new(writer: Writer, recorder: Recorder, metrics: Arc<Metrics>) -> Self {
        Self {
            scheduler: Scheduler::new(),
            writer,
            recorder,
            allowance: Allowance::full(Instant::now()),
            work: Work::new(WRITES_AT_ONCE),
            busy: HashMap::new(),
            failures: HashMap::new(),
            unsynced: Watch::ALL.into(),
            metrics,
        }
    }

    pub(super) async fn run(
        mut self,
        mut rounds: BoxStream<'static, Vec<Seen>>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                round = rounds.next() => match round {
                    Some(round) => self.saw(round),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("pods, nodes and namespaces")),
                },
                ended = self.work.next() => self.ended(ended),
                () = tokio::task::yield_now(), if self.scheduler.has_work() => {}
            }
            for action in self.scheduler.decide(DECISIONS) {
                self.act(action);
            }
            self.metrics.pending(self.scheduler.pending());
        }
        self.work.finish().await;
        Ok(())
    }

    fn saw(&mut self, round: Vec<Seen>) {
        for seen in round {
            if let Some(watch) = seen.tell(&mut self.scheduler)
                && self.unsynced.remove(&watch)
                && self.unsynced.is_empty()
            {
                self.scheduler.synced();
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Bind { pod, node } => self.write(pod, Write::Bind(node)),
            Action::Explain {
                pod,
                message,
                nominated,
                since,
            } => {
                self.metrics.unschedulable.increment();
                self.note(&pod, true, "FailedScheduling", message.clone());
                let telling = Telling::Unschedulable(message, nominated, since);
                self.write(pod, Write::Tell(telling));
            }
            Action::Unnominate(pod) => self.write(pod, Write::Tell(Telling::NotNominated)),
            Action::Evict {
                preemptor,
                node,
                victims,
            } => {
                self.metrics.preemptions.increment();
                for victim in victims {
                    self.evict(preemptor.clone(), &node, victim);
                }
            }
        }
    }

    /// Begins a write about a pod, or lets it wait for the one before.
    fn write(&mut self, pod: PodRef, write: Write) {
        if let Some(waiting) = self.busy.get_mut(&pod.uid) {
            waiting.push_back(write);
            return;
        }
        self.busy.insert(pod.uid.clone(), VecDeque::new());
        self.begin(pod, write);
    }

    fn begin(&mut self, pod: PodRef, write: Write) {
        let writer = self.writer.clone();
        match write {
            Write::Bind(node) => self.work.push(async move {
                let bound = act::bind(&writer, &pod, &node).await;
                Ended::Bound(pod, node, bound)
            }),
            Write::Tell(telling) => self.work.push(async move {
                let told = act::tell(&writer, &pod, &telling).await;
                let done = told
                    .as_ref()
                    .map_or_else(|failure| failure.is(404), |()| true);
                if let Err(failure) = told {
                    let PodRef {
                        namespace, name, ..
                    } = &pod;
                    tracing::debug!("telling of pod {namespace}/{name} failed: {failure}");
                }
                Ended::Told(pod, done)
            }),
        }
    }

    fn next_about(&mut self, pod: &PodRef) {
        let Some(waiting) = self.busy.get_mut(&pod.uid) else {
            return;
        };
        match waiting.pop_front() {
            Some(write) => self.begin(pod.clone(), write),
            None => drop(self.busy.remove(&pod.uid)),
        }
    }

    fn evict(&mut self, preemptor: PodRef, node: &str, victim: PodRef) {
        let (writer, recorder) = (self.writer.clone(), self.recorder.clone());
        let message = format!("Preempted by pod {} on node {node}", preemptor.uid);
        self.metrics.victims.increment();
        self.work.push(async move {
            let evicted = act::evict(&writer, &victim).await;
            let done = evicted.is_ok();
            match evicted {
                Ok(()) => recorder.emit(reference(&victim), note(false, "Preempted", message)),
                Err(failure) => {
                    let PodRef {
                        namespace, name, ..
                    } = &victim;
                    tracing::warn!("evicting pod {namespace}/{name} failed: {failure}");
                }
            }
            Ended::Evicted { preemptor, done }
        });
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Bound(pod, node, Bound::Yes) => {
                self.failures.remove(&pod.uid);
                self.metrics.scheduled.increment();
                self.next_about(&pod);
                if self.allowance.take(Instant::now()) {
                    let PodRef {
                        namespace, name, ..
                    } = &pod;
                    let message = format!("Successfully assigned {namespace}/{name} to {node}");
                    self.note(&pod, false, "Scheduled", message);
                }
            }
            Ended::Bound(pod, node, Bound::No(why)) => {
                let PodRef {
                    namespace, name, ..
                } = &pod;
                // Gone, or bound by somebody else: the watch says so too.
                if why.is(404) || why.is(409) {
                    tracing::debug!("pod {namespace}/{name} needs no binding any more: {why}");
                } else {
                    tracing::warn!("binding pod {namespace}/{name} to {node} failed: {why}");
                }
                self.metrics.errors.increment();
                self.scheduler.bind_failed(&pod.uid);
                self.next_about(&pod);
                // Once may be a race with a deletion, of which the watch tells. Again is for people to know.
                if self.failures.contains_key(&pod.uid) && self.scheduler.is_waiting(&pod.uid) {
                    let message = format!("binding rejected: {why}");
                    self.note(&pod, true, "FailedScheduling", message);
                }
                self.rest(&pod.uid);
            }
            Ended::Told(pod, done) => {
                self.next_about(&pod);
                if !done {
                    let rest = self.rest_of(&pod.uid);
                    self.work.later(rest, Ended::TellAgain(pod.uid));
                }
            }
            // Not what did not arrive, which may be outdated by now.
            Ended::TellAgain(uid) if self.scheduler.is_waiting(&uid) => {
                self.scheduler.tell_again(&uid);
            }
            Ended::TellAgain(uid) => drop(self.failures.remove(&uid)),
            Ended::Evicted { done: true, .. } => {}
            Ended::Evicted { preemptor, .. } => {
                self.scheduler.evict_failed(&preemptor.uid);
                self.rest(&preemptor.uid);
            }
            Ended::Rested(uid) if self.scheduler.is_waiting(&uid) => self.scheduler.retry(&uid),
            Ended::Rested(uid) => drop(self.failures.remove(&uid)),
        }
    }

    fn rest_of(&mut self, uid: &Arc<str>) -> Duration {
        let failures = self.failures.entry(uid.clone()).or_default();
        let rest = REST * 2_u32.pow((*failures).min(REST_DOUBLINGS));
        *failures += 1;
        rest
    }

    fn rest(&mut self, uid: &Arc<str>) {
        let rest = self.rest_of(uid);
        self.work.later(rest, Ended::Rested(uid.clone()));
    }

    fn note(&self, pod: &PodRef, warning: bool, reason: &'static str, message: String) {
        self.recorder
            .emit(reference(pod), note(warning, reason, message));
    }
}

fn note(warning: bool, reason: &'static str, message: String) -> Note {
    Note {
        warning,
        reason: reason.into(),
        message,
    }
}

fn reference(pod: &PodRef) -> Reference {
    Reference {
        api_version: "v1",
        kind: "Pod",
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        resource_version: String::new(),
        field_path: String::new(),
    }
}

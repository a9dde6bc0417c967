//! The controller: events in, writes out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kennel_client::clock::Clock;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::rate::TokenBucket;
use kennel_client::write::{Failure, Writer};
use kennel_core::schedule::{Action, Scheduler};
use kennel_types::{Identity, Monotonic};

use super::events::Event;
use super::metrics::Metrics;
use super::writes::{self, Bound, StatusChange};
use crate::frame::{Context, Controller, Round};

/// How many pods are scheduled in one round, before events are handled again.
const DECISIONS: usize = 256;
/// Before a pod is tried again whose write failed.
const RETRY: Policy =
    Policy::exponential(Duration::from_millis(100), Duration::from_millis(25_600));
/// `Scheduled` events: enough for people, too few to slow down the binding of thousands of pods.
const SCHEDULED_EVENTS_BURST: f64 = 200.0;
/// As many as upstream's recorder may send.
const SCHEDULED_EVENTS_PER_SECOND: f64 = 50.0;

/// A write to a pod. Those to one pod are made one after another, so that no status change arrives after the binding.
enum Write {
    Bind(Arc<str>),
    Status(StatusChange),
}

/// Pods are named by their uid where no more is needed.
pub(super) enum Outcome {
    Bound(Identity, Arc<str>, Bound),
    StatusWritten { pod: Identity, done: bool },
    StatusRetryDue(Arc<str>),
    Evicted { preemptor: Identity, done: bool },
    RetryDue(Arc<str>),
}

pub(super) struct SchedulerController {
    scheduler: Scheduler,
    writer: Writer,
    recorder: Recorder,
    scheduled_events: TokenBucket,
    /// By uid: the writes that wait for one to the same pod to end.
    busy: HashMap<Arc<str>, VecDeque<Write>>,
    /// By uid: how many writes to a pod failed in a row.
    failures: HashMap<Arc<str>, u32>,
    metrics: Arc<Metrics>,
}

impl Controller for SchedulerController {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        event.apply(&mut self.scheduler);
    }

    fn synced(&mut self, _: &mut Context<Self>) {
        self.scheduler.synced();
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        for action in self.scheduler.decide(DECISIONS) {
            self.start_action(action, cx);
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Bound(pod, node, Bound::Yes) => self.bound(&pod, &node, cx),
            Outcome::Bound(pod, node, Bound::No(failure)) => {
                self.not_bound(&pod, &node, &failure, cx);
            }
            Outcome::StatusWritten { pod, done } => {
                self.next_write(&pod, cx);
                if !done {
                    let delay = self.retry_delay(&pod.uid);
                    cx.after(delay, Outcome::StatusRetryDue(pod.uid));
                }
            }
            // The scheduler repeats its latest decision; the status that failed may be outdated by now.
            Outcome::StatusRetryDue(uid) if self.scheduler.is_pending(&uid) => {
                self.scheduler.report_again(&uid);
            }
            Outcome::StatusRetryDue(uid) => drop(self.failures.remove(&uid)),
            Outcome::Evicted { done: true, .. } => {}
            Outcome::Evicted { preemptor, .. } => {
                self.scheduler.evict_failed(&preemptor.uid);
                self.retry_later(&preemptor.uid, cx);
            }
            Outcome::RetryDue(uid) if self.scheduler.is_pending(&uid) => {
                self.scheduler.retry(&uid);
            }
            Outcome::RetryDue(uid) => drop(self.failures.remove(&uid)),
        }
    }

    /// At once, while there are more pods to schedule than one round takes.
    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        self.scheduler.has_work().then(|| clock.monotonic())
    }

    fn observe(&self, _: &Round) {
        self.metrics.pending(self.scheduler.pending());
    }
}

impl SchedulerController {
    pub(super) fn new(writer: Writer, recorder: Recorder, metrics: Arc<Metrics>) -> Self {
        Self {
            scheduler: Scheduler::new(),
            writer,
            recorder,
            scheduled_events: TokenBucket::full(
                SCHEDULED_EVENTS_BURST,
                SCHEDULED_EVENTS_PER_SECOND,
                Monotonic::START,
            ),
            busy: HashMap::new(),
            failures: HashMap::new(),
            metrics,
        }
    }

    fn start_action(&mut self, action: Action, cx: &mut Context<Self>) {
        match action {
            Action::Bind { pod, node } => self.write(pod, Write::Bind(node), cx),
            Action::ReportUnschedulable {
                pod,
                message,
                nominated,
                since,
            } => {
                self.metrics.unschedulable.increment();
                self.record(&pod, true, "FailedScheduling", message.clone());
                let change = StatusChange::Unschedulable {
                    message,
                    nominated,
                    since,
                };
                self.write(pod, Write::Status(change), cx);
            }
            Action::Unnominate(pod) => {
                self.write(pod, Write::Status(StatusChange::NotNominated), cx);
            }
            Action::Evict {
                preemptor,
                node,
                victims,
            } => {
                self.metrics.preemptions.increment();
                for victim in victims {
                    self.evict(preemptor.clone(), &node, victim, cx);
                }
            }
        }
    }

    /// Starts a write to a pod, or queues it behind the one that runs.
    fn write(&mut self, pod: Identity, write: Write, cx: &mut Context<Self>) {
        if let Some(waiting) = self.busy.get_mut(&pod.uid) {
            waiting.push_back(write);
            return;
        }
        self.busy.insert(pod.uid.clone(), VecDeque::new());
        self.start_write(pod, write, cx);
    }

    fn start_write(&self, pod: Identity, write: Write, cx: &mut Context<Self>) {
        let writer = self.writer.clone();
        match write {
            Write::Bind(node) => cx.spawn(async move {
                // Boxed when it starts: a job that waits in the queue is small.
                let bound = Box::pin(writes::bind(&writer, &pod, &node)).await;
                Outcome::Bound(pod, node, bound)
            }),
            Write::Status(change) => cx.spawn(async move {
                let written = writes::write_status(&writer, &pod, &change).await;
                let done = written
                    .as_ref()
                    .map_or_else(|failure| failure.is(404), |()| true);
                if let Err(failure) = written {
                    tracing::debug!("writing the status of pod {pod} failed: {failure}");
                }
                Outcome::StatusWritten { pod, done }
            }),
        }
    }

    /// Starts the next write to a pod, when the one before has ended.
    fn next_write(&mut self, pod: &Identity, cx: &mut Context<Self>) {
        let Some(waiting) = self.busy.get_mut(&pod.uid) else {
            return;
        };
        match waiting.pop_front() {
            Some(write) => self.start_write(pod.clone(), write, cx),
            None => drop(self.busy.remove(&pod.uid)),
        }
    }

    fn evict(&self, preemptor: Identity, node: &str, victim: Identity, cx: &mut Context<Self>) {
        let (writer, recorder) = (self.writer.clone(), self.recorder.clone());
        let message = format!("Preempted by pod {} on node {node}", preemptor.uid);
        self.metrics.victims.increment();
        cx.spawn(async move {
            let evicted = writes::evict(&writer, &victim).await;
            let done = evicted.is_ok();
            match evicted {
                Ok(()) => {
                    recorder.emit(reference(&victim), Note::new(false, "Preempted", message));
                }
                Err(failure) => {
                    tracing::warn!("evicting pod {victim} failed: {failure}");
                }
            }
            Outcome::Evicted { preemptor, done }
        });
    }

    fn bound(&mut self, pod: &Identity, node: &str, cx: &mut Context<Self>) {
        self.failures.remove(&pod.uid);
        self.metrics.scheduled.increment();
        self.next_write(pod, cx);
        if self.scheduled_events.take(cx.now()) {
            let message = format!("Successfully assigned {pod} to {node}");
            self.record(pod, false, "Scheduled", message);
        }
    }

    fn not_bound(&mut self, pod: &Identity, node: &str, failure: &Failure, cx: &mut Context<Self>) {
        // Deleted, or bound by another client: the watch delivers which.
        if failure.is(404) || failure.is(409) {
            tracing::debug!("pod {pod} needs no binding any more: {failure}");
        } else {
            tracing::warn!("binding pod {pod} to {node} failed: {failure}");
        }
        self.metrics.errors.increment();
        self.scheduler.bind_failed(&pod.uid);
        self.next_write(pod, cx);
        // The first failure may be a race with a deletion. A second one is worth an event.
        if self.failures.contains_key(&pod.uid) && self.scheduler.is_pending(&pod.uid) {
            let message = format!("binding rejected: {failure}");
            self.record(pod, true, "FailedScheduling", message);
        }
        self.retry_later(&pod.uid, cx);
    }

    fn retry_delay(&mut self, uid: &Arc<str>) -> Duration {
        let failures = self.failures.entry(uid.clone()).or_default();
        let delay = backoff::delay(&RETRY, *failures);
        *failures = failures.saturating_add(1);
        delay
    }

    fn retry_later(&mut self, uid: &Arc<str>, cx: &mut Context<Self>) {
        let delay = self.retry_delay(uid);
        cx.after(delay, Outcome::RetryDue(uid.clone()));
    }

    fn record(&self, pod: &Identity, warning: bool, reason: &'static str, message: String) {
        let note = Note::new(warning, reason, message);
        self.recorder.emit(reference(pod), note);
    }
}

fn reference(pod: &Identity) -> Reference {
    Reference::new("v1", "Pod", pod)
}

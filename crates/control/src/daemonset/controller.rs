//! The controller: events in, writes out.

mod conflicts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock::{self, Clock};
use kennel_client::events::{Note, Reference};
use kennel_client::pace::Pace;
use kennel_client::write::{self, Writer};
use kennel_core::daemonset::conflict::ForeignWrite;
use kennel_core::daemonset::event::{
    Action, Answer, CheckAnswer, CheckRequest, ConfigEvent, Event as PlannerEvent, FailureKind,
    Identity, Outcome as WriteOutcome, Ticket, Write,
};
use kennel_core::daemonset::options::Options;
use kennel_core::daemonset::planner::Now;
use kennel_core::daemonset::{Planner, required};
use kennel_types::{Monotonic, Node};
use kube::api::DynamicObject;
use tokio::time::Instant;

use super::checks::Checker;
use super::config::ConfigWatches;
use super::conflicts::ConflictWatch;
use super::events::Event;
use super::metrics::{self, Metrics};
use super::recorders::Recorders;
use super::writes::{self, Failed, PendingNames, Status};
use crate::frame::{Context, Controller, Round};

/// The least time between two status writes of one DaemonSet, so that a wave of pods becoming
/// ready costs a few writes and not thousands.
const STATUS_INTERVAL: Duration = Duration::from_millis(50);

/// How often the metrics of rollouts are updated while no rollout changes its phase.
const ROLLOUTS_INTERVAL: Duration = Duration::from_secs(1);

pub(super) enum Outcome {
    Write {
        ticket: Ticket,
        daemon_set: Arc<Identity>,
        result: Result<Answer, Failed>,
        place: usize,
        took: Duration,
    },
    TaintRemoved {
        ticket: Ticket,
        node: Arc<str>,
        result: Result<(), Failed>,
        took: Duration,
    },
    /// The delay before a status write is over.
    StatusDue {
        ticket: Ticket,
        daemon_set: Arc<Identity>,
    },
    Check {
        ticket: Ticket,
        answer: CheckAnswer,
    },
    /// The events on a DaemonSet whose pods another controller may have created or deleted.
    EventsRead {
        daemon_set: Arc<Identity>,
        read: Result<Vec<ForeignWrite>, write::Failure>,
    },
}

/// A DaemonSet, beside what the planner knows of it.
struct Known {
    /// As last observed: its status is written into it.
    object: Arc<DynamicObject>,
    /// When the last status write began.
    written_at: Option<Instant>,
    /// The resource version that it produced.
    written: u64,
}

/// What the controller acts with.
pub(super) struct Parts {
    pub(super) pace: Pace,
    pub(super) writer: Writer,
    pub(super) recorders: Recorders,
    pub(super) checker: Checker,
    pub(super) metrics: Arc<Metrics>,
    pub(super) configs: ConfigWatches,
    /// Nothing if another controller acts on the same DaemonSets on purpose.
    pub(super) conflicts: Option<ConflictWatch>,
}

pub(super) struct DaemonSetController {
    planner: Planner,
    /// Another controller writes the counters of statuses.
    assist: bool,
    writer: Writer,
    recorders: Recorders,
    pace: Pace,
    checker: Checker,
    /// The planner's monotonic time.
    clock: Clock,
    pending_names: PendingNames,
    metrics: Arc<Metrics>,
    /// By uid.
    known: BTreeMap<Arc<str>, Known>,
    /// Nodes that wait for their daemons, by name.
    waiting: BTreeMap<Arc<str>, Arc<Node>>,
    /// Of ConfigMaps, while some DaemonSet's config is pinned.
    configs: ConfigWatches,
    /// Notices other controllers.
    conflicts: Option<ConflictWatch>,
    /// When the metrics of rollouts were last updated; `None` after a rollout's state was written.
    rollouts_shown: Option<Instant>,
}

impl Controller for DaemonSetController {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "daemonset controller"
    }

    fn pace(&self) -> Pace {
        self.pace.clone()
    }

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        match event {
            Event::Planner(event) => {
                match &event {
                    PlannerEvent::DaemonSetGone(uid) => self.forget(uid),
                    PlannerEvent::NodeGone(name) => drop(self.waiting.remove(name)),
                    PlannerEvent::Pod(pod) => self.observe_pod(pod),
                    PlannerEvent::PodGone(uid) => self.observe_pod_gone(uid),
                    _ => {}
                }
                self.apply(event);
            }
            Event::DaemonSet(event, object) => {
                self.remember(object);
                self.apply(event);
            }
            Event::Node(view, node) => {
                if required::waits(&view) {
                    self.waiting.insert(view.name.clone(), node);
                } else {
                    self.waiting.remove(&view.name);
                }
                self.apply(PlannerEvent::Node(view));
            }
            Event::Invalid => {}
        }
    }

    fn synced(&mut self, _: &mut Context<Self>) {
        if let Some(conflicts) = &mut self.conflicts {
            conflicts.start();
        }
        self.apply(PlannerEvent::Synced);
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        let wake = self.planner.next_wake();
        if wake.is_some_and(|at| at <= self.clock.monotonic()) {
            self.apply(PlannerEvent::Tick);
        }
        for action in self.planner.take_actions() {
            match action {
                Action::Write {
                    ticket,
                    daemon_set,
                    write: Write::WriteStatus,
                } => self.delay_status(ticket, daemon_set, cx),
                Action::Write {
                    ticket,
                    daemon_set,
                    write,
                } => self.write(ticket, daemon_set, write, cx),
                Action::RemoveTaint { ticket, node } => self.remove_taint(ticket, node, cx),
                Action::EmitOnNode { node, note } => {
                    self.metrics.events.increment();
                    self.recorders.emit(Reference::own_node(&node), note);
                }
                Action::Check {
                    ticket,
                    daemon_set,
                    request,
                } => self.check(ticket, daemon_set, request, cx),
                Action::Emit { daemon_set, note } => self.emit(&daemon_set, note),
            }
        }
        for namespace in self.configs.update(self.planner.config_namespaces(), cx) {
            self.apply(PlannerEvent::Config(ConfigEvent::Closed(namespace)));
        }
        self.look_for_conflicts(cx);
        self.show_rollouts();
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::TaintRemoved {
                ticket,
                node,
                result,
                took,
            } => {
                let pushed_back = result.as_ref().is_err_and(|failed| failed.pushed_back);
                let outcome = result.map(|()| Answer::Nothing);
                let outcome = outcome.map_err(|failed| failed.failure);
                self.metrics.wrote(metrics::REMOVE_TAINT, &outcome, took);
                cx.answered(took, pushed_back);
                let failure = outcome.err();
                if let Some(failure) = &failure {
                    let why = &failure.message;
                    tracing::warn!("removing the taint of node {node} failed: {why}");
                }
                self.apply(PlannerEvent::TaintRemoved { ticket, failure });
            }
            Outcome::StatusDue { ticket, daemon_set } => self.write_status(ticket, daemon_set, cx),
            Outcome::Check { ticket, answer } => {
                self.apply(PlannerEvent::CheckFinished { ticket, answer });
            }
            Outcome::EventsRead { daemon_set, read } => self.judge_conflict(&daemon_set, read),
            Outcome::Write {
                ticket,
                daemon_set,
                result,
                place,
                took,
            } => {
                let pushed_back = result.as_ref().is_err_and(|failed| failed.pushed_back);
                let outcome = result.map_err(|failed| failed.failure);
                self.metrics.wrote(place, &outcome, took);
                if metrics::is_record(place) {
                    self.rollouts_shown = None;
                }
                cx.answered(took, pushed_back);
                self.record_outcome(&daemon_set, place, &outcome);
                self.apply(PlannerEvent::WriteFinished { ticket, outcome });
            }
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        let conflicts = self.conflicts.as_ref().and_then(ConflictWatch::next_due);
        let wake = self
            .planner
            .next_wake()
            .into_iter()
            .chain(conflicts)
            .min()?;
        Some(clock.monotonic() + (wake - self.clock.monotonic()))
    }

    fn observe(&self, round: &Round) {
        let metrics = &self.metrics;
        metrics.planning.observe(round.took);
        metrics.syncs.increment();
        metrics.round_completed();
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        metrics.running.set(number(round.running));
        metrics.allowed.set(number(round.limit));
        metrics.daemon_sets.set(number(self.known.len()));
        metrics.waiting.set(number(self.waiting.len()));
    }
}

impl DaemonSetController {
    pub(super) fn new(options: Options, parts: Parts) -> Self {
        let Parts {
            pace,
            writer,
            recorders,
            checker,
            metrics,
            configs,
            conflicts,
        } = parts;
        Self {
            assist: options.assist,
            planner: Planner::new(options),
            writer,
            recorders,
            pace,
            checker,
            clock: Clock::start(),
            pending_names: PendingNames::default(),
            metrics,
            known: BTreeMap::new(),
            waiting: BTreeMap::new(),
            configs,
            conflicts,
            rollouts_shown: None,
        }
    }

    /// Updates the metrics of rollouts: at once after a state was written, so that no phase is missed.
    fn show_rollouts(&mut self) {
        let shown = self.rollouts_shown;
        if shown.is_none_or(|at| at.elapsed() >= ROLLOUTS_INTERVAL) {
            self.metrics.rollouts.update(self.planner.rollouts());
            self.rollouts_shown = Some(Instant::now());
        }
    }

    fn remember(&mut self, object: Arc<DynamicObject>) {
        let meta = &object.metadata;
        let uid: Arc<str> = meta.uid.as_deref().unwrap_or_default().into();
        let version = meta.resource_version.as_ref().and_then(|v| v.parse().ok());
        let Some(known) = self.known.get_mut(&uid) else {
            let known = Known {
                object,
                written_at: None,
                written: 0,
            };
            self.known.insert(uid, known);
            return;
        };
        if version.is_some_and(|version: u64| version < known.written) {
            self.metrics.stale.increment();
        }
        known.object = object;
    }

    fn apply(&mut self, event: PlannerEvent) {
        self.planner.apply(planner_time(&self.clock), event);
    }

    fn forget(&mut self, daemon_set: &str) {
        self.known.remove(daemon_set);
        if let Some(conflicts) = &mut self.conflicts {
            conflicts.forget(daemon_set);
        }
    }

    fn write(
        &mut self,
        ticket: Ticket,
        daemon_set: Arc<Identity>,
        write: Write,
        cx: &mut Context<Self>,
    ) {
        if let (Some(conflicts), Write::DeletePod(pod)) = (&mut self.conflicts, &write) {
            conflicts.deleting(&pod.uid);
        }
        let (writer, names) = (self.writer.clone(), self.pending_names.clone());
        cx.spawn(async move {
            let place = metrics::place(&write);
            // Boxed when it starts: a job that waits in the queue, with thousands of others, is small.
            let job = Box::pin(writes::perform(&writer, &names, &daemon_set, write));
            timed(ticket, &daemon_set, place, job).await
        });
    }

    fn remove_taint(&mut self, ticket: Ticket, name: Arc<str>, cx: &mut Context<Self>) {
        let Some(node) = self.waiting.get(&name).cloned() else {
            // The watch shows the node without it, or no longer.
            let failure = None;
            return self.apply(PlannerEvent::TaintRemoved { ticket, failure });
        };
        let writer = self.writer.clone();
        cx.spawn(async move {
            let began = Instant::now();
            let result = writes::remove_taint(&writer, &node).await;
            Outcome::TaintRemoved {
                ticket,
                node: name,
                result,
                took: began.elapsed(),
            }
        });
    }

    /// Asks the check of a rollout policy.
    fn check(
        &self,
        ticket: Ticket,
        daemon_set: Arc<Identity>,
        request: CheckRequest,
        cx: &mut Context<Self>,
    ) {
        let checker = self.checker.clone();
        cx.spawn_unpaced(async move {
            let answer = checker.ask(&daemon_set, &request).await;
            match &answer {
                CheckAnswer::Passed => tracing::info!("the check of daemonset {daemon_set} passed"),
                CheckAnswer::Failed(why) => {
                    tracing::warn!("the check of daemonset {daemon_set} failed: {why}");
                }
                CheckAnswer::Inconclusive(why) => {
                    tracing::warn!("the check of daemonset {daemon_set} is inconclusive: {why}");
                }
            }
            Outcome::Check { ticket, answer }
        });
    }

    /// Delays a status write until [`STATUS_INTERVAL`] after the one before.
    fn delay_status(&self, ticket: Ticket, daemon_set: Arc<Identity>, cx: &mut Context<Self>) {
        let known = self.known.get(&daemon_set.uid);
        let last = known.and_then(|known| known.written_at);
        let delay = last.map_or(STATUS_INTERVAL, |at| {
            STATUS_INTERVAL.saturating_sub(at.elapsed())
        });
        cx.after(delay, Outcome::StatusDue { ticket, daemon_set });
    }

    fn write_status(&mut self, ticket: Ticket, daemon_set: Arc<Identity>, cx: &mut Context<Self>) {
        let known = self.known.get_mut(&daemon_set.uid);
        let Some((known, counters)) = known.zip(self.planner.status(&daemon_set.uid)) else {
            // The DaemonSet is gone, and its status with it.
            let outcome = Ok(Answer::Nothing);
            return self.apply(PlannerEvent::WriteFinished { ticket, outcome });
        };
        let uid = &daemon_set.uid;
        let status = Status {
            counters: (!self.assist).then_some(counters),
            conditions: (!self.planner.leaves_conditions(uid))
                .then(|| self.planner.conditions(uid)),
            now: clock::now(),
        };
        known.written_at = Some(Instant::now());
        let (writer, object) = (self.writer.clone(), known.object.clone());
        // Before the pods that wait in the queue, so that the status shows a rollout's progress.
        cx.spawn_first(async move {
            let place = metrics::place(&Write::WriteStatus);
            let job = writes::write_status(&writer, &daemon_set, &object, &status);
            timed(ticket, &daemon_set, place, job).await
        });
    }

    fn record_outcome(&mut self, daemon_set: &Identity, place: usize, outcome: &WriteOutcome) {
        match outcome {
            Ok(Answer::Status { version, .. }) => {
                if let Some(known) = self.known.get_mut(&daemon_set.uid) {
                    known.written = known.written.max(*version);
                }
            }
            Ok(_) => {}
            Err(failure) if failure.kind == FailureKind::NotFound => {}
            Err(failure) => {
                let (what, why) = (metrics::name(place), &failure.message);
                tracing::warn!("{what} for daemonset {daemon_set} failed: {why}");
            }
        }
    }

    fn emit(&self, daemon_set: &Identity, note: Note) {
        self.metrics.events.increment();
        self.recorders.emit(self.reference(daemon_set), note);
    }

    fn reference(&self, daemon_set: &Identity) -> Reference {
        let known = self.known.get(&daemon_set.uid);
        let version = known.and_then(|known| known.object.metadata.resource_version.clone());
        Reference {
            resource_version: version.unwrap_or_default(),
            ..Reference::new("apps/v1", "DaemonSet", daemon_set)
        }
    }
}

/// Waits for a write, and measures how long it takes.
async fn timed(
    ticket: Ticket,
    daemon_set: &Arc<Identity>,
    place: usize,
    write: impl Future<Output = Result<Answer, Failed>>,
) -> Outcome {
    let began = Instant::now();
    let result = write.await;
    Outcome::Write {
        ticket,
        daemon_set: daemon_set.clone(),
        result,
        place,
        took: began.elapsed(),
    }
}

/// Timers follow the monotonic time: a wall clock that is set while the controller runs moves none of them.
fn planner_time(clock: &Clock) -> Now {
    Now {
        wall: clock::now(),
        steady: Some(clock.monotonic()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_planners_timers_do_not_follow_the_wall_clock() {
        let clock = Clock::start();
        let before = planner_time(&clock);
        // As if the wall clock was set back by so much meanwhile.
        tokio::time::advance(Duration::from_hours(1)).await;
        let after = planner_time(&clock);
        assert!(after.wall.saturating_since(before.wall) < Duration::from_hours(1));
        let passed = before.steady.zip(after.steady);
        let passed = passed.map(|(before, after)| after - before);
        assert_eq!(passed, Some(Duration::from_hours(1)));
    }
}

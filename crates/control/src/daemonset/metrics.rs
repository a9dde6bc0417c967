//! The controller's metrics.

mod rollouts;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kennel_client::clock;
use kennel_client::metrics::{Counter, Gauge, Histogram, Observed, Page};
use kennel_core::daemonset::conflict::Conflict;
use kennel_core::daemonset::event::{Outcome, Write};
use tokio::time::Instant;

pub use rollouts::ROLLOUT_METRICS;
use rollouts::Rollouts;

/// A controller whose last round is longer ago is stuck: the frame completes an iteration every few seconds.
const STUCK: Duration = Duration::from_mins(1);

kennel_core::metrics! {
    pub METRICS;
    Counter SYNCS = "kennel_daemonset_syncs_total" [] "Rounds of events that the planner handled.";
    Counter ACTIONS = "kennel_daemonset_actions_total" ["action" "result"]
        "Writes to the API, by action and result.";
    Gauge RUNNING = "kennel_daemonset_writes_running" [] "Writes in flight.";
    Gauge ALLOWED = "kennel_daemonset_writes_allowed" [] "Writes that may be in flight at once.";
    Gauge KNOWN = "kennel_daemonset_known" [] "DaemonSets that the controller knows.";
    Gauge WAITING = "kennel_daemonset_waiting_nodes" [] "Nodes that wait for required DaemonSets.";
    Counter STALE = "daemonset_controller_stale_sync_skips_total" ["group" "resource"]
        "Syncs skipped because the observed object was older than the last write.";
    Counter EVENTS = "kennel_daemonset_events_total" []
        "Events emitted on DaemonSets, before aggregation.";
    Counter CONFLICTS = "kennel_daemonset_conflicting_writes_total" ["action"]
        "Pods of our DaemonSets that another controller created or deleted, as its events say.";
    Histogram PLANNING = "kennel_daemonset_sync_seconds" [] "Time to plan a round.";
    Histogram WRITING = "kennel_daemonset_write_seconds" []
        "Time from the start of a write to its response.";
    Gauge ROUND = "kennel_daemonset_last_sync_timestamp_seconds" [] "When the controller last completed a round.";
}

/// The label values of the writes.
const WRITES: [&str; 16] = [
    "create_pod",
    "delete_pod",
    "adopt_pod",
    "release_pod",
    "relabel_pod",
    "create_revision",
    "renumber_revision",
    "label_revision",
    "delete_revision",
    "adopt_revision",
    "release_revision",
    "count_collision",
    "write_status",
    "write_record",
    "copy_config",
    "remove_taint",
];
/// The index of removals of taints in [`WRITES`]: the last.
pub(super) const REMOVE_TAINT: usize = WRITES.len() - 1;

/// The index of a write in [`WRITES`].
pub(super) fn place(write: &Write) -> usize {
    match write {
        Write::CreatePod { .. } => 0,
        Write::DeletePod(_) => 1,
        Write::AdoptPod(_) => 2,
        Write::ReleasePod(_) => 3,
        Write::RelabelPod { .. } => 4,
        Write::CreateRevision { .. } => 5,
        Write::RenumberRevision { .. } => 6,
        Write::LabelRevision { .. } => 7,
        Write::DeleteRevision(_) => 8,
        Write::AdoptRevision(_) => 9,
        Write::ReleaseRevision(_) => 10,
        Write::CountCollision { .. } => 11,
        Write::WriteStatus => 12,
        Write::WriteRecord { .. } => 13,
        Write::CopyConfig(_) => 14,
    }
}

/// Whether this is the write of a rollout's state.
pub(super) fn is_record(place: usize) -> bool {
    name(place) == "write_record"
}

pub(super) fn name(place: usize) -> &'static str {
    WRITES[place]
}

/// The metrics of one DaemonSet controller.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(super) syncs: Counter,
    done: [Counter; WRITES.len()],
    failed: [Counter; WRITES.len()],
    pub(super) running: Gauge,
    pub(super) allowed: Gauge,
    pub(super) daemon_sets: Gauge,
    pub(super) waiting: Gauge,
    pub(super) stale: Counter,
    pub(super) events: Counter,
    created_by_others: Counter,
    deleted_by_others: Counter,
    pub(super) planning: Histogram,
    writing: Histogram,
    /// The wall time of the last round, in seconds since the epoch.
    round: Gauge,
    /// When the last round ended: the wall clock may be set while the controller runs.
    completed: Mutex<Option<Instant>>,
    pub(super) rollouts: Rollouts,
}

impl Metrics {
    /// Whether the last round is recent. A controller that was never started counts as alive.
    pub fn is_alive(&self) -> bool {
        let completed = self.completed();
        completed.is_none_or(|at| at.elapsed() < STUCK)
    }

    fn completed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.completed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn round_completed(&self) {
        *self.completed() = Some(Instant::now());
        self.round.set(clock::now().as_secs());
    }

    pub(super) fn wrote(&self, place: usize, outcome: &Outcome, took: Duration) {
        let counters = match outcome {
            Ok(_) => &self.done,
            Err(_) => &self.failed,
        };
        counters[place].increment();
        self.writing.observe(took);
    }

    pub(super) fn conflicted(&self, conflict: &Conflict) {
        let count = |counter: &Counter, pods: &[_]| pods.iter().for_each(|_| counter.increment());
        count(&self.created_by_others, &conflict.created);
        count(&self.deleted_by_others, &conflict.deleted);
    }

    fn show_writes(&self, page: &mut Page) {
        let mut rows = Vec::new();
        for (result, counters) in [("done", &self.done), ("failed", &self.failed)] {
            for (write, counter) in WRITES.iter().zip(counters) {
                let labels = format!("action=\"{write}\",result=\"{result}\"");
                rows.push((labels, counter.get()));
            }
        }
        page.rows(&ACTIONS, rows);
    }
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        page.number(&SYNCS, self.syncs.get());
        self.show_writes(page);
        page.number(&RUNNING, self.running.get());
        page.number(&ALLOWED, self.allowed.get());
        page.number(&KNOWN, self.daemon_sets.get());
        page.number(&WAITING, self.waiting.get());
        let stale = "group=\"apps\",resource=\"daemonsets\"";
        page.rows(&STALE, [(stale, self.stale.get())]);
        page.number(&EVENTS, self.events.get());
        let conflicts = [
            ("action=\"create_pod\"", self.created_by_others.get()),
            ("action=\"delete_pod\"", self.deleted_by_others.get()),
        ];
        page.rows(&CONFLICTS, conflicts);
        self.planning.show(page, &PLANNING);
        self.writing.show(page, &WRITING);
        page.number(&ROUND, self.round.get());
        self.rollouts.show(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kennel_core::daemonset::event::Answer;

    /// Only tokio's clock moves in this test, so wall time plays no part.
    #[tokio::test(start_paused = true)]
    async fn a_controller_whose_rounds_end_is_alive_whatever_the_wall_clock_says() {
        let metrics = Metrics::default();
        assert!(metrics.is_alive(), "it was not started");
        metrics.round_completed();
        // As if the wall clock had been set by years, in either direction.
        for seconds in [7, i64::from(u32::MAX)] {
            metrics.round.set(seconds);
            assert!(metrics.is_alive(), "{seconds}");
        }
        tokio::time::advance(STUCK).await;
        assert!(!metrics.is_alive());
        metrics.round_completed();
        assert!(metrics.is_alive());
    }

    #[test]
    fn writes_are_counted_by_what_they_were_for_and_how_they_ended() {
        let metrics = Metrics::default();
        let done = Ok(Answer::Nothing);
        metrics.wrote(place(&Write::WriteStatus), &done, Duration::from_millis(3));
        metrics.round.set(7);
        let page = Page::of([&metrics as &dyn Observed]);
        for line in [
            "kennel_daemonset_actions_total{action=\"write_status\",result=\"done\"} 1",
            "kennel_daemonset_actions_total{action=\"create_pod\",result=\"failed\"} 0",
            "kennel_daemonset_write_seconds_count 1",
            "daemonset_controller_stale_sync_skips_total{group=\"apps\",resource=\"daemonsets\"} 0",
            "kennel_daemonset_last_sync_timestamp_seconds 7",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        }
    }
}

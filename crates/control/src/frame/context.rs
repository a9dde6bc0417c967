//! What a controller asks of the frame.

use std::time::Duration;

use futures_util::stream::Stream;
use kennel_client::clock::Clock;
use kennel_client::feed::Change;
use kennel_client::pace::Pace;
use kennel_client::work::Work;
use kennel_types::{Monotonic, Timestamp};

use super::{Controller, Round, Update, Watches};

/// What a controller asks of the frame: the time, jobs, delays, more watches.
pub struct Context<C: Controller> {
    pub(super) clock: Clock,
    pub(super) watches: Watches<C::Event>,
    pub(super) work: Work<C::Outcome>,
    pace: Pace,
}

impl<C: Controller> Context<C> {
    pub(super) fn new(watches: Watches<C::Event>, pace: Pace) -> Self {
        Self {
            clock: Clock::start(),
            watches,
            work: Work::new(pace.limit()),
            pace,
        }
    }

    /// Monotonic time since the controller started.
    pub fn now(&self) -> Monotonic {
        self.clock.monotonic()
    }

    /// Wall time.
    pub fn timestamp(&self) -> Timestamp {
        self.clock.timestamp()
    }

    /// Queues a job.
    pub fn spawn(&mut self, job: impl Future<Output = C::Outcome> + Send + 'static) {
        self.work.push(job);
    }

    /// Queues a job before all others that wait.
    pub fn spawn_first(&mut self, job: impl Future<Output = C::Outcome> + Send + 'static) {
        self.work.push_first(job);
    }

    /// Starts a job that writes nothing to the API: it does not count as one, and ends when the controller stops. The
    /// caller bounds how many there are.
    pub fn spawn_unpaced(&mut self, job: impl Future<Output = C::Outcome> + Send + 'static) {
        self.work.beside(job);
    }

    /// Delivers an outcome after a delay. Delays do not count as jobs, and end when the controller stops.
    pub fn after(&mut self, delay: Duration, outcome: C::Outcome) {
        self.work.later(delay, outcome);
    }

    /// How many jobs run or wait.
    pub fn in_flight(&self) -> usize {
        self.work.running() + self.work.queued()
    }

    /// Adapts how many jobs run at once to how long the API took to answer one, and whether it asked for less.
    pub fn answered(&mut self, took: Duration, pushed_back: bool) {
        self.pace.answered(took, pushed_back);
        self.work.set_limit(self.pace.limit());
    }

    /// Adds a watch. Until it has delivered its first list, nothing is reconciled.
    pub fn watch<K: 'static>(
        &mut self,
        resource: &'static str,
        changes: impl Stream<Item = Change<K>> + Send + 'static,
        to_event: impl FnMut(Update<K>) -> C::Event + Send + 'static,
    ) {
        self.watches.add(resource, changes, to_event);
    }

    /// Whether each watch has delivered its first list.
    pub fn is_synced(&self) -> bool {
        self.watches.is_synced()
    }

    pub(super) fn round(&self, took: Duration) -> Round {
        Round {
            took,
            queued: self.work.queued(),
            running: self.work.running(),
            limit: self.pace.limit(),
        }
    }
}

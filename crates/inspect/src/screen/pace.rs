//! How fast nodes get the target.

use std::collections::VecDeque;
use std::time::Duration;

use kennel_types::Timestamp;

/// The time that the rate is of.
const WINDOW: Duration = Duration::from_mins(2);
/// No rate is told before this long.
const SETTLED: Duration = Duration::from_secs(2);
/// Samples that are kept: more than one a second in the window.
const SAMPLES_MAX: usize = 256;

/// How many nodes had the target, and when.
#[derive(Clone, Debug, Default)]
pub struct Pace(VecDeque<(Timestamp, usize)>);

impl Pace {
    /// Enters how many nodes have the target.
    pub fn note(&mut self, now: Timestamp, done: usize) {
        if self.0.back().is_some_and(|(_, last)| done < *last) {
            self.0.clear();
        }
        let within = |at: Timestamp| now.saturating_since(at) <= WINDOW;
        while self.0.len() > 1 && !within(self.0[0].0) || self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, done));
    }

    /// `None` while too little has been seen, or nothing moves.
    pub fn per_minute(&self) -> Option<f64> {
        let ((from, first), (to, last)) = (self.0.front()?, self.0.back()?);
        let took = to.saturating_since(*from);
        let nodes = u32::try_from(last.checked_sub(*first)?).ok()?;
        (took >= SETTLED && nodes > 0).then(|| f64::from(nodes) * 60.0 / took.as_secs_f64())
    }

    /// How long so many nodes will take.
    pub fn time_for(&self, nodes: usize) -> Option<Duration> {
        let nodes = u32::try_from(nodes).ok()?;
        let minutes = f64::from(nodes) / self.per_minute()?;
        Duration::try_from_secs_f64(minutes * 60.0).ok()
    }
}

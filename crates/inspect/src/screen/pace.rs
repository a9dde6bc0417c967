//! How fast nodes get the target.

use std::collections::VecDeque;
use std::time::Duration;

use kennel_types::Timestamp;

/// The time that the rate is of, while nodes are updated.
const WINDOW: Duration = Duration::from_mins(2);
/// No rate is told before this long.
const SETTLED: Duration = Duration::from_secs(2);
/// How long after a sample the next one comes at the earliest: looks come up to ten times a second.
const SAMPLE_AFTER: Duration = Duration::from_millis(500);
/// Samples that are kept: all of the window.
const SAMPLES_MAX: usize = 256;

/// How many nodes had the target, and when. Time in which a rollout updates no nodes, such as a bake, does not count.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// By time that counts.
    samples: VecDeque<(Duration, usize)>,
    /// The time that counts until the last note.
    elapsed: Duration,
    noted: Option<Timestamp>,
}

impl Pace {
    /// Enters how many nodes have the target, and whether the rollout updates nodes now.
    pub fn note(&mut self, now: Timestamp, done: usize, updates: bool) {
        let since = self.noted.replace(now);
        let since = since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        if updates {
            self.elapsed += since;
        }
        let samples = &mut self.samples;
        if samples.back().is_some_and(|(_, last)| done < *last) {
            samples.clear();
        }
        let within = |at: Duration| self.elapsed.saturating_sub(at) <= WINDOW;
        while samples.len() > 1 && !within(samples[0].0) || samples.len() >= SAMPLES_MAX {
            samples.pop_front();
        }
        // The last one is that of now until another one has its place.
        let before = samples.len().checked_sub(2).map(|index| samples[index].0);
        if before.is_some_and(|before| self.elapsed.saturating_sub(before) < SAMPLE_AFTER) {
            samples.pop_back();
        }
        samples.push_back((self.elapsed, done));
    }

    /// `None` while too little has been seen, or nothing moves.
    pub fn per_minute(&self) -> Option<f64> {
        let ((from, first), (to, last)) = (self.samples.front()?, self.samples.back()?);
        let took = to.saturating_sub(*from);
        let nodes = u32::try_from(last.checked_sub(*first)?).ok()?;
        (took >= SETTLED && nodes > 0).then(|| f64::from(nodes) * 60.0 / took.as_secs_f64())
    }

    /// How long so many nodes will take.
    pub fn time_for(&self, nodes: usize) -> Option<Duration> {
        let nodes = u32::try_from(nodes).ok()?;
        if nodes == 0 {
            return Some(Duration::ZERO);
        }
        let minutes = f64::from(nodes) / self.per_minute()?;
        Duration::try_from_secs_f64(minutes * 60.0).ok()
    }
}

//! The concurrency limit: how many writes may be in flight at once.
//!
//! For Kennel's own server the limit is fixed: it commits queued writes together. For any other API the limit adapts: it
//! starts low, grows while latency stays low, is halved when the API answers 429 or 503, and shrinks when latency rises.

use std::time::Duration;

/// The first limit of an adaptive pace.
const FIRST: f64 = 4.0;
/// The weight of one response in the smoothed latency.
const WEIGHT: f64 = 0.1;
/// Latency is high at this multiple of the best latency …
const SLOW_FACTOR: f64 = 3.0;
/// … plus this many seconds, because small latencies vary by large factors.
const SLOW_MARGIN: f64 = 0.02;
/// The factor that high latency cuts the limit by.
const EASE: f64 = 0.8;
/// The growth of the best latency per response, so that a lasting change becomes the new normal.
const DRIFT: f64 = 1.001;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Pace {
    most: f64,
    limit: f64,
    adaptive: bool,
    /// Growing by one per response, until the first cut.
    slow_start: bool,
    /// How many responses to ignore: their requests were sent before the last cut.
    ignore: u32,
    smoothed: Option<f64>,
    best: f64,
}

impl Pace {
    /// A fixed limit.
    pub fn steady(most: usize) -> Self {
        let most = f64::from(u32::try_from(most).unwrap_or(u32::MAX).max(1));
        Self {
            most,
            limit: most,
            adaptive: false,
            slow_start: false,
            ignore: 0,
            smoothed: None,
            best: f64::INFINITY,
        }
    }

    /// A limit that adapts to the API, and is at most `most`.
    pub fn adaptive(most: usize) -> Self {
        let steady = Self::steady(most);
        Self {
            limit: FIRST.min(steady.most),
            adaptive: true,
            slow_start: true,
            ..steady
        }
    }

    /// How many writes may be in flight now.
    pub fn limit(&self) -> usize {
        // Between 1 and u32::MAX, so only the fraction is lost.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let limit = self.limit as usize;
        limit.max(1)
    }

    /// Adapts to one response: its latency, and whether the API asked to slow down.
    pub fn answered(&mut self, took: Duration, pushed_back: bool) {
        if !self.adaptive {
            return;
        }
        let took = took.as_secs_f64();
        let smoothed = self.smoothed.map_or(took, |s| s + WEIGHT * (took - s));
        self.smoothed = Some(smoothed);
        self.best = (self.best * DRIFT).min(smoothed);
        if self.ignore > 0 {
            self.ignore -= 1;
            return;
        }
        let slow = smoothed > self.best * SLOW_FACTOR + SLOW_MARGIN;
        if pushed_back {
            self.cut(0.5);
        } else if slow {
            self.cut(EASE);
        } else if self.slow_start {
            self.limit += 1.0;
        } else {
            self.limit += 1.0 / self.limit;
        }
        self.limit = self.limit.min(self.most);
    }

    fn cut(&mut self, factor: f64) {
        self.ignore = u32::try_from(self.limit()).unwrap_or(u32::MAX);
        self.limit = (self.limit * factor).max(1.0);
        self.slow_start = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(5);

    fn after(pace: &mut Pace, answers: usize, took: Duration, pushed_back: bool) -> usize {
        for _ in 0..answers {
            pace.answered(took, pushed_back);
        }
        pace.limit()
    }

    #[test]
    fn a_steady_pace_ignores_responses() {
        let mut pace = Pace::steady(64);
        assert_eq!(pace.limit(), 64);
        assert_eq!(after(&mut pace, 100, Duration::from_secs(9), true), 64);
    }

    #[test]
    fn an_adaptive_pace_starts_low_and_doubles_each_round() {
        let mut pace = Pace::adaptive(64);
        assert_eq!(pace.limit(), 4);
        assert_eq!(after(&mut pace, 4, QUICK, false), 8);
        assert_eq!(after(&mut pace, 8, QUICK, false), 16);
        assert_eq!(after(&mut pace, 1000, QUICK, false), 64);
    }

    #[test]
    fn one_push_back_halves_and_the_rest_of_the_round_does_not_count() {
        let mut pace = Pace::adaptive(64);
        after(&mut pace, 1000, QUICK, false);
        assert_eq!(after(&mut pace, 1, QUICK, true), 32);
        assert_eq!(after(&mut pace, 64, QUICK, true), 32);
        assert_eq!(after(&mut pace, 1, QUICK, true), 16);
        after(&mut pace, 32, QUICK, false);
        let grown = after(&mut pace, 17, QUICK, false);
        assert_eq!(grown, 17, "after a cut it grows by one a round");
    }

    #[test]
    fn rising_latency_slows_down_and_a_lasting_one_becomes_normal() {
        let mut pace = Pace::adaptive(64);
        after(&mut pace, 1000, QUICK, false);
        let slow = Duration::from_millis(200);
        let eased = after(&mut pace, 300, slow, false);
        assert!(eased < 40, "{eased}");
        let used_to_it = after(&mut pace, 20_000, slow, false);
        assert_eq!(used_to_it, 64);
    }

    #[test]
    fn the_limit_is_at_least_one() {
        let mut pace = Pace::adaptive(8);
        assert_eq!(after(&mut pace, 1000, QUICK, true), 1);
    }
}

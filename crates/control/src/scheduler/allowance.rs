//! How many events about pods that were placed may be written: enough for people, too few to slow the
//! placing of thousands.

use std::time::Duration;

use tokio::time::Instant;

/// So many at once.
const BURST: f64 = 200.0;
/// And so many a second, as many as upstream's recorder may send.
const PER_SECOND: f64 = 50.0;

/// A bucket that fills with time.
pub(super) struct Allowance {
    left: f64,
    at: Instant,
}

impl Allowance {
    pub(super) fn full(now: Instant) -> Self {
        Self {
            left: BURST,
            at: now,
        }
    }

    /// May one more be written now?
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).max(Duration::ZERO);
        self.at = now;
        self.left = (self.left + passed.as_secs_f64() * PER_SECOND).min(BURST);
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_is_cut_off_and_calm_times_are_told_whole() {
        let start = Instant::now();
        let mut allowance = Allowance::full(start);
        let told = (0..5000).filter(|_| allowance.take(start)).count();
        assert_eq!(told, 200);
        let later = start + Duration::from_secs(1);
        let told = (0..5000).filter(|_| allowance.take(later)).count();
        assert_eq!(told, 50);
    }
}

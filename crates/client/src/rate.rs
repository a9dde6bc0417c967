//! A token bucket: lets a burst through, and then a steady rate.

use kennel_types::Monotonic;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    burst: f64,
    per_second: f64,
    tokens: f64,
    last: Monotonic,
}

impl TokenBucket {
    /// A bucket that holds `burst` tokens, is full, and refills at `per_second`.
    pub fn full(burst: f64, per_second: f64, now: Monotonic) -> Self {
        Self {
            burst,
            per_second,
            tokens: burst,
            last: now,
        }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Monotonic) -> bool {
        let passed = now.saturating_since(self.last).as_secs_f64();
        self.last = now;
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        let allowed = self.tokens >= 1.0;
        if allowed {
            self.tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_and_then_a_steady_rate() {
        let mut bucket = TokenBucket::full(200.0, 50.0, Monotonic::START);
        let passed = (0..5000).filter(|_| bucket.take(Monotonic::START)).count();
        assert_eq!(passed, 200);
        let later = Monotonic::since_start(Duration::from_secs(1));
        let passed = (0..5000).filter(|_| bucket.take(later)).count();
        assert_eq!(passed, 50);
    }
}

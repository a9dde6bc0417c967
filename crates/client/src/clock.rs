//! The one place where controllers read the clock.
//!
//! A [`Clock`] hands out both times: [`Timestamp`] is wall time, which API objects carry and which may jump;
//! [`Monotonic`] counts from the clock's start and decides how long to wait. The functions beside it format the
//! current wall time as the API writes it.

use std::time::SystemTime;

use kennel_types::{Monotonic, Timestamp};
use tokio::time::Instant;

/// Tokio's clock, so that tests can pause and advance it. Monotonic times of two clocks do not compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose monotonic time starts at zero now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    pub fn monotonic(&self) -> Monotonic {
        self.at(Instant::now())
    }

    pub fn timestamp(&self) -> Timestamp {
        now()
    }

    /// An instant on this clock.
    pub fn at(&self, instant: Instant) -> Monotonic {
        Monotonic::since_start(instant.saturating_duration_since(self.origin))
    }

    /// When wall time will be `timestamp`, if it does not jump until then. Now, if it has passed.
    pub fn when(&self, timestamp: Timestamp) -> Monotonic {
        self.monotonic() + timestamp.saturating_since(self.timestamp())
    }

    pub async fn sleep_until(&self, deadline: Monotonic) {
        match self.origin.checked_add(deadline.elapsed()) {
            Some(instant) => tokio::time::sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }
}

/// Now, in whole milliseconds, rounded down: a timer that was set for a time has never fired too early.
pub fn now() -> Timestamp {
    Timestamp::from_millis(precise_now().as_millis())
}

/// Now, as the API writes times in whole seconds: `2026-01-02T03:04:05Z`.
pub fn now_rfc3339() -> String {
    precise_now().to_string()
}

/// Now, as the API writes times in microseconds: `2026-01-02T03:04:05.000006Z`.
pub fn now_micros() -> String {
    precise_now().to_rfc3339(6)
}

/// Now, in nanoseconds since the epoch: for names that must differ.
pub fn now_nanos() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

fn precise_now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

//! Wall time for certificates, and how often it is compared with their ends. Tests give a clock that they can move.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Timestamp;

/// How often a server looks for certificates that expire soon.
const INTERVAL: Duration = Duration::from_mins(10);

#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    interval: Duration,
}

impl Clock {
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            interval: INTERVAL,
        }
    }

    /// With another interval between two checks.
    #[must_use]
    pub fn checked_every(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub fn now(&self) -> Timestamp {
        (self.now)()
    }
}

/// The machine's clock.
impl Default for Clock {
    fn default() -> Self {
        Self::new(crate::clock::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

//! Wall time for certificates. Tests give a clock that they can move.

use std::fmt;
use std::sync::Arc;

use kennel_types::Timestamp;

#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

/// The machine's clock.
impl Default for Clock {
    fn default() -> Self {
        Self::new(|| Timestamp::from_millis(jiff::Timestamp::now().as_millisecond()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

//! Wall time.

use std::time::SystemTime;

use kennel_types::Timestamp;

pub(crate) fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

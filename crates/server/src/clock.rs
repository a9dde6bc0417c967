//! Wall time.

use kennel_types::Timestamp;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
}

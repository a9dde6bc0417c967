//! The health of an engine.

use std::time::Duration;

/// Whether an engine can store writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterHealth {
    Healthy,
    /// Its last commit failed, or none came in time: the disk is full or failing.
    Failing(String),
    /// Its writer has not completed an iteration for so long.
    Stalled(Duration),
    /// Its writer has ended, and will not start again.
    Ended,
}

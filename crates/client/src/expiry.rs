//! Warnings of certificates that end soon, by programs that run for long. When to warn is a rule of `kennel_core`.

use std::time::Duration;

use kennel_types::Timestamp;
use tokio::time::Instant;

use crate::clock;

/// `notBefore` and `notAfter`.
pub type Lifetime = (Timestamp, Timestamp);

/// How often the log warns.
const LOG_INTERVAL: Duration = Duration::from_hours(24);
/// How often to look, and to repeat events: the wall clock may jump.
const INTERVAL: Duration = Duration::from_mins(10);

/// Logs the warnings once a day, and passes them to `record` each time, until it is dropped.
pub async fn warn(
    warnings: impl Fn(Timestamp) -> Vec<String> + Send,
    record: impl Fn(String) + Send,
) {
    let mut logged: Option<Instant> = None;
    loop {
        let found = warnings(clock::now());
        let logs = logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL);
        if logs && !found.is_empty() {
            logged = Some(Instant::now());
        }
        for warning in found {
            if logs {
                tracing::warn!("{warning}");
            }
            record(warning);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

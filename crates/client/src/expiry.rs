//! Warnings of certificates that end soon, by programs that run for long. When to warn is a rule of `kennel_core`.

use std::time::Duration;

use kennel_core::certificates::expiry::{self, RenewedBy};
use kennel_types::Timestamp;
use tokio::time::Instant;

use crate::clock;

/// `notBefore` and `notAfter`.
pub type Lifetime = (Timestamp, Timestamp);

/// How often the log warns.
const LOG_INTERVAL: Duration = Duration::from_hours(24);
/// How often to look, and to repeat events: the wall clock may jump.
const INTERVAL: Duration = Duration::from_mins(10);

/// The warning of a certificate that Kennel does not renew, if it ends soon. `what` names the certificate.
pub fn warning_of_others(
    what: &str,
    (begin, end): Lifetime,
    now: Timestamp,
    remedy: &str,
) -> Option<String> {
    let is_expiring = expiry::is_expiring(begin, end, now, RenewedBy::Others);
    is_expiring.then(|| expiry::warning(what, end, now, remedy))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warnings_of_90_days_begin_30_days_before_the_end() {
        let at = |days: i64| Timestamp::from_secs(days * 86_400);
        let warning = |now| warning_of_others("it", (at(0), at(90)), at(now), "replace it");
        assert_eq!(warning(60), None);
        let said = "it expires in 29 days, at 1970-04-01T00:00:00Z: replace it";
        assert_eq!(warning(61).as_deref(), Some(said));
    }
}

//! When to warn of the end of a certificate.

use std::time::Duration;

use kennel_types::Timestamp;

/// Warnings begin this long before the end.
const WARN_BEFORE: Duration = Duration::from_hours(30 * 24);
/// Certificates that Kennel renews are warned of in the last part of their lifetime, after the time of their renewal.
const RENEWED_FRACTION: u32 = 10;
/// Others are warned of before they are half over, so that somebody can act.
const OTHER_FRACTION: u32 = 2;

/// The reason of the event.
pub const REASON: &str = "CertificateExpiring";

/// The party that renews a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewedBy {
    /// The program that warns, or another part of Kennel.
    Kennel,
    /// Somebody else, who needs time.
    Others,
}

/// Whether a certificate ends so soon that its renewal must have failed, or that others must renew it.
pub fn is_expiring(
    not_before: Timestamp,
    not_after: Timestamp,
    now: Timestamp,
    by: RenewedBy,
) -> bool {
    let fraction = match by {
        RenewedBy::Kennel => RENEWED_FRACTION,
        RenewedBy::Others => OTHER_FRACTION,
    };
    let lifetime = not_after.saturating_since(not_before);
    let left = not_after.saturating_since(now);
    left < WARN_BEFORE.min(lifetime / fraction)
}

/// The warning of a certificate's end, for logs and events. `what` names the certificate.
pub fn warning(what: &str, not_after: Timestamp, now: Timestamp, remedy: &str) -> String {
    let days = not_after.saturating_since(now).as_secs() / 86_400;
    let when = match days {
        _ if not_after <= now => format!("has expired at {not_after}"),
        0 => format!("expires within a day, at {not_after}"),
        1 => format!("expires in 1 day, at {not_after}"),
        days => format!("expires in {days} days, at {not_after}"),
    };
    format!("{what} {when}: {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn warnings_begin_30_days_before_the_end() {
        let check = |by: RenewedBy, lifetime: i64, left: i64, expected: bool| {
            let at = Timestamp::from_secs;
            let found = is_expiring(at(0), at(lifetime), at(lifetime - left), by);
            assert_eq!(found, expected, "{by:?} {lifetime} {left}");
        };
        for by in [RenewedBy::Kennel, RenewedBy::Others] {
            check(by, 3650 * DAY, 30 * DAY, false);
            check(by, 3650 * DAY, 30 * DAY - 1, true);
            check(by, 365 * DAY, 30 * DAY, false);
            check(by, 365 * DAY, 29 * DAY, true);
            check(by, 365 * DAY, -DAY, true);
        }
        // Renewed after 70 to 90 % of its lifetime.
        check(RenewedBy::Kennel, 90 * DAY, 10 * DAY, false);
        check(RenewedBy::Kennel, 90 * DAY, 8 * DAY, true);
        check(RenewedBy::Others, 90 * DAY, 30 * DAY, false);
        check(RenewedBy::Others, 90 * DAY, 29 * DAY, true);
        check(RenewedBy::Others, 7 * DAY, 4 * DAY, false);
        check(RenewedBy::Others, 7 * DAY, 3 * DAY, true);
        // An hour: in the last six minutes.
        check(RenewedBy::Kennel, 3600, 361, false);
        check(RenewedBy::Kennel, 3600, 359, true);
    }

    #[test]
    fn warnings_say_when() {
        let check = |left: i64, expected: &str| {
            let end = Timestamp::from_secs(100 * DAY);
            let now = Timestamp::from_secs(100 * DAY - left);
            assert_eq!(warning("it", end, now, "renew it"), expected);
        };
        check(
            3 * DAY + 5,
            "it expires in 3 days, at 1970-04-11T00:00:00Z: renew it",
        );
        check(
            DAY,
            "it expires in 1 day, at 1970-04-11T00:00:00Z: renew it",
        );
        check(
            5,
            "it expires within a day, at 1970-04-11T00:00:00Z: renew it",
        );
        check(-5, "it has expired at 1970-04-11T00:00:00Z: renew it");
    }
}

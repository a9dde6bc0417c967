//! How long a certificate is valid, and how long a request is kept.

use std::time::Duration;

use kennel_types::Timestamp;

/// The maximum, and the default.
pub const LIFETIME_MAX: Duration = Duration::from_hours(365 * 24);
const LIFETIME_MIN: Duration = Duration::from_mins(10);
/// Clocks differ, so a certificate is valid from this long ago.
pub const BACKDATE: Duration = Duration::from_mins(5);
/// The lifetime of a shorter certificate counts from now on, not from its backdated start.
const SHORT_LIFETIME: Duration = Duration::from_hours(8);
/// How long a denied, failed or issued request is kept.
const KEEP_ANSWERED: Duration = Duration::from_hours(1);
/// How long any other request is kept.
const KEEP_UNANSWERED: Duration = Duration::from_hours(24);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// The validity of a certificate that is signed now by an authority that expires at `authority_expires`; none if the
/// authority has expired.
pub fn validity(
    now: Timestamp,
    seconds: Option<i32>,
    authority_expires: Timestamp,
) -> Option<Validity> {
    let requested = seconds.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
    let lifetime = requested
        .unwrap_or(LIFETIME_MAX)
        .clamp(LIFETIME_MIN, LIFETIME_MAX);
    let backdate = i64::try_from(BACKDATE.as_millis()).unwrap_or(0);
    let not_before = now.saturating_add_millis(-backdate);
    let from = if lifetime < SHORT_LIFETIME {
        now
    } else {
        not_before
    };
    let not_after = (from + lifetime).min(authority_expires);
    (not_after > now).then_some(Validity {
        not_before,
        not_after,
    })
}

/// The state of a request, with the time of its last condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Pending,
    /// Without a certificate.
    Approved(Timestamp),
    /// With the end of the certificate, if that could be read.
    Issued(Timestamp, Option<Timestamp>),
    /// Denied or failed.
    Denied(Timestamp),
}

/// When to delete a request.
pub fn expires_at(created: Timestamp, stage: Stage) -> Timestamp {
    match stage {
        Stage::Pending => created + KEEP_UNANSWERED,
        Stage::Approved(since) => since + KEEP_UNANSWERED,
        Stage::Issued(since, ends) => (since + KEEP_ANSWERED).min(ends.unwrap_or(Timestamp::MAX)),
        Stage::Denied(since) => since + KEEP_ANSWERED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn the_requested_lifetime_is_clamped() {
        let check = |seconds: Option<i32>, from_now: i64| {
            let found = validity(at(NOW), seconds, Timestamp::MAX).unwrap();
            assert_eq!(found.not_before, at(NOW - 300), "{seconds:?}");
            assert_eq!(found.not_after, at(NOW + from_now), "{seconds:?}");
        };
        let year = 365 * 86_400;
        check(None, year - 300);
        check(Some(600), 600);
        check(Some(1), 600);
        check(Some(3_600), 3_600);
        check(Some(8 * 3_600), 8 * 3_600 - 300);
        check(Some(i32::MAX), year - 300);
    }

    #[test]
    fn no_certificate_outlives_its_authority() {
        let found = validity(at(NOW), None, at(NOW + 7)).unwrap();
        assert_eq!(found.not_after, at(NOW + 7));
        assert_eq!(validity(at(NOW), None, at(NOW)), None);
    }

    #[test]
    fn requests_expire_by_stage() {
        let check = |stage: Stage, expected: i64| {
            assert_eq!(expires_at(Timestamp::EPOCH, stage), at(expected));
        };
        check(Stage::Pending, 86_400);
        check(Stage::Approved(at(10)), 86_410);
        check(Stage::Issued(at(10), None), 3_610);
        check(Stage::Issued(at(10), Some(at(700))), 700);
        check(Stage::Issued(at(10), Some(at(70_000))), 3_610);
        check(Stage::Denied(at(10)), 3_610);
    }
}

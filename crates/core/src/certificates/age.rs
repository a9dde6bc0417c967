//! For how long a certificate lives, and how long a request is kept. Times are in seconds since the epoch.

/// What a certificate lives for when nobody says otherwise, and at most.
pub const LIFETIME_MAX: i64 = 365 * 24 * HOUR;
/// What it lives for at least.
const LIFETIME_MIN: i64 = 10 * MINUTE;
/// Clocks differ: a certificate begins so long ago.
const BACKDATE: i64 = 5 * MINUTE;
/// One that lives for less than this lives for that long from now on, not from its beginning.
const SHORT: i64 = 8 * HOUR;
/// For how long a request is kept that was answered, in one way or the other.
const ANSWERED: i64 = HOUR;
/// For how long one is kept that was not.
const UNANSWERED: i64 = 24 * HOUR;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// From when until when a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its beginning.
    pub not_before: i64,
    /// Its end.
    pub not_after: i64,
}

/// The time of a certificate that is signed now by an authority that ends at `authority_ends`; none if the
/// authority has ended.
pub fn validity(now: i64, seconds: Option<i32>, authority_ends: i64) -> Option<Validity> {
    let asked = seconds.map_or(LIFETIME_MAX, i64::from);
    let lifetime = asked.clamp(LIFETIME_MIN, LIFETIME_MAX);
    let not_before = now - BACKDATE;
    let from = if lifetime < SHORT { now } else { not_before };
    let not_after = (from + lifetime).min(authority_ends);
    (not_after > now).then_some(Validity {
        not_before,
        not_after,
    })
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nobody has decided.
    Pending,
    /// Approved then, and there is no certificate.
    Approved(i64),
    /// Approved then, and there is a certificate. It ends then, if that could be read.
    Issued(i64, Option<i64>),
    /// Denied, or failed, then.
    Refused(i64),
}

/// When a request that was created then goes.
pub fn goes_at(created: i64, stage: Stage) -> i64 {
    match stage {
        Stage::Pending => created + UNANSWERED,
        Stage::Approved(then) => then + UNANSWERED,
        Stage::Issued(then, ends) => (then + ANSWERED).min(ends.unwrap_or(i64::MAX)),
        Stage::Refused(then) => then + ANSWERED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000;

    #[test]
    fn a_certificate_lives_as_long_as_asked_within_bounds() {
        let check = |seconds: Option<i32>, from_now: i64| {
            let found = validity(NOW, seconds, i64::MAX).unwrap();
            assert_eq!(found.not_before, NOW - 300, "{seconds:?}");
            assert_eq!(found.not_after - NOW, from_now, "{seconds:?}");
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
    fn nothing_outlives_its_authority() {
        let found = validity(NOW, None, NOW + 7).unwrap();
        assert_eq!(found.not_after, NOW + 7);
        assert_eq!(validity(NOW, None, NOW), None);
    }

    #[test]
    fn a_request_goes_when_nobody_needs_it_any_more() {
        let check = |stage: Stage, expected: i64| assert_eq!(goes_at(0, stage), expected);
        check(Stage::Pending, 86_400);
        check(Stage::Approved(10), 86_410);
        check(Stage::Issued(10, None), 3_610);
        check(Stage::Issued(10, Some(700)), 700);
        check(Stage::Issued(10, Some(70_000)), 3_610);
        check(Stage::Refused(10), 3_610);
    }
}

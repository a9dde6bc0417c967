//! Revocation of client certificates, by user and time of issue: a certificate of a revoked user that was issued before
//! that time is invalid, a later one is valid. Deleting a Node revokes the certificates of its user.
//!
//! A revocation is a Secret, so that it needs the same rights as bootstrap tokens, and backups contain it.

use kennel_types::Timestamp;

use super::lifetime::{BACKDATE, LIFETIME_MAX};
use super::short_hash;

/// The namespace of revocations.
pub const NAMESPACE: &str = "kube-system";
/// The type of the Secret.
pub const SECRET_TYPE: &str = "kennel.dev/revoked-user";
/// The key of the user's name.
pub const USER: &str = "user";
/// The key of the time (RFC 3339).
pub const BEFORE: &str = "issued-before";

/// The key in a user's `extra` with which an agent tells when a client certificate was issued, in seconds since the
/// epoch.
pub const ISSUED_AT: &str = "kennel.dev/certificate-issued-at";

/// Bytes of the hash in a Secret's name: 128 bits, so that no user can be given the name of another.
const HASH_BYTES: usize = 16;

/// The name of a user's revocation. User names are not always valid object names.
pub fn secret_name(user: &str) -> String {
    let hash = short_hash(user.as_bytes(), HASH_BYTES);
    format!("revoked-user-{hash}")
}

/// When a certificate with this `notBefore` was issued: every certificate of this cluster is backdated by the same
/// time.
pub fn issued_at(not_before: Timestamp) -> Timestamp {
    not_before + BACKDATE
}

/// The time to record in a revocation: the next full second, because certificates know whole seconds only.
pub fn cutoff(now: Timestamp) -> Timestamp {
    Timestamp::from_secs(now.as_secs() + 1)
}

/// When a certificate is to be issued to a user with this revocation, so that it is valid.
pub fn issue_time(now: Timestamp, before: Option<Timestamp>) -> Timestamp {
    before.map_or(now, |before| now.max(before))
}

/// Whether a certificate that was issued at this time is revoked.
pub fn is_revoked(issued_at: Timestamp, before: Timestamp) -> bool {
    issued_at < before
}

/// Whether no certificate that was issued before this time can be valid any more, so that the revocation can be deleted.
pub fn is_obsolete(before: Timestamp, now: Timestamp) -> bool {
    now > before + LIFETIME_MAX + BACKDATE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn each_user_has_a_name_of_its_own() {
        let name = secret_name("system:node:Web 1");
        assert_eq!(name.len(), "revoked-user-".len() + 32);
        assert!(
            name.bytes()
                .all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-')
        );
        assert_ne!(name, secret_name("system:node:web 1"));
    }

    #[test]
    fn certificates_issued_before_the_time_are_revoked() {
        let check = |not_before: i64, before: i64, expected: bool| {
            let issued = issued_at(at(not_before));
            assert_eq!(
                is_revoked(issued, at(before)),
                expected,
                "{not_before} {before}"
            );
        };
        check(1000, 1301, true);
        check(1000, 1300, false);
        check(1000, 5000, true);
    }

    #[test]
    fn what_is_issued_in_the_second_of_the_revocation_is_revoked_and_the_next_one_is_not() {
        let now = Timestamp::from_millis(5_900);
        let before = cutoff(now);
        assert!(is_revoked(at(5), before));
        let next = issue_time(now, Some(before));
        assert!(!is_revoked(next, before));
        assert_eq!(issue_time(at(9), Some(before)), at(9));
        assert_eq!(issue_time(at(9), None), at(9));
    }

    #[test]
    fn a_revocation_is_kept_as_long_as_a_certificate_may_live() {
        let year = 365 * 86_400;
        assert!(!is_obsolete(at(0), at(year)));
        assert!(is_obsolete(at(0), at(year + 301)));
    }
}

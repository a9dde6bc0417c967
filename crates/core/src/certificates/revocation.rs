//! Revocation of client certificates, by user and time of issue: a certificate of a revoked user that was issued before
//! that time is invalid, a later one is valid. Deleting a Node revokes the certificates of its user.
//!
//! A revocation is a Secret, so that it needs the same rights as bootstrap tokens, and backups contain it.

use kennel_types::Timestamp;

use super::lifetime::BACKDATE;
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

/// The time of a revocation that cannot be read.
pub const EVERYTHING: Timestamp = Timestamp::MAX;

/// Bytes of the hash in a Secret's name: 128 bits, so that no user can be given the name of another.
const HASH_BYTES: usize = 16;

/// The name of a user's revocation. User names are not always valid object names.
pub fn secret_name(user: &str) -> String {
    let hash = short_hash(user.as_bytes(), HASH_BYTES);
    format!("revoked-user-{hash}")
}

/// When a certificate with this `notBefore` was issued: every certificate that Kennel signs is backdated by the same
/// time. One that is not, because somebody else signed it with the authority's key, counts as issued this much later.
pub fn issued_at(not_before: Timestamp) -> Timestamp {
    not_before + BACKDATE
}

/// The time to record in a revocation: the next full second, because certificates know whole seconds only.
pub fn cutoff(now: Timestamp) -> Timestamp {
    Timestamp::from_secs(now.as_secs() + 1)
}

/// The time to record in the next revocation of a user: certificates that were issued as [`issue_time`] says after the
/// one before are revoked, too, though it was in the same second.
pub fn next_cutoff(now: Timestamp, before: Option<Timestamp>) -> Timestamp {
    let next = before.map(cutoff);
    next.map_or(cutoff(now), |next| next.max(cutoff(now)))
}

/// Why no certificate is issued to a user whose revocation cannot be read.
pub fn unreadable(user: &str) -> String {
    format!(
        "the revocation of {user} cannot be read: write it again with `kennel certs revoke {user}`"
    )
}

/// When a certificate is to be issued to a user with this revocation, so that it is valid.
pub fn issue_time(now: Timestamp, before: Option<Timestamp>) -> Timestamp {
    before.map_or(now, |before| now.max(before))
}

/// Whether a certificate that was issued at this time is revoked.
pub fn is_revoked(issued_at: Timestamp, before: Timestamp) -> bool {
    issued_at < before
}

/// Whether the revocation can be deleted: no certificate that was issued before is of an authority that is trusted, the
/// oldest of which began at this time. Not when the signer's longest lifetime is over: certificates that were signed with the
/// authority's key elsewhere may live longer.
pub fn is_obsolete(before: Timestamp, oldest_authority: Timestamp) -> bool {
    before <= oldest_authority
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
    fn a_second_revocation_ends_what_was_issued_after_the_first() {
        let now = Timestamp::from_millis(5_900);
        let first = next_cutoff(now, None);
        assert_eq!(first, at(6));
        let issued = issue_time(now, Some(first));
        let second = next_cutoff(now, Some(first));
        assert!(is_revoked(issued, second));
        assert_eq!(next_cutoff(at(100), Some(first)), at(101));
    }

    #[test]
    fn a_revocation_is_kept_as_long_as_an_authority_of_its_time_is_trusted() {
        assert!(!is_obsolete(at(1000), at(999)));
        assert!(is_obsolete(at(1000), at(1000)));
    }
}

//! Claims on the names of nodes that do not exist yet: from the approval of its first certificate until it registers,
//! one machine has the name, so that two tokens do not make the same node.
//!
//! A claim is a Secret. The API server deletes it when the Node exists, which no token becomes anyway.

use std::time::Duration;

use kennel_types::Timestamp;

use super::short_hash;

/// The namespace of claims.
pub const NAMESPACE: &str = "kube-system";
/// The type of the Secret.
pub const SECRET_TYPE: &str = "kennel.dev/node-claim";
/// The prefix of the Secret's name.
pub const SECRET_PREFIX: &str = "node-claim-";
/// The key of the node's name.
pub const NODE: &str = "node";
/// The key of the id of the machine's key.
pub const KEY: &str = "key";
/// The key of the time of the approval (RFC 3339).
pub const SINCE: &str = "since";

/// How long a machine may take to register. An agent does that within seconds.
pub const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// Bytes of the hash in a Secret's name.
const HASH_BYTES: usize = 16;

/// The name of the claim on a node's name.
pub fn secret_name(node: &str) -> String {
    let hash = short_hash(node.as_bytes(), HASH_BYTES);
    format!("{SECRET_PREFIX}{hash}")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The id of the machine's key.
    pub key: String,
    pub since: Timestamp,
}

/// What a claim means to a request with a certain key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No certificate was issued for the name.
    Free,
    /// The same machine asks again.
    Own,
    /// Another machine has just got a certificate, and is about to register.
    Taken,
    /// Another machine got a certificate, and has not registered in time: the certificate must be revoked.
    Abandoned,
}

impl Claim {
    /// `revoked` is the time before which certificates of the node are revoked.
    pub fn standing(
        claim: Option<&Self>,
        key: &str,
        revoked: Option<Timestamp>,
        now: Timestamp,
    ) -> Standing {
        match claim {
            None => Standing::Free,
            Some(claim) if revoked.is_some_and(|before| claim.since < before) => Standing::Free,
            Some(claim) if claim.key == key => Standing::Own,
            Some(claim) if now.saturating_since(claim.since) < ABANDONED_AFTER => Standing::Taken,
            Some(_) => Standing::Abandoned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_until_its_machine_has_had_time_to_register() {
        let at = Timestamp::from_secs;
        let check = |key: &str, revoked: Option<i64>, now: i64, expected: Standing| {
            let claim = Claim {
                key: "a".to_owned(),
                since: at(1000),
            };
            let standing = Claim::standing(Some(&claim), key, revoked.map(at), at(now));
            assert_eq!(standing, expected, "{key} {revoked:?} {now}");
        };
        check("a", None, 1000, Standing::Own);
        check("a", None, 9000, Standing::Own);
        check("b", None, 1000, Standing::Taken);
        // The clock was set back.
        check("b", None, 0, Standing::Taken);
        check("b", None, 4599, Standing::Taken);
        check("b", None, 4600, Standing::Abandoned);
        // Since a revocation, the certificate of the claim is worthless.
        check("b", Some(1000), 1000, Standing::Taken);
        check("b", Some(1001), 1000, Standing::Free);
        check("a", Some(1001), 9000, Standing::Free);
        assert_eq!(Claim::standing(None, "a", None, at(0)), Standing::Free);
    }
}

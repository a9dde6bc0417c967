//! The name of a revision (rules 4.6 and 4.6.1), and what to do when it is taken (rule 4.6.2).
//!
//! The hash is opaque: other controllers hash differently, and the data decides whether revisions are equal.

use sha2::{Digest, Sha256};

/// Replaces the digits 0 to 9 in a hash: no vowels, and no digits that look like letters.
const LETTERS: &[u8; 10] = b"456789bcdf";

/// The hash of a revision's data and collision count, safe in names and labels.
pub fn hash(data: &str, collision_count: Option<i64>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(data);
    if let Some(count) = collision_count {
        hasher.update(count.to_le_bytes());
    }
    let digest = hasher.finalize();
    let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let digits = number.to_string().into_bytes();
    let letter = |digit: u8| char::from(LETTERS[usize::from(digit - b'0')]);
    digits.into_iter().map(letter).collect()
}

pub fn name(daemon_set: &str, hash: &str) -> String {
    format!("{daemon_set}-{hash}")
}

/// Why a revision's name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The revision of that name has the same data: it is the current one.
    Same,
    /// It has other data, but our view of the DaemonSet is stale: retry.
    Stale,
    /// A hash collision: increment the count in the DaemonSet's status, so that the next hash differs.
    Collision { count: i64 },
}

/// Tells why a name is taken, from live reads of that revision and of the DaemonSet (rule 4.6.2).
pub fn taken(
    wanted_data: &str,
    existing_data: &str,
    known_count: Option<i64>,
    live_count: Option<i64>,
) -> Taken {
    if wanted_data == existing_data {
        return Taken::Same;
    }
    if known_count != live_count {
        return Taken::Stale;
    }
    let count = known_count.unwrap_or(0) + 1;
    Taken::Collision { count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_6_1_the_hash_depends_on_data_and_collisions_and_nothing_else() {
        let base = hash("a", None);
        assert_eq!(base, hash("a", None));
        assert_ne!(base, hash("b", None));
        assert_ne!(base, hash("a", Some(0)));
        assert_ne!(hash("a", Some(1)), hash("a", Some(2)));
    }

    #[test]
    fn s4_6_1_hashes_never_change_from_version_to_version() {
        // A different hash would give every DaemonSet a new revision after an upgrade.
        assert_eq!(hash("{}", None), "6c85fb9b7b");
        assert_eq!(hash("{}", Some(1)), "6f5f574f98");
    }

    #[test]
    fn s4_6_1_hashes_are_safe_in_names_and_labels() {
        for number in 0..1000 {
            let hash = hash(&number.to_string(), None);
            assert!(!hash.is_empty() && hash.len() <= 10, "{hash}");
            assert!(hash.bytes().all(|b| LETTERS.contains(&b)), "{hash}");
        }
    }

    #[test]
    fn s4_6_the_name_is_the_daemon_sets_with_the_hash() {
        assert_eq!(name("logs", "5d8b"), "logs-5d8b");
    }

    #[test]
    fn s4_6_2_a_taken_name_is_ours_stale_or_a_collision() {
        assert_eq!(taken("a", "a", None, Some(3)), Taken::Same);
        assert_eq!(taken("a", "b", None, Some(1)), Taken::Stale);
        assert_eq!(taken("a", "b", Some(1), None), Taken::Stale);
        assert_eq!(taken("a", "b", None, None), Taken::Collision { count: 1 });
        assert_eq!(
            taken("a", "b", Some(4), Some(4)),
            Taken::Collision { count: 5 }
        );
    }
}

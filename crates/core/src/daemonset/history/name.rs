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
}

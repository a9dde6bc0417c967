//! The checksum of a row: CRC-32 of its revisions, its key and its value as stored. It finds bytes that a disk or
//! another program changed, not those of an attacker who recomputes it.

pub(super) fn checksum(created: i64, modified: i64, key: &str, stored: &[u8]) -> i64 {
    let mut crc = flate2::Crc::new();
    crc.update(&created.to_be_bytes());
    crc.update(&modified.to_be_bytes());
    // With its length, so that no byte can move between key and value.
    crc.update(&(key.len() as u64).to_be_bytes());
    crc.update(key.as_bytes());
    crc.update(stored);
    i64::from(crc.sum())
}

/// The checksum of the counter of revisions.
pub(super) fn checksum_of_revision(reserved: i64) -> i64 {
    let mut crc = flate2::Crc::new();
    crc.update(b"revision");
    crc.update(&reserved.to_be_bytes());
    i64::from(crc.sum())
}

#[cfg(test)]
mod tests {
    use super::{checksum, checksum_of_revision};

    /// The formula must not change: it is in the files.
    #[test]
    fn the_counter_has_a_checksum() {
        // zlib.crc32(b"revision" + struct.pack(">q", 65536)) in Python.
        assert_eq!(checksum_of_revision(65_536), 2_479_725_127);
    }

    /// The formula must not change: it is in the files.
    #[test]
    fn every_part_counts() {
        let sum = checksum(1, 2, "/a", b"xy");
        // zlib.crc32(struct.pack(">qqQ", 1, 2, 2) + b"/axy") in Python.
        assert_eq!(sum, 2_051_880_517);
        for other in [
            checksum(2, 2, "/a", b"xy"),
            checksum(1, 3, "/a", b"xy"),
            checksum(1, 2, "/b", b"xy"),
            checksum(1, 2, "/ax", b"y"),
            checksum(1, 2, "/a", b"xz"),
        ] {
            assert_ne!(sum, other);
        }
    }
}

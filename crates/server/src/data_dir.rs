//! The files of a server in its data directory, for `kennel reset`.

use std::path::Path;

use kennel_store::{DATABASE_FILE, LOCK_FILE};

pub use kennel_store::{Directory as DataDirLock, OpenError};

/// The directory of certificates and keys.
pub(crate) const PKI: &str = "pki";

/// All that a server creates, in the order of deletion, which can be repeated after an interruption ([`is_data_dir`]).
/// The data directory may contain other files, such as the node's and the user's.
pub const FILES: [&str; 7] = [
    "admin.kubeconfig",
    "audit",
    "kennel.db-shm",
    "kennel.db-wal",
    DATABASE_FILE,
    PKI,
    LOCK_FILE,
];

/// Whether a server has used a directory. A database without certificates beside it is not ours: a server that finds
/// another program's database creates its lock and nothing else.
pub fn is_data_dir(dir: &Path) -> bool {
    let has = |file: &str| dir.join(file).exists();
    has(LOCK_FILE) && (has(PKI) || !has(DATABASE_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_programs_database_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        let check = |expected: bool| assert_eq!(is_data_dir(dir.path()), expected);
        let create = |name: &str| std::fs::write(dir.path().join(name), "").unwrap();
        check(false);
        create(DATABASE_FILE);
        check(false);
        create(LOCK_FILE);
        check(false);
        create(PKI);
        check(true);
        // A deletion was interrupted.
        for file in [DATABASE_FILE, PKI] {
            std::fs::remove_file(dir.path().join(file)).unwrap();
            check(true);
        }
    }
}

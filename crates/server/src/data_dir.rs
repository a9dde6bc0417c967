//! The files of a server in its data directory.

use std::path::Path;

use kennel_store::{DATABASE_FILE, LOCK_FILE};

pub use kennel_store::{Directory as DataDirLock, OpenError};

/// Says that the objects are in etcd, and in which.
pub(crate) const ETCD_FILE: &str = "store-etcd";

/// Which history of etcd the server has served.
pub(crate) const ETCD_NOTE: &str = "store-revision";

/// The directory of certificates and keys.
pub(crate) const PKI: &str = "pki";

/// The directory of a backup while it is made.
pub(crate) const BACKUP_STAGING: &str = "backup.new";
/// The directory of a restore while it is under way.
pub(crate) const RESTORE_STAGING: &str = "restore.new";

/// The directory of the database that a migration from etcd fills.
pub(crate) const MIGRATION_STAGING: &str = "migrate.new";
/// The id of a migration to etcd, while it is under way.
pub(crate) const MIGRATION_FILE: &str = "migrate.id";
/// The database after its objects were moved to etcd.
pub(crate) const MIGRATED_FILE: &str = "kennel.db.migrated";

/// Whether a migration into the directory was interrupted.
pub(crate) fn is_half_migrated(dir: &Path) -> bool {
    dir.join(MIGRATION_STAGING).exists()
}

/// Whether a restore into the directory was interrupted.
pub(crate) fn is_half_restored(dir: &Path) -> bool {
    dir.join(RESTORE_STAGING).exists()
}

/// All that a server creates, in the order of deletion, which can be repeated after an interruption ([`is_data_dir`]).
/// The data directory may contain other files, such as the node's and the user's.
pub const FILES: [&str; 16] = [
    "admin.kubeconfig",
    "audit",
    BACKUP_STAGING,
    RESTORE_STAGING,
    MIGRATION_STAGING,
    MIGRATION_FILE,
    "kennel.db.migrated-shm",
    "kennel.db.migrated-wal",
    MIGRATED_FILE,
    "kennel.db-shm",
    "kennel.db-wal",
    DATABASE_FILE,
    ETCD_NOTE,
    ETCD_FILE,
    PKI,
    LOCK_FILE,
];

/// The etcd that has the objects of a server, if they are not in its data directory.
pub fn etcd_of(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join(ETCD_FILE)).ok()?;
    Some(text.lines().nth(1)?.to_owned())
}

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

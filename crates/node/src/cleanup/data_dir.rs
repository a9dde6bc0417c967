//! The files of an agent in its data directory.

use std::path::Path;

use super::resources::RESOURCES_FILE;
use crate::agent::data_version;
use crate::agent::lock::FILE as LOCK_FILE;
use crate::agent::runtime_record;
use crate::agent::settings::POD_ADDRESSES;

/// All that an agent creates, in the order of deletion: what a repeated cleanup needs is last. The data directory may
/// contain other files, such as the user's seccomp profiles.
pub const FILES: [&str; 13] = [
    "logs",
    "process",
    "pki",
    "bin",
    "pods",
    POD_ADDRESSES,
    runtime_record::NEW_FILE,
    runtime_record::FILE,
    data_version::NEW_FILE,
    data_version::FILE,
    "resources.new",
    RESOURCES_FILE,
    LOCK_FILE,
];

/// Whether an agent has used a directory.
pub fn is_data_dir(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    let has = |name: &str| names.iter().any(|entry| entry == name);
    let others = FILES.iter().filter(|name| **name != LOCK_FILE);
    has(LOCK_FILE) && (names.len() == 1 || others.into_iter().any(|name| has(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_alone_does_not_make_a_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let check = |expected: bool| assert_eq!(is_data_dir(dir.path()), expected);
        check(false);
        let create = |name: &str| std::fs::write(dir.path().join(name), "").unwrap();
        create(LOCK_FILE);
        check(true);
        create("thesis.txt");
        check(false);
        create(RESOURCES_FILE);
        check(true);
        std::fs::remove_file(dir.path().join(LOCK_FILE)).unwrap();
        check(false);
    }
}

//! The directory of a playground and the cleanup journal in it. One playground at a time holds the directory's lock.
//! The journal lists the resources outside of the directory and is written before they are created, so that the next
//! playground can remove what a killed one left.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kennel_node::agent::lock::{Lock, LockError};
use serde::{Deserialize, Serialize};

/// The journal. Its presence also marks the directory as a playground's.
pub(super) const FILE: &str = "playground.json";
const LOCK_FILE: &str = "lock";

/// The resources outside of the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The bridge between the nodes; the veth of a node is named after it and the node's number.
    pub(super) bridge: Option<String>,
    /// Number of nodes on the bridge.
    pub(super) nodes: u32,
}

pub(super) struct LockedDirectory {
    dir: PathBuf,
    _lock: Lock,
}

impl LockedDirectory {
    /// Creates and locks the directory; returns the journal of an earlier playground that was killed. Rejects a
    /// directory with other files, since a playground removes its directory at the end.
    pub(super) fn take(dir: &Path) -> anyhow::Result<(Self, Option<Journal>)> {
        let unusable = || format!("cannot use {}; choose another --data-dir", dir.display());
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .with_context(unusable)?;
        let entries = std::fs::read_dir(dir).with_context(unusable)?.flatten();
        let other_file = entries
            .map(|entry| entry.file_name())
            .find(|name| name != LOCK_FILE);
        anyhow::ensure!(
            other_file.is_none() || dir.join(FILE).exists(),
            "{} is not empty and not a playground's directory, and a playground removes its directory at the end; choose \
             another --data-dir",
            dir.display()
        );
        let lock = match Lock::take(dir) {
            Ok(lock) => lock,
            Err(LockError::Taken { pid, .. }) => anyhow::bail!(
                "a playground is running already, process {pid}; use it (export KUBECONFIG={}), stop it (kill {pid}), \
                 or choose another --data-dir",
                dir.join("admin.kubeconfig").display()
            ),
            Err(error) => return Err(error).with_context(unusable),
        };
        let journal = match std::fs::read(dir.join(FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => {
                let found = found.with_context(unusable)?;
                Some(
                    serde_json::from_slice(&found)
                        .with_context(|| format!("cannot read {}", dir.join(FILE).display()))?,
                )
            }
        };
        let directory = Self {
            dir: dir.to_owned(),
            _lock: lock,
        };
        Ok((directory, journal))
    }

    /// Writes the journal. Call it before creating the resources.
    pub(super) fn record(&self, journal: &Journal) -> anyhow::Result<()> {
        let file = self.dir.join(FILE);
        let new = file.with_extension("new");
        let write = || {
            std::fs::write(&new, serde_json::to_vec(journal)?)?;
            std::fs::rename(&new, &file)
        };
        write().with_context(|| format!("cannot write {}", file.display()))
    }

    /// Removes all files, the journal last, and keeps the directory.
    pub(super) fn empty(&self) -> std::io::Result<()> {
        let entries = std::fs::read_dir(&self.dir)?.flatten();
        let others =
            entries.filter(|entry| entry.file_name() != LOCK_FILE && entry.file_name() != FILE);
        for entry in others {
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        match std::fs::remove_file(self.dir.join(FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the directory, and its parent if that is `kennel` and empty.
    pub(super) fn remove(self) -> std::io::Result<()> {
        std::fs::remove_dir_all(&self.dir)?;
        if let Some(parent) = self.dir.parent().filter(|dir| dir.ends_with("kennel")) {
            let _in_use = std::fs::remove_dir(parent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_found_after_a_crash() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("kennel/playground");
        let (directory, left) = LockedDirectory::take(&dir).unwrap();
        assert_eq!(left, None);
        let journal = Journal {
            bridge: Some("kennel-1f".to_owned()),
            nodes: 3,
        };
        directory.record(&journal).unwrap();
        std::fs::create_dir_all(dir.join("nodes/kennel-1")).unwrap();
        drop(directory);
        let (directory, left) = LockedDirectory::take(&dir).unwrap();
        assert_eq!(left, Some(journal));
        directory.empty().unwrap();
        drop(directory);
        let (directory, left) = LockedDirectory::take(&dir).unwrap();
        assert_eq!(left, None);
        directory.remove().unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_is_locked_and_other_files_are_not_touched() {
        let place = tempfile::tempdir().unwrap();
        let (held, _) = LockedDirectory::take(place.path()).unwrap();
        let refused = LockedDirectory::take(place.path())
            .err()
            .map(|error| error.to_string());
        let refused = refused.unwrap_or_default();
        let pid = std::process::id();
        assert!(refused.contains(&format!("kill {pid}")), "{refused}");
        drop(held);
        std::fs::write(place.path().join("thesis.txt"), "mine").unwrap();
        let refused = LockedDirectory::take(place.path())
            .err()
            .map(|error| error.to_string());
        assert!(refused.unwrap_or_default().contains("not a playground's"));
        assert!(place.path().join("thesis.txt").exists());
    }
}

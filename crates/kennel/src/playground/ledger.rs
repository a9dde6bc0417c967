//! The directory of a playground: one playground at a time has it, and a file in it says what was made outside of it,
//! written before it is made. What a playground that was killed has left is found by it.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kennel_node::agent::lock::{Lock, LockError};
use serde::{Deserialize, Serialize};

/// The file; a directory that has it is a playground's.
const FILE: &str = "playground.json";
/// The file that is locked.
const LOCK: &str = "lock";

/// What was made outside of the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    /// The bridge between the nodes; lines to nodes have its name and a number.
    pub(super) bridge: Option<String>,
    /// How many nodes it joins.
    pub(super) nodes: u32,
}

/// A directory that nobody else has.
pub(super) struct Claim {
    dir: PathBuf,
    _lock: Lock,
}

impl Claim {
    /// Takes a directory, and tells what an earlier playground has left there. One that is somebody else's is not
    /// touched: it would be removed at the end.
    pub(super) fn take(dir: &Path) -> anyhow::Result<(Self, Option<Ledger>)> {
        let unusable = || format!("cannot use {}; choose another --data-dir", dir.display());
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .with_context(unusable)?;
        let entries = std::fs::read_dir(dir).with_context(unusable)?.flatten();
        let strange = entries
            .map(|entry| entry.file_name())
            .find(|name| name != LOCK);
        anyhow::ensure!(
            strange.is_none() || dir.join(FILE).exists(),
            "{} is not empty and no playground's, and a playground removes its directory at the end; choose another \
             --data-dir",
            dir.display()
        );
        let lock = match Lock::take(dir) {
            Ok(lock) => lock,
            Err(LockError::Taken { pid, .. }) => anyhow::bail!(
                "a playground is running already, process {pid}; use it (export KUBECONFIG={}), end it (kill {pid}), \
                 or give this one another --data-dir",
                dir.join("admin.kubeconfig").display()
            ),
            Err(error) => return Err(error).with_context(unusable),
        };
        let left = match std::fs::read(dir.join(FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => {
                let found = found.with_context(unusable)?;
                Some(
                    serde_json::from_slice(&found)
                        .with_context(|| format!("cannot read {}", dir.join(FILE).display()))?,
                )
            }
        };
        let claim = Self {
            dir: dir.to_owned(),
            _lock: lock,
        };
        Ok((claim, left))
    }

    /// Notes what is about to be made.
    pub(super) fn note(&self, ledger: &Ledger) -> anyhow::Result<()> {
        let file = self.dir.join(FILE);
        let new = file.with_extension("new");
        let write = || {
            std::fs::write(&new, serde_json::to_vec(ledger)?)?;
            std::fs::rename(&new, &file)
        };
        write().with_context(|| format!("cannot write {}", file.display()))
    }

    /// Removes all files, the note of what was made last, and keeps the directory.
    pub(super) fn empty(&self) -> std::io::Result<()> {
        let entries = std::fs::read_dir(&self.dir)?.flatten();
        let others = entries.filter(|entry| entry.file_name() != LOCK && entry.file_name() != FILE);
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

    /// Gives the directory up, and the one above if it was for playgrounds alone.
    pub(super) fn give_up(self) -> std::io::Result<()> {
        std::fs::remove_dir_all(&self.dir)?;
        if let Some(above) = self.dir.parent().filter(|above| above.ends_with("kennel")) {
            let _used = std::fs::remove_dir(above);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_found_after_a_crash() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("kennel/playground");
        let (claim, left) = Claim::take(&dir).unwrap();
        assert_eq!(left, None);
        let ledger = Ledger {
            bridge: Some("kennel-1f".to_owned()),
            nodes: 3,
        };
        claim.note(&ledger).unwrap();
        std::fs::create_dir_all(dir.join("nodes/kennel-1")).unwrap();
        drop(claim);
        let (claim, left) = Claim::take(&dir).unwrap();
        assert_eq!(left, Some(ledger));
        claim.empty().unwrap();
        drop(claim);
        let (claim, left) = Claim::take(&dir).unwrap();
        assert_eq!(left, None);
        claim.give_up().unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_has_one_playground_and_a_playground_takes_nobodys_files() {
        let place = tempfile::tempdir().unwrap();
        let (held, _) = Claim::take(place.path()).unwrap();
        let refused = Claim::take(place.path())
            .err()
            .map(|error| error.to_string());
        let refused = refused.unwrap_or_default();
        let pid = std::process::id();
        assert!(refused.contains(&format!("kill {pid}")), "{refused}");
        drop(held);
        std::fs::write(place.path().join("thesis.txt"), "mine").unwrap();
        let refused = Claim::take(place.path())
            .err()
            .map(|error| error.to_string());
        assert!(refused.unwrap_or_default().contains("no playground's"));
        assert!(place.path().join("thesis.txt").exists());
    }
}

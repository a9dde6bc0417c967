//! Removes what a start has created in its data directory, if the start fails.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kennel_node::agent::lock::is_at;
use rustix::fs::{FlockOperation, flock};

/// Tells the agent program which of its paths did not exist before `kennel agent` wrote it there.
pub const NEW_PATH: &str = "KENNEL_AGENT_NEW_PATH";

/// What a data directory had before a start.
#[derive(Clone, Debug)]
pub struct NewFiles {
    dir: PathBuf,
    /// The name of the file that is locked while the directory is in use.
    lock: &'static str,
    existing: BTreeSet<OsString>,
    /// The topmost directory that did not exist.
    root: Option<PathBuf>,
}

impl NewFiles {
    /// Call it before anything is created.
    pub fn record(dir: &Path, lock: &'static str) -> Self {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        Self {
            existing: entries.map(|entry| entry.file_name()).collect(),
            root: first_missing(dir),
            dir: dir.to_owned(),
            lock,
        }
    }

    /// Adds a path that was created before: the directory, one above it, or an entry of it.
    #[must_use]
    pub fn with_new(mut self, path: &Path) -> Self {
        if self.dir.starts_with(path) {
            self.root = Some(path.to_owned());
            self.existing.clear();
        } else if let Some(name) = path
            .file_name()
            .filter(|_| path.parent() == Some(self.dir.as_path()))
        {
            self.existing.remove(name);
        }
        self
    }

    /// Passes a result on, after removing the new files if it is an error. Whatever used the directory must have been
    /// dropped.
    pub fn remove_if_failed<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        result.inspect_err(|_| self.remove())
    }

    /// Removes the new files, unless another process uses the directory.
    pub fn remove(&self) {
        if let Err(error) = self.remove_entries() {
            let dir = self.dir.display();
            tracing::warn!("cannot remove the files of the failed start from {dir}: {error}");
        }
        if let Some(root) = &self.root {
            remove_empty_directories(&self.dir, root);
        }
    }

    fn remove_entries(&self) -> io::Result<()> {
        let lock = match File::open(self.dir.join(self.lock)) {
            Ok(lock) => lock,
            // Nothing is created without the lock.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A file in place of the directory, for example.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(()),
            Err(error) => return Err(error),
        };
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !(locked && is_at(&lock, &self.dir.join(self.lock))) {
            return Ok(());
        }
        let entries = fs::read_dir(&self.dir)?.flatten();
        let (locks, others): (Vec<_>, Vec<_>) = entries
            .map(|entry| entry.path())
            .filter(|path| self.is_new(path))
            .partition(|path| path.ends_with(self.lock));
        // The lock last: until then, no other process starts in this directory.
        for path in others.into_iter().chain(locks) {
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// A new file whose name begins with that of an older one may be a part of that, as the write-ahead log of a
    /// database is.
    fn is_new(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else {
            return false;
        };
        let is_part_of = |existing: &OsString| {
            let existing = existing.as_encoded_bytes();
            name.as_encoded_bytes().starts_with(existing)
        };
        !self.existing.iter().any(is_part_of)
    }
}

/// The topmost part of a path that does not exist.
pub fn first_missing(path: &Path) -> Option<PathBuf> {
    let missing = path
        .ancestors()
        .take_while(|part| !part.as_os_str().is_empty() && matches!(part.try_exists(), Ok(false)));
    missing.last().map(Path::to_owned)
}

/// Removes a directory and those above it up to `root`, as far as they are empty.
pub fn remove_empty_directories(dir: &Path, root: &Path) {
    for dir in dir.ancestors().take_while(|dir| dir.starts_with(root)) {
        if fs::remove_dir(dir).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "lock";

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// What a start creates.
    fn create(dir: &Path) {
        fs::create_dir_all(dir.join("pki/deep")).unwrap();
        for file in [LOCK, "kennel.db", "kennel.db-wal", "pki/key"] {
            fs::write(dir.join(file), "").unwrap();
        }
    }

    #[test]
    fn a_new_directory_is_removed_with_those_above_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b/data");
        let new = NewFiles::record(&dir, LOCK);
        create(&dir);
        let failed: Result<(), &str> = new.remove_if_failed(Err("no"));
        assert_eq!(failed, Err("no"));
        assert_eq!(names(temp.path()), [""; 0]);
    }

    #[test]
    fn older_files_and_what_belongs_to_them_stay() {
        let temp = tempfile::tempdir().unwrap();
        for file in ["keys", "kennel.db"] {
            fs::write(temp.path().join(file), "").unwrap();
        }
        let new = NewFiles::record(temp.path(), LOCK);
        create(temp.path());
        new.remove();
        assert_eq!(names(temp.path()), ["kennel.db", "kennel.db-wal", "keys"]);
    }

    #[test]
    fn a_directory_that_another_process_uses_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let new = NewFiles::record(&dir, LOCK);
        create(&dir);
        let held = File::open(dir.join(LOCK)).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        new.remove();
        assert_eq!(names(&dir), ["kennel.db", "kennel.db-wal", LOCK, "pki"]);
    }

    #[test]
    fn a_path_that_was_created_before_counts_as_new() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        fs::create_dir_all(dir.join("bin")).unwrap();
        let record = || NewFiles::record(&dir, LOCK);
        let (entry, above) = (record().with_new(&dir.join("bin")), record().with_new(&dir));
        create(&dir);
        entry.remove();
        assert_eq!(names(&dir), [""; 0]);
        create(&dir);
        above.remove();
        assert_eq!(names(temp.path()), [""; 0]);
    }
}

//! Restores a backup into the data directory of a server that does not run.
//!
//! Everything is unpacked, verified and given new revisions in a directory of its own, then moved into place. While that
//! directory exists, a server does not start.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use kennel_store::{DATABASE_FILE, Directory, LOCK_FILE, Offline, OpenError};
use kennel_types::Timestamp;
use rustix::fs::{Gid, Uid};

use super::archive::{self, ArchiveError, Found};
use super::{ABOUT, About, FORMAT, Secret, basic_format};
use crate::clock;
use crate::data_dir::{PKI, RESTORE_STAGING};

/// How far a restore moves the revision beyond that of the backup, so that it is past everything that was served since
/// then: four billion writes, and more for an older backup.
const REVISIONS_AHEAD: u64 = 1 << 32;
/// For each second of the backup's age: twice what the fastest rollout writes.
const REVISIONS_PER_SECOND: u64 = 10_000;

/// The files of a server that a restore replaces.
const REPLACED: [&str; 5] = [
    DATABASE_FILE,
    "kennel.db-wal",
    "kennel.db-shm",
    PKI,
    "admin.kubeconfig",
];

#[derive(Debug)]
pub struct Restored {
    /// When the backup was made.
    pub created: Timestamp,
    /// The greatest revision of the backup, and the first that will be served.
    pub revisions: (u64, u64),
    /// Where the replaced files are.
    pub replaced: Option<PathBuf>,
    /// The id of the key that secrets are encrypted with; empty if they are not.
    pub encrypted_with: String,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("cannot restore {}", file.display())]
    Archive { file: PathBuf, source: ArchiveError },
    #[error("a Kennel server runs with {}; stop it first", .0.display())]
    Live(PathBuf),
    #[error(
        "{} has the data of a server; --replace moves it aside, within the directory",
        .0.display()
    )]
    Occupied(PathBuf),
    #[error(
        "the backup has format {found}, this program knows formats up to {FORMAT}; use the newer program"
    )]
    Newer { found: u32 },
    #[error("the backup has no {ABOUT} that can be read")]
    NoAbout,
    #[error("the database of the backup is damaged: {0}")]
    Damaged(String),
    #[error("cannot use the database")]
    Store(#[from] OpenError),
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RestoreError {
    |source| RestoreError::File {
        path: path.to_owned(),
        source,
    }
}

/// With `replace`, the data that the directory has is moved aside.
pub fn restore(
    file: &Path,
    data_dir: &Path,
    secret: Option<&Secret>,
    replace: bool,
) -> Result<Restored, RestoreError> {
    // Before anything is created: the file may not be there, or need another secret.
    let failed = |source| RestoreError::Archive {
        file: file.to_owned(),
        source,
    };
    let archive = super::open(file, secret).map_err(failed)?;
    let _lock = Directory::acquire(data_dir).map_err(|error| match error {
        OpenError::InUse { dir } => RestoreError::Live(dir),
        other => other.into(),
    })?;
    let occupied = REPLACED.iter().any(|name| data_dir.join(name).exists());
    if occupied && !replace {
        return Err(RestoreError::Occupied(data_dir.to_owned()));
    }
    let staging = Staging::new(data_dir)?;
    archive::read(archive, |found| staging.unpack(found)).map_err(failed)?;
    let about = staging.about()?;
    let served = Offline::open(data_dir).and_then(|old| old.revision());
    let base = base(&about, served.unwrap_or(0), clock::now());
    let database = staging.dir.join(DATABASE_FILE);
    check(&database)?;
    let last = Offline::renumber(&database, base)?;
    let replaced = occupied.then(|| move_aside(data_dir)).transpose()?;
    staging.install()?;
    Ok(Restored {
        created: about.created,
        revisions: (about.revision, last),
        replaced,
        encrypted_with: about.encrypted_with,
    })
}

/// The revision after which those of the restored objects begin. `served` is that of the server whose data is replaced.
fn base(about: &About, served: u64, now: Timestamp) -> u64 {
    let age = now.saturating_since(about.created).as_secs();
    about
        .revision
        .saturating_add(REVISIONS_AHEAD)
        .saturating_add(age.saturating_mul(REVISIONS_PER_SECOND))
        .max(served)
        // Stays a positive number for SQLite, whatever the clock says.
        .min(1 << 62)
}

fn check(database: &Path) -> Result<(), RestoreError> {
    let reports = Offline::open_file(database)?.integrity()?.join("; ");
    if reports.is_empty() {
        Ok(())
    } else {
        Err(RestoreError::Damaged(reports))
    }
}

/// Moves the files of the previous server into a directory of their own.
fn move_aside(data_dir: &Path) -> Result<PathBuf, RestoreError> {
    let time = basic_format(&clock::now().to_rfc3339(3));
    let aside = data_dir.join(format!("replaced-{time}"));
    let made = DirBuilder::new().mode(0o700).create(&aside);
    made.map_err(at(&aside))?;
    for name in REPLACED {
        let from = data_dir.join(name);
        match fs::rename(&from, aside.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved.map_err(at(&from))?,
        }
    }
    Ok(aside)
}

struct Staging {
    data_dir: PathBuf,
    dir: PathBuf,
    /// Whether files may have been moved already.
    installing: bool,
}

impl Staging {
    fn new(data_dir: &Path) -> Result<Self, RestoreError> {
        let dir = data_dir.join(RESTORE_STAGING);
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(at(&dir))?,
        }
        let made = DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(at(&dir))?;
        let data_dir = data_dir.to_owned();
        Ok(Self {
            data_dir,
            dir,
            installing: false,
        })
    }

    fn unpack(&self, found: Found<'_>) -> io::Result<()> {
        let Found {
            name,
            mode,
            content,
        } = found;
        let is_ours = [ABOUT, DATABASE_FILE].contains(&name) || Path::new(name).starts_with(PKI);
        if !is_ours {
            return Err(io::Error::other(format!("unexpected file {name}")));
        }
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        let mut options = OpenOptions::new();
        // Certificates may be public, and nothing more than that.
        let options = options.write(true).create_new(true);
        let mut file = options.mode(mode & 0o644 | 0o600).open(&path)?;
        io::copy(content, &mut file)?;
        file.sync_all()
    }

    fn about(&self) -> Result<About, RestoreError> {
        let text = fs::read(self.dir.join(ABOUT)).map_err(|_| RestoreError::NoAbout)?;
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|_| RestoreError::NoAbout)?;
        let format = value["format"].as_u64().unwrap_or(0);
        if format > u64::from(FORMAT) {
            let found = u32::try_from(format).unwrap_or(u32::MAX);
            return Err(RestoreError::Newer { found });
        }
        serde_json::from_value(value).map_err(|_| RestoreError::NoAbout)
    }

    /// Moves the files into place, as the owner of the directory.
    fn install(mut self) -> Result<(), RestoreError> {
        let owner = fs::metadata(&self.data_dir).map_err(at(&self.data_dir))?;
        let lock = self.data_dir.join(LOCK_FILE);
        give(&lock, &owner).map_err(at(&lock))?;
        self.installing = true;
        for name in [PKI, DATABASE_FILE] {
            let (from, to) = (self.dir.join(name), self.data_dir.join(name));
            give(&from, &owner).map_err(at(&from))?;
            fs::rename(&from, &to).map_err(at(&to))?;
        }
        sync(&self.data_dir).map_err(at(&self.data_dir))?;
        fs::remove_dir_all(&self.dir).map_err(at(&self.dir))
    }
}

/// Root restores for the user whose directory it is.
fn give(path: &Path, owner: &fs::Metadata) -> io::Result<()> {
    let own = fs::metadata(path)?;
    if (own.uid(), own.gid()) != (owner.uid(), owner.gid()) {
        let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
        rustix::fs::chown(path, Some(uid), Some(gid))?;
    }
    if own.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), owner)?;
        }
        sync(path)?;
    }
    Ok(())
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.installing {
            // It is gone, or it keeps a server from starting with half of the files.
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove {}", self.dir.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_is_past_everything_that_was_served() {
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let about = About {
            format: FORMAT,
            kennel: String::new(),
            created,
            schema_version: 2,
            revision: 1_000,
            encrypted_with: String::new(),
        };
        let check = |now: &str, served: u64, expected: u64| {
            let base = base(&about, served, now.parse().unwrap());
            assert_eq!(base, expected, "{now} {served}");
        };
        check("2026-01-01T00:00:00Z", 0, 1_000 + (1 << 32));
        // A clock that was set back.
        check("2025-01-01T00:00:00Z", 0, 1_000 + (1 << 32));
        let day = 1_000 + (1 << 32) + 86_400 * 10_000;
        check("2026-01-02T00:00:00Z", 2_000, day);
        // The server whose data is replaced had been restored before.
        check("2026-01-02T00:00:00Z", day + 7, day + 7);
    }
}

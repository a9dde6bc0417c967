//! Backups: one file with everything that a server needs to start elsewhere.
//!
//! ```text
//!  data directory ─▶ snapshot of the database ─▶ archive ─▶ (cipher) ─▶ FILE.new ─▶ read back and verify ─▶ FILE
//! ```
//!
//! A server may be running: the snapshot is one read transaction. Not part of a backup are the audit log, what nodes
//! have on their own disks, and the file of `--encryption-key-file`: objects that are encrypted at rest stay so.

mod archive;
mod cipher;
mod restore;
mod schedule;
mod verified;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use kennel_store::{DATABASE_FILE, DamagedValue, Offline, OpenError};
use kennel_types::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub use archive::ArchiveError;
pub use cipher::{Secret, SecretFile, UnsealError};
pub use restore::{RestoreError, Restored, restore};
pub(crate) use schedule::run;
pub use schedule::{EVERY_DEFAULT, KEEP_DEFAULT, Schedule, Status};

use crate::clock;
use crate::data_dir::{BACKUP_STAGING, PKI};
use crate::object;
use crate::seal::{KeyFileError, Keyring};
use archive::{Content, Member};
use cipher::Unsealer;

/// The version of the archive's layout.
const FORMAT: u32 = 1;
const ABOUT: &str = "backup.json";
/// How the names of backups in a directory begin and end; a time is between, so that they sort by age.
const NAME_PREFIX: &str = "kennel-";
const NAME_SUFFIX: &str = ".backup";
/// Follows the name of a file while it is being written.
const UNFINISHED_SUFFIX: &str = ".new";

/// `backup.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    format: u32,
    /// The version of the program that wrote it.
    kennel: String,
    created: Timestamp,
    schema_version: i32,
    /// No object has a greater resourceVersion.
    revision: u64,
    /// The id of the key that secrets are encrypted with; empty if they are not.
    encrypted_with: String,
}

/// A backup that was written and verified.
#[derive(Debug)]
pub struct Backup {
    pub path: PathBuf,
    pub bytes: u64,
    pub objects: usize,
    pub revision: u64,
    /// The id of the key that secrets are encrypted with; empty if they are not.
    pub encrypted_with: String,
    /// Objects that cannot be read. The backup has their bytes.
    pub damaged: Vec<DamagedValue>,
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("cannot read the database")]
    Store(#[from] OpenError),
    #[error("the database of {} is damaged, so it was not backed up: {reports}", dir.display())]
    Damaged { dir: PathBuf, reports: String },
    #[error("{} is not the data directory of a server", .0.display())]
    NoDataDir(PathBuf),
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    #[error("another backup of {} is being made", .0.display())]
    Busy(PathBuf),
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Secret(#[from] KeyFileError),
    #[error("{} was written and could not be verified; it was removed", path.display())]
    Verify { path: PathBuf, source: ArchiveError },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    |source| BackupError::File {
        path: path.to_owned(),
        source,
    }
}

/// Backs up a data directory, which a server may be using. `to` is a new file, or a directory to create one in.
pub fn create(data_dir: &Path, to: &Path, secret: Option<&Secret>) -> Result<Backup, BackupError> {
    let pki = data_dir.join(PKI);
    if !pki.is_dir() {
        return Err(BackupError::NoDataDir(data_dir.to_owned()));
    }
    let created = clock::now();
    let path = if to.is_dir() {
        to.join(file_name(created))
    } else {
        to.to_owned()
    };
    if path.exists() {
        return Err(BackupError::Exists(path));
    }
    let staging = Staging::lock(data_dir)?;
    let snapshot = staging.snapshot(data_dir)?;
    let offline = Offline::open_file(&snapshot)?;
    let reports = offline.integrity()?.join("; ");
    if !reports.is_empty() {
        let dir = data_dir.to_owned();
        return Err(BackupError::Damaged { dir, reports });
    }
    let values = offline.check_values(&Keyring::empty(), |key, value| {
        object::decode(key, value)?;
        Ok(())
    })?;
    let about = About {
        format: FORMAT,
        kennel: env!("CARGO_PKG_VERSION").to_owned(),
        created,
        schema_version: offline.schema_version(),
        revision: offline.revision()?,
        encrypted_with: offline.seal_name()?,
    };
    drop(offline);
    let members = members(&about, snapshot, &pki)?;
    let bytes = verified::write(&path, &members, secret)?;
    Ok(Backup {
        path,
        bytes,
        objects: values.values,
        revision: about.revision,
        encrypted_with: about.encrypted_with,
        damaged: values.damaged,
    })
}

fn file_name(time: Timestamp) -> String {
    let time = basic_format(&time.to_string());
    format!("{NAME_PREFIX}{time}{NAME_SUFFIX}")
}

/// The basic format of ISO 8601, without characters that are awkward in file names.
fn basic_format(time: &str) -> String {
    time.replace(['-', ':'], "")
}

fn members(about: &About, snapshot: PathBuf, pki: &Path) -> Result<Vec<Member>, BackupError> {
    let about = serde_json::to_vec_pretty(about).map_err(io::Error::from);
    let member = |name: String, content| Member {
        name,
        mode: 0o600,
        content,
    };
    let mut members = vec![
        member(ABOUT.to_owned(), Content::Bytes(about.map_err(at(pki))?)),
        member(DATABASE_FILE.to_owned(), Content::File(snapshot)),
    ];
    add_files(&mut members, PKI, pki).map_err(at(pki))?;
    Ok(members)
}

/// Adds the files of a directory. They are small and replaced by renaming, so they are read now.
fn add_files(members: &mut Vec<Member>, name: &str, dir: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        let name = format!("{name}/{file}");
        let kind = entry.file_type()?;
        // Half of a file that is being replaced.
        let is_temporary = file.ends_with(".new");
        if kind.is_dir() {
            add_files(members, &name, &entry.path())?;
        } else if kind.is_file() && !is_temporary {
            members.push(Member {
                name,
                mode: entry.metadata()?.permissions().mode() & 0o777,
                content: Content::Bytes(fs::read(entry.path())?),
            });
        }
    }
    Ok(())
}

/// Opens a backup, sealed or not.
fn open(path: &Path, secret: Option<&Secret>) -> Result<Box<dyn Read>, ArchiveError> {
    let mut file = BufReader::new(File::open(path)?);
    if cipher::is_sealed(&mut file)? {
        return Ok(Box::new(Unsealer::new(file, secret)?));
    }
    Ok(Box::new(file))
}

/// The directory of the snapshot: within the data directory, because a sealed backup must not leave an unsealed copy
/// elsewhere. Locked, and removed when dropped.
struct Staging {
    dir: PathBuf,
    _lock: File,
}

impl Staging {
    fn lock(data_dir: &Path) -> Result<Self, BackupError> {
        let dir = data_dir.join(BACKUP_STAGING);
        let mut builder = fs::DirBuilder::new();
        let made = builder.mode(0o700).recursive(true).create(&dir);
        made.map_err(at(&dir))?;
        let lock = File::open(&dir).map_err(at(&dir))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(BackupError::Busy(data_dir.to_owned()));
        }
        Ok(Self { dir, _lock: lock })
    }

    fn snapshot(&self, data_dir: &Path) -> Result<PathBuf, BackupError> {
        let copy = self.dir.join(DATABASE_FILE);
        // Of a backup that was interrupted; empty, with the mode that the copy is to have.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&copy).map_err(at(&copy))?;
        Offline::open(data_dir)?.snapshot(&copy)?;
        Ok(copy)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(%error, "cannot remove {}", self.dir.display());
        }
    }
}

//! Errors, one type per call. Their texts may reach users and name the file concerned.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::record::{Record, Revision};
use crate::seal::SealError;
use crate::sqlite::LogDamage;

/// What a damaged log needs.
const LOG_REMEDY: &str = "nothing was changed: restore a backup, and keep these files";

/// A write that returns an error is never visible, but for [`WriteError::Unknown`].
pub enum WriteError<H> {
    /// [`Op::Create`](crate::Op::Create) of a key that exists, with its record.
    Exists(Arc<Record<H>>),
    /// Update or delete of a key that does not exist.
    Missing,
    /// The value has changed since the expected revision; this is the current record.
    Stale(Arc<Record<H>>),
    /// The value is larger than the engine stores.
    TooLarge { bytes: usize, max: usize },
    /// The engine is out of space. Nothing was stored.
    Full(String),
    /// The engine is failing or cannot be reached. Nothing was stored.
    Unavailable(String),
    /// It could not be learnt in time whether the write was stored.
    Unknown(String),
    /// The store is closed.
    Closed,
}

impl<H> fmt::Display for WriteError<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(record) => {
                write!(
                    f,
                    "key {} exists since revision {}",
                    record.key, record.created
                )
            }
            Self::Missing => f.write_str("no such key"),
            Self::Stale(record) => {
                write!(
                    f,
                    "key {} was changed at revision {}",
                    record.key, record.modified
                )
            }
            Self::TooLarge { bytes, max } => {
                write!(
                    f,
                    "the object has {bytes} bytes; the store takes at most {max}"
                )
            }
            Self::Full(reason) | Self::Unavailable(reason) | Self::Unknown(reason) => {
                f.write_str(reason)
            }
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}

impl<H> fmt::Debug for WriteError<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Exists(_) => "Exists",
            Self::Missing => "Missing",
            Self::Stale(_) => "Stale",
            Self::TooLarge { .. } => "TooLarge",
            Self::Full(_) => "Full",
            Self::Unavailable(_) => "Unavailable",
            Self::Unknown(_) => "Unknown",
            Self::Closed => "Closed",
        };
        write!(f, "{name}({self})")
    }
}

impl<H> std::error::Error for WriteError<H> {}

/// The requested history has been dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history before revision {oldest} has been compacted")]
pub struct Compacted {
    /// The oldest revision that is still available.
    pub oldest: Revision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeAtError {
    #[error(transparent)]
    Compacted(#[from] Compacted),
    #[error("the store is at revision {current}, which is older than the one asked for")]
    Future { current: Revision },
}

/// Memory may be older than the engine: the engine did not answer in time, or memory did not catch up with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unconfirmed(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// Its buffer overflowed; the buffered events are gone.
    #[error("the watcher is too slow")]
    TooSlow,
    /// Events are missing between what was delivered and the current state: the engine dropped its history before this
    /// process read it, or went back to an older state. Read the state again.
    #[error("the history of the store has a gap")]
    Reset,
    /// The store was closed; all events before have been delivered.
    #[error("the store is closed")]
    Closed,
}

/// Why the caller could not parse the head of a value.
pub type DecodeError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("data directory {} is in use by another process", dir.display())]
    InUse { dir: PathBuf },
    #[error("{} is not a database", path.display())]
    NotADatabase { path: PathBuf },
    #[error(
        "{} is a database of another program (application id {application_id:#x}); it was not changed",
        path.display()
    )]
    Foreign { path: PathBuf, application_id: i32 },
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}; start the newer program again, \
         or restore a backup that is older than the upgrade",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i32,
        known: i32,
    },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: Damage },
    /// A stored value cannot be decrypted without a key that is missing. The file is unchanged.
    #[error("cannot read {key} in {}: {reason}", path.display())]
    Sealed {
        path: PathBuf,
        key: String,
        reason: SealError,
    },
    #[error(
        "{} cannot have a write-ahead log (its journal mode stays {mode}): use a data directory on a local file system",
        path.display()
    )]
    NoWriteAheadLog { path: PathBuf, mode: String },
    #[error("cannot open {}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot open database {}", path.display())]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
}

/// What is wrong with a database that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it has schema version {0}, which never existed")]
    SchemaVersion(i32),
    #[error("key {0} is stored twice")]
    DuplicateKey(String),
    #[error("key {0} has an impossible revision")]
    ImpossibleRevision(String),
    #[error("{0}; {LOG_REMEDY}")]
    Log(LogDamage),
    #[error("SQLite's quick_check reports: {0}; restore a backup, and keep this file")]
    Structure(String),
    #[error(
        "{count} values cannot be read, the first is {first}; a start sets at most {max} aside, so nothing was \
         changed: restore a backup"
    )]
    TooMany {
        count: usize,
        max: usize,
        first: String,
    },
}

//! What can go wrong, one type per call. Texts here may reach users; they name the file concerned.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::record::{Record, Revision};

/// Why a write was refused. Nothing of a refused write is ever visible.
pub enum WriteError<H> {
    /// [`Op::Create`](crate::Op::Create) of a key that exists; this is what stands there.
    Exists(Arc<Record<H>>),
    /// Update or delete of a key that does not exist.
    Missing,
    /// The value is no longer the expected one; this is the current one.
    Stale(Arc<Record<H>>),
    /// The disk refused the write (full, failing); the text says how.
    Unavailable(String),
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
            Self::Unavailable(reason) => f.write_str(reason),
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
            Self::Unavailable(_) => "Unavailable",
            Self::Closed => "Closed",
        };
        write!(f, "{name}({self})")
    }
}

impl<H> std::error::Error for WriteError<H> {}

/// The history asked for has been dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history before revision {oldest} has been compacted")]
pub struct Compacted {
    /// The oldest revision that can still be asked for.
    pub oldest: Revision,
}

/// Why the state at a revision cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeAtError {
    /// That revision is too old.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// That revision has not happened yet.
    #[error("the store is at revision {current}, which is older than the one asked for")]
    Future {
        /// The revision the store is at.
        current: Revision,
    },
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// The watcher did not keep up and was cut off; its buffered events are gone.
    #[error("the watcher is too slow")]
    TooSlow,
    /// The store was closed; everything before was delivered.
    #[error("the store is closed")]
    Closed,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("data directory {} is in use by another process", dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file is no SQLite database at all.
    #[error("{} is not a database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of some other program.
    #[error(
        "{} is a database of another program (application id {application_id:#x}); refusing to touch it",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The id found in it.
        application_id: i32,
    },
    /// The file was written by a newer version.
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}; start the newer program again",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: i32,
        /// The newest version known here.
        known: i32,
    },
    /// The contents contradict themselves.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A stored value cannot be opened. Nothing was changed.
    #[error("cannot read {key} in {}: {reason}", path.display())]
    Sealed {
        /// The file.
        path: PathBuf,
        /// The value's key.
        key: String,
        /// Why.
        reason: String,
    },
    /// A file operation failed.
    #[error("cannot open {}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("cannot open database {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

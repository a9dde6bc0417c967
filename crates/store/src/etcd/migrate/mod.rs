//! Moves all objects between a database file and an etcd, while no server uses either.
//!
//! Stored bytes are copied as they are: keys are the same on both engines, and so is what encryption binds to a value, so that no
//! encryption key is needed. Everything is checked before anything is written, a key of etcd or a directory says while a
//! migration is under way, and a repetition begins anew what was not finished.

mod session;
mod source;
mod to_etcd;
mod to_sqlite;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::session::Session;
pub(super) use self::session::refuse_half_migrated;
pub use self::to_etcd::{ToEtcd, to_etcd};
pub use self::to_sqlite::to_sqlite;

use super::error::{CallError, EtcdError};
use crate::DamagedValue;
use crate::error::OpenError;
use crate::record::Revision;

/// Where a migration to etcd notes what it is doing. A server does not start on an etcd that has this key.
pub(super) const MARKER_KEY: &str = "/kennel/migration";
/// How many keys an error names.
const NAMED_MAX: usize = 10;

type Digest = [u8; 32];
/// The hash of each stored value.
type Digests = HashMap<Arc<str>, Digest>;

/// Told what is going on where it takes long.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;
/// How long an object with a lifetime still has; none lives for ever.
pub type Lifetime = Arc<dyn Fn(&str, &[u8]) -> Option<Duration> + Send + Sync>;

/// A migration that was verified.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub objects: usize,
    /// The last revision of the source, and that of the target.
    pub revisions: (Revision, Revision),
}

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    #[error(transparent)]
    Database(#[from] OpenError),
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("a call to etcd failed: {0}")]
    Call(String),
    #[error(
        "values of the database cannot be read: {0}. Nothing was changed: `kennel doctor` shows what can be done about them"
    )]
    Damaged(Named),
    #[error(
        "objects are larger than etcd takes, which is {max} bytes as they are stored: {names}. Nothing was changed: make \
         them smaller or delete them"
    )]
    TooLarge { names: Named, max: usize },
    #[error(
        "another API server has stored objects as protobuf, which this program does not read: {0}. Nothing was changed"
    )]
    Protobuf(Named),
    #[error("etcd is not empty; it has the key {0}. Give an etcd of its own")]
    NotEmpty(String),
    #[error("etcd has no objects")]
    Empty,
    #[error(
        "another migration into this etcd was begun, from {0}. Finish it from there, or delete everything in etcd with \
         `etcdctl del \"\" --from-key`"
    )]
    OfAnother(String),
    #[error(
        "the database is at revision {source_revision} and etcd at {target}: raising it takes about {minutes} minutes of writes. \
         With --new-revisions etcd keeps its own, and clients that know older ones get 410 and list again"
    )]
    TooFar {
        source_revision: Revision,
        target: Revision,
        minutes: u64,
    },
    #[error("another process has taken etcd over meanwhile")]
    ClaimLost,
    #[error("after the copy, {key} is not what it was: {what}")]
    Differs { key: String, what: &'static str },
}

impl From<CallError> for MigrateError {
    fn from(error: CallError) -> Self {
        Self::Call(error.to_string())
    }
}

/// The first of many, and how many there are.
#[derive(Debug, Default)]
pub struct Named {
    first: Vec<String>,
    count: usize,
}

impl Named {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(name());
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add_damaged(&mut self, value: &DamagedValue) {
        self.add(|| format!("{} ({})", value.key, value.reason));
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

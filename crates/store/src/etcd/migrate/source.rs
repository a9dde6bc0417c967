//! What is in a database file that is to be moved: checked as a whole first, then read in batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::{Digest, Digests, MigrateError, Named};
use crate::etcd::write::VALUE_BYTES_MAX;
use crate::record::Revision;
use crate::sqlite::{Offline, StoredRow};

/// Keys of one transaction: etcd takes 128 operations.
const BATCH_KEYS: usize = 100;
/// Bytes of one transaction: etcd takes 1.5 MiB, of which keys are a part.
const BATCH_BYTES: usize = 1 << 20;
/// Batches that are read ahead.
const BATCHES_AHEAD: usize = 4;

pub(super) struct Source {
    path: PathBuf,
    pub(super) revision: Revision,
    pub(super) digests: Digests,
}

pub(super) fn digest(value: &[u8]) -> Digest {
    Sha256::digest(value).into()
}

impl Source {
    /// Reads all of a file, and refuses one with values that etcd cannot have or that cannot be read.
    pub(super) async fn check(path: &Path) -> Result<Self, MigrateError> {
        let path = path.to_owned();
        in_thread(move || check(path)).await
    }

    /// Starts reading, in the order of revisions.
    pub(super) fn batches(&self) -> Batches {
        let (send, receive) = mpsc::channel(BATCHES_AHEAD);
        let path = self.path.clone();
        let reading = tokio::task::spawn_blocking(move || read(&path, &send));
        Batches { receive, reading }
    }
}

/// Runs what blocks.
pub(super) async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(MigrateError::Call(
                "the migration was interrupted".to_owned(),
            )),
        },
    }
}

fn check(path: PathBuf) -> Result<Source, MigrateError> {
    let file = Offline::open_checked(&path)?;
    let (mut damaged, mut large) = (Named::default(), Named::default());
    for value in file.damaged()? {
        damaged.add_damaged(&value);
    }
    let mut digests = Digests::new();
    let mut greatest = 0;
    file.for_each_row(|row| {
        match row {
            Err(value) => damaged.add_damaged(&value),
            Ok(row) => {
                greatest = row.modified.max(greatest);
                if row.value.len() > VALUE_BYTES_MAX {
                    large.add(|| format!("{} ({} bytes)", row.key, row.value.len()));
                }
                let key = Arc::clone(&row.key);
                if digests.insert(row.key, digest(&row.value)).is_some() {
                    damaged.add(|| format!("{key} (it is stored twice)"));
                }
            }
        }
        true
    })?;
    if !damaged.is_empty() {
        return Err(MigrateError::Damaged(damaged));
    }
    if !large.is_empty() {
        let max = VALUE_BYTES_MAX;
        return Err(MigrateError::TooLarge { names: large, max });
    }
    let revision = file.revision()?.max(greatest);
    Ok(Source {
        path,
        revision,
        digests,
    })
}

type Batch = Vec<StoredRow>;

pub(super) struct Batches {
    receive: mpsc::Receiver<Batch>,
    reading: tokio::task::JoinHandle<Result<(), MigrateError>>,
}

impl Batches {
    pub(super) async fn next(&mut self) -> Result<Option<Batch>, MigrateError> {
        if let Some(batch) = self.receive.recv().await {
            return Ok(Some(batch));
        }
        match (&mut self.reading).await {
            Ok(outcome) => outcome.map(|()| None),
            Err(_) => Err(MigrateError::Call("reading was interrupted".to_owned())),
        }
    }
}

fn read(path: &Path, send: &mpsc::Sender<Batch>) -> Result<(), MigrateError> {
    let file = Offline::open_checked(path)?;
    let (mut batch, mut bytes) = (Batch::new(), 0);
    let mut damaged = Named::default();
    file.for_each_row(|row| {
        let row = match row {
            Ok(row) => row,
            Err(value) => {
                damaged.add_damaged(&value);
                return false;
            }
        };
        let size = row.value.len() + 2 * row.key.len();
        if batch.len() >= BATCH_KEYS || (bytes + size > BATCH_BYTES && !batch.is_empty()) {
            bytes = 0;
            if send.blocking_send(std::mem::take(&mut batch)).is_err() {
                return false;
            }
        }
        bytes += size;
        batch.push(row);
        true
    })?;
    if !damaged.is_empty() {
        return Err(MigrateError::Damaged(damaged));
    }
    // Nobody receives any more only if the copy failed.
    drop(send.blocking_send(batch));
    Ok(())
}

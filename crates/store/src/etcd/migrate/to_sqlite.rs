//! From etcd to a new database file.
//!
//! The rows of a file are identified by the revision of their creation, which several keys of etcd can share, so that all rows get
//! new ones: from 1 for their creation, and beyond etcd's revision for their last change, both in etcd's order.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::session::Session;
use super::source::{digest, in_thread};
use super::{Digests, MigrateError, Moved, Named, Progress};
use crate::etcd::proto::unsigned;
use crate::record::Revision;
use crate::sqlite::{NewDatabase, Offline, StoredRow};

/// What a value begins with that another API server has stored as protobuf.
const PROTOBUF: &[u8] = b"k8s\0";

/// The revisions of each key's row.
type Numbers = HashMap<Arc<str>, (Revision, Revision)>;

/// Copies all objects of etcd into a file that does not exist, and compares them.
pub async fn to_sqlite(
    session: &Session,
    file: &Path,
    progress: &Progress,
) -> Result<Moved, MigrateError> {
    let revision = unsigned(session.newest().await?.revision);
    progress("reading the keys of etcd");
    let (numbers, last) = number(session, revision).await?;
    if numbers.is_empty() {
        return Err(MigrateError::Empty);
    }
    progress(&format!("copying {} objects", numbers.len()));
    let digests = copy(session, revision, (numbers, last), file).await?;
    let objects = digests.len();
    progress("comparing all objects");
    let file = file.to_owned();
    in_thread(move || compare(&file, digests)).await?;
    Ok(Moved {
        objects,
        revisions: (revision, last),
    })
}

/// Numbers all keys; returns the last revision, too.
async fn number(
    session: &Session,
    revision: Revision,
) -> Result<(Numbers, Revision), MigrateError> {
    let mut keys: Vec<(Revision, Revision, Arc<str>)> = Vec::new();
    session
        .each_page(revision, true, async |objects| {
            let numbered = objects.into_iter().map(|(key, kv)| {
                let (created, modified) = (unsigned(kv.create_revision), unsigned(kv.mod_revision));
                (created, modified, key)
            });
            keys.extend(numbered);
            Ok(())
        })
        .await?;
    let count = keys.len() as u64;
    keys.sort_unstable_by_key(|(created, _, key)| (*created, Arc::clone(key)));
    let mut numbers = Numbers::with_capacity(keys.len());
    for (created, (.., key)) in (1..).zip(&keys) {
        numbers.insert(Arc::clone(key), (created, 0));
    }
    keys.sort_unstable_by_key(|(_, modified, key)| (*modified, Arc::clone(key)));
    let base = revision.max(count);
    for (modified, (.., key)) in (base + 1..).zip(&keys) {
        if let Some((_, number)) = numbers.get_mut(key) {
            *number = modified;
        }
    }
    Ok((numbers, base + count))
}

async fn copy(
    session: &Session,
    revision: Revision,
    (numbers, last): (Numbers, Revision),
    file: &Path,
) -> Result<Digests, MigrateError> {
    let path = file.to_owned();
    let mut database = Some(in_thread(move || Ok(NewDatabase::create(&path)?)).await?);
    let mut digests = Digests::with_capacity(numbers.len());
    let mut protobuf = Named::default();
    session
        .each_page(revision, false, async |objects| {
            let mut rows = Vec::with_capacity(objects.len());
            for (key, kv) in objects {
                let Some((created, modified)) = numbers.get(&key).copied() else {
                    let what = "it was not there before";
                    let key = key.to_string();
                    return Err(MigrateError::Differs { key, what });
                };
                if kv.value.starts_with(PROTOBUF) {
                    protobuf.add(|| key.to_string());
                }
                digests.insert(Arc::clone(&key), digest(&kv.value));
                rows.push(StoredRow {
                    key,
                    created,
                    modified,
                    value: Bytes::from(kv.value),
                });
            }
            let path = file.to_owned();
            if let Some(filled) = database.take() {
                database = Some(in_thread(move || insert(filled, &rows, path)).await?);
            }
            Ok(())
        })
        .await?;
    if !protobuf.is_empty() {
        return Err(MigrateError::Protobuf(protobuf));
    }
    let path = file.to_owned();
    in_thread(move || match database {
        Some(database) => database.finish(last).map_err(write_failed(path)),
        None => Ok(()),
    })
    .await?;
    Ok(digests)
}

fn insert(
    mut database: NewDatabase,
    rows: &[StoredRow],
    path: PathBuf,
) -> Result<NewDatabase, MigrateError> {
    database.insert(rows).map_err(write_failed(path))?;
    Ok(database)
}

fn write_failed(path: PathBuf) -> impl FnOnce(rusqlite::Error) -> MigrateError {
    |source| MigrateError::Write { path, source }
}

/// Reads the file back.
fn compare(path: &Path, mut expected: Digests) -> Result<(), MigrateError> {
    let file = Offline::open_checked(path)?;
    let mut wrong = None;
    file.for_each_row(|row| {
        let found = match row {
            Err(value) => Some((value.key, "it cannot be read")),
            Ok(row) => match expected.remove(&row.key) {
                Some(known) if known == digest(&row.value) => None,
                Some(_) => Some((row.key.to_string(), "it has another value")),
                None => Some((row.key.to_string(), "it was not there before")),
            },
        };
        wrong = found;
        wrong.is_none()
    })?;
    let missing = |key: &Arc<str>| (key.to_string(), "it is missing");
    match wrong.or_else(|| expected.keys().next().map(missing)) {
        Some((key, what)) => Err(MigrateError::Differs { key, what }),
        None => Ok(()),
    }
}

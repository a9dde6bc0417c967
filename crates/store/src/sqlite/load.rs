//! Loads all rows at startup: one thread reads, others verify and parse, which is the more expensive part.

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rusqlite::Connection;

use super::checksum::checksum;
use super::damaged::SET_ASIDE_MAX;
use super::database::Database;
use crate::DamagedValue;
use crate::error::{Damage, DecodeError, OpenError};
use crate::record::{Record, Revision};
use crate::seal::{Seal, SealError};

/// Rows per message to a parser: enough to make the channel cheap, few enough to keep memory low (1 MB at
/// 3 KiB a row).
const CHUNK_ROWS: usize = 256;

/// Capacity of the channel: enough that reader and parsers do not wait for each other long.
const CHUNKS_IN_FLIGHT: usize = 4;

/// More parsers than this would wait for the reader.
const PARSERS_MAX: usize = 3;

/// A row as stored.
pub(super) struct Row {
    pub(super) key: Arc<str>,
    pub(super) created: i64,
    pub(super) modified: i64,
    pub(super) value: Bytes,
    /// Absent from rows that Kennel 0.1.0 wrote.
    pub(super) checksum: Option<i64>,
    /// A column has a value of another type than its own.
    is_malformed: bool,
}

pub(super) struct Loaded<H> {
    /// In key order.
    pub(super) records: Vec<Arc<Record<H>>>,
    /// Those that the current seal would store in another form.
    pub(super) stale: Vec<Arc<Record<H>>>,
    /// Those that cannot be read.
    pub(super) damaged: Vec<DamagedValue>,
}

struct MissingKey {
    key: Arc<str>,
    reason: SealError,
}

/// Why one value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("a column has an impossible value")]
    Malformed,
    #[error("its checksum does not match")]
    Checksum,
    #[error("{0}")]
    Sealed(SealError),
    #[error("it cannot be parsed: {0}")]
    Undecodable(DecodeError),
}

/// Loads and checks all records.
pub(super) fn load<H: Send + Sync>(
    database: &Database,
    decode: &(impl Fn(&str, &Bytes) -> Result<H, DecodeError> + Sync),
) -> Result<Loaded<H>, OpenError> {
    let parsers = std::thread::available_parallelism().map_or(1, |n| n.get().clamp(1, PARSERS_MAX));
    let (send, receive) = sync_channel(CHUNKS_IN_FLIGHT);
    let receive = Mutex::new(receive);
    let seal = database.seal();
    let (read, parsed) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parsers)
            .map(|_| scope.spawn(|| parse(&receive, seal, decode)))
            .collect();
        let read = read_chunks(database, |chunk| send.send(chunk).is_ok());
        drop(send);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(parsed) => parsed,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let parsed: Vec<_> = threads.into_iter().map(join).collect();
        (read, parsed)
    });
    let path = database.path().to_owned();
    let mut loaded = merge(parsed).map_err(|MissingKey { key, reason }| OpenError::Sealed {
        path: path.clone(),
        key: key.to_string(),
        reason,
    })?;
    // Each parser's share is sorted already, so this sort only merges them.
    loaded.records.sort_by(by_key);
    read.map_err(|source| OpenError::Database {
        path: path.clone(),
        source,
    })?;
    let damaged = |reason| OpenError::Damaged {
        path: path.clone(),
        reason,
    };
    check_count(&loaded.damaged).map_err(damaged)?;
    check(&loaded.records, database.revision()).map_err(damaged)?;
    Ok(loaded)
}

/// Merges the parsers' shares.
fn merge<H>(shares: Vec<Result<Loaded<H>, MissingKey>>) -> Result<Loaded<H>, MissingKey> {
    let mut all = Loaded::default();
    for share in shares {
        let share = share?;
        all.records.extend(share.records);
        all.stale.extend(share.stale);
        all.damaged.extend(share.damaged);
    }
    Ok(all)
}

impl<H> Default for Loaded<H> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            stale: Vec::new(),
            damaged: Vec::new(),
        }
    }
}

fn parse<H>(
    chunks: &Mutex<Receiver<Vec<Row>>>,
    seal: Option<&dyn Seal>,
    decode: &impl Fn(&str, &Bytes) -> Result<H, DecodeError>,
) -> Result<Loaded<H>, MissingKey> {
    let mut loaded = Loaded::default();
    let mut failed = None;
    loop {
        let received = chunks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(chunk) = received else {
            loaded.records.sort_unstable_by(by_key);
            return failed.map_or(Ok(loaded), Err);
        };
        // Receive even after a failure, or the reader would block forever.
        if failed.is_none() {
            let parsed = chunk
                .into_iter()
                .try_for_each(|row| loaded.add(row, seal, decode));
            failed = parsed.err();
        }
    }
}

impl<H> Loaded<H> {
    /// Fails only if a key is missing.
    fn add(
        &mut self,
        row: Row,
        seal: Option<&dyn Seal>,
        decode: &impl Fn(&str, &Bytes) -> Result<H, DecodeError>,
    ) -> Result<(), MissingKey> {
        match row.read(seal, decode) {
            Ok((record, is_current)) => {
                let record = Arc::new(record);
                if !is_current {
                    self.stale.push(Arc::clone(&record));
                }
                self.records.push(record);
            }
            Err(Unreadable::Sealed(reason @ SealError::MissingKey(_))) => {
                let key = row.key;
                return Err(MissingKey { key, reason });
            }
            Err(reason) => self.damaged.push(row.damaged(&reason)),
        }
        Ok(())
    }
}

impl Row {
    pub(super) fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let key = row.get_ref(2)?;
        let text = key.as_str();
        let lossy = || String::from_utf8_lossy(key.as_bytes().unwrap_or_default()).into();
        let modified = row.get_ref(1)?.as_i64();
        let value = row.get_ref(3)?.as_blob();
        let sum = row.get_ref(4)?.as_i64_or_null();
        Ok(Self {
            is_malformed: text.is_err() || modified.is_err() || value.is_err() || sum.is_err(),
            key: text.map_or_else(|_| lossy(), Into::into),
            created: row.get(0)?,
            modified: modified.unwrap_or_default(),
            value: Bytes::copy_from_slice(value.unwrap_or_default()),
            checksum: sum.unwrap_or_default(),
        })
    }

    /// The record, and whether it is stored in the form of the current seal.
    pub(super) fn read<H>(
        &self,
        seal: Option<&dyn Seal>,
        decode: &impl Fn(&str, &Bytes) -> Result<H, DecodeError>,
    ) -> Result<(Record<H>, bool), Unreadable> {
        let (created, modified) = self.verify()?;
        let (value, is_current) = match seal {
            None => (self.value.clone(), true),
            Some(seal) => {
                let opened = seal.open(&self.key, self.value.clone());
                let opened = opened.map_err(Unreadable::Sealed)?;
                (opened.value, opened.is_current)
            }
        };
        let head = decode(&self.key, &value).map_err(Unreadable::Undecodable)?;
        let record = Record {
            key: Arc::clone(&self.key),
            value,
            created,
            modified,
            head,
        };
        Ok((record, is_current))
    }

    /// Verifies what can be verified of the bytes as stored; returns the revisions.
    pub(super) fn verify(&self) -> Result<(Revision, Revision), Unreadable> {
        let revisions = (
            Revision::try_from(self.created),
            Revision::try_from(self.modified),
        );
        let (false, (Ok(created), Ok(modified))) = (self.is_malformed, revisions) else {
            return Err(Unreadable::Malformed);
        };
        let computed = || checksum(self.created, self.modified, &self.key, &self.value);
        if self.checksum.is_some_and(|stored| stored != computed()) {
            return Err(Unreadable::Checksum);
        }
        Ok((created, modified))
    }

    pub(super) fn damaged(&self, reason: &Unreadable) -> DamagedValue {
        DamagedValue {
            key: self.key.to_string(),
            created: self.created,
            reason: reason.to_string(),
        }
    }
}

fn by_key<H>(a: &Arc<Record<H>>, b: &Arc<Record<H>>) -> Ordering {
    a.key.cmp(&b.key)
}

fn read_chunks(
    database: &Database,
    mut send: impl FnMut(Vec<Row>) -> bool,
) -> rusqlite::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK_ROWS);
    read_rows(database.connection(), "checksum", |row| {
        chunk.push(row);
        chunk.len() < CHUNK_ROWS
            || send(std::mem::replace(
                &mut chunk,
                Vec::with_capacity(CHUNK_ROWS),
            ))
    })?;
    send(chunk);
    Ok(())
}

/// Reads all rows in the order of their creation, until `take` returns false. `checksum` is the column, or `NULL` in a
/// file whose schema has none.
pub(super) fn read_rows(
    connection: &Connection,
    checksum: &str,
    mut take: impl FnMut(Row) -> bool,
) -> rusqlite::Result<()> {
    let sql = format!("SELECT created, modified, key, value, {checksum} FROM kv ORDER BY created");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if !take(Row::of(row)?) {
            break;
        }
    }
    Ok(())
}

fn check_count(damaged: &[DamagedValue]) -> Result<(), Damage> {
    match damaged {
        [first, ..] if damaged.len() > SET_ASIDE_MAX => Err(Damage::TooMany {
            count: damaged.len(),
            max: SET_ASIDE_MAX,
            first: first.key.clone(),
        }),
        _ => Ok(()),
    }
}

/// Checks what the writer relies on: unique keys, and no revision that was not assigned.
fn check<H>(sorted: &[Arc<Record<H>>], revision: Revision) -> Result<(), Damage> {
    if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a.key == b.key) {
        return Err(Damage::DuplicateKey(twice.key.to_string()));
    }
    let impossible = |r: &&Arc<Record<H>>| r.modified > revision || r.created > r.modified;
    match sorted.iter().find(impossible) {
        Some(record) => Err(Damage::ImpossibleRevision(record.key.to_string())),
        None => Ok(()),
    }
}

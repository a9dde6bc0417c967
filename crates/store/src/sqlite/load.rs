//! Loads all rows at startup: one thread reads, others parse heads, which is the more expensive part.

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::database::{Database, unsigned};
use crate::error::{Damage, OpenError};
use crate::record::{Record, Revision};
use crate::seal::{Seal, SealError};

/// Rows per message to a parser: enough to make the channel cheap, few enough to keep memory low (1 MB at
/// 3 KiB a row).
const CHUNK_ROWS: usize = 256;

/// Capacity of the channel: enough that reader and parsers do not wait for each other long.
const CHUNKS_IN_FLIGHT: usize = 4;

/// More parsers than this would wait for the reader.
const PARSERS_MAX: usize = 3;

struct Row {
    key: Arc<str>,
    created: Revision,
    modified: Revision,
    value: Bytes,
}

pub(super) struct Loaded<H> {
    /// In key order.
    pub(super) records: Vec<Arc<Record<H>>>,
    /// Those that the current seal would store in another form.
    pub(super) stale: Vec<Arc<Record<H>>>,
}

struct OpenValueError {
    key: Arc<str>,
    reason: SealError,
}

/// Loads and checks all records.
pub(super) fn load<H: Send + Sync>(
    database: &Database,
    decode: &(impl Fn(&str, &Bytes) -> H + Sync),
) -> Result<Loaded<H>, OpenError> {
    let parsers = std::thread::available_parallelism().map_or(1, |n| n.get().clamp(1, PARSERS_MAX));
    let (send, receive) = sync_channel(CHUNKS_IN_FLIGHT);
    let receive = Mutex::new(receive);
    let seal = database.seal();
    let (read, parsed) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parsers)
            .map(|_| scope.spawn(|| parse(&receive, seal, decode)))
            .collect();
        let read = read_rows(database, |chunk| send.send(chunk).is_ok());
        drop(send);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(parsed) => parsed,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let parsed: Vec<_> = threads.into_iter().map(join).collect();
        (read, parsed)
    });
    let path = database.path().to_owned();
    let mut loaded = merge(parsed).map_err(|OpenValueError { key, reason }| OpenError::Sealed {
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
    check(&loaded.records, database.revision()).map_err(damaged)?;
    Ok(loaded)
}

/// Merges the parsers' shares.
fn merge<H>(shares: Vec<Result<Loaded<H>, OpenValueError>>) -> Result<Loaded<H>, OpenValueError> {
    let mut all = Loaded::default();
    for share in shares {
        let share = share?;
        all.records.extend(share.records);
        all.stale.extend(share.stale);
    }
    Ok(all)
}

impl<H> Default for Loaded<H> {
    fn default() -> Self {
        let (records, stale) = (Vec::new(), Vec::new());
        Self { records, stale }
    }
}

fn parse<H>(
    chunks: &Mutex<Receiver<Vec<Row>>>,
    seal: Option<&dyn Seal>,
    decode: &impl Fn(&str, &Bytes) -> H,
) -> Result<Loaded<H>, OpenValueError> {
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
                .try_for_each(|row| parse_row(&mut loaded, row, seal, decode));
            failed = parsed.err();
        }
    }
}

fn parse_row<H>(
    loaded: &mut Loaded<H>,
    row: Row,
    seal: Option<&dyn Seal>,
    decode: &impl Fn(&str, &Bytes) -> H,
) -> Result<(), OpenValueError> {
    let Row {
        key,
        created,
        modified,
        value,
    } = row;
    let (value, is_current) = match seal.map(|seal| seal.open(&key, value.clone())) {
        None => (value, true),
        Some(Ok(opened)) => (opened.value, opened.is_current),
        Some(Err(reason)) => return Err(OpenValueError { key, reason }),
    };
    let head = decode(&key, &value);
    let record = Arc::new(Record {
        key,
        value,
        created,
        modified,
        head,
    });
    if !is_current {
        loaded.stale.push(Arc::clone(&record));
    }
    loaded.records.push(record);
    Ok(())
}

fn by_key<H>(a: &Arc<Record<H>>, b: &Arc<Record<H>>) -> Ordering {
    a.key.cmp(&b.key)
}

fn read_rows(database: &Database, mut send: impl FnMut(Vec<Row>) -> bool) -> rusqlite::Result<()> {
    let sql = "SELECT created, modified, key, value FROM kv ORDER BY created";
    let mut statement = database.connection().prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut chunk = Vec::with_capacity(CHUNK_ROWS);
    while let Some(row) = rows.next()? {
        let key: &str = row.get_ref(2)?.as_str()?;
        let value: &[u8] = row.get_ref(3)?.as_blob()?;
        chunk.push(Row {
            key: key.into(),
            created: unsigned(row, 0)?,
            modified: unsigned(row, 1)?,
            value: Bytes::copy_from_slice(value),
        });
        if chunk.len() == CHUNK_ROWS
            && !send(std::mem::replace(
                &mut chunk,
                Vec::with_capacity(CHUNK_ROWS),
            ))
        {
            return Ok(());
        }
    }
    send(chunk);
    Ok(())
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

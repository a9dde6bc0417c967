//! Reads all rows at startup: this thread reads, others parse heads, since parsing is the dearer part.

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::database::{Database, unsigned};
use crate::error::OpenError;
use crate::record::{Record, Revision};
use crate::seal::Seal;

/// Rows handed to a parser at once: enough to make the handing over cheap, few enough that little
/// is in flight (1 MB at 3 KiB a row).
const CHUNK_ROWS: usize = 256;

/// Chunks waiting for a parser: enough that reader and parsers never wait for each other long.
const CHUNKS_IN_FLIGHT: usize = 4;

/// More parsers than this only wait for the reader.
const PARSERS_MAX: usize = 3;

struct Row {
    key: Arc<str>,
    created: Revision,
    modified: Revision,
    value: Bytes,
}

/// What a file holds.
pub(super) struct Loaded<H> {
    /// All records, in key order.
    pub(super) records: Vec<Arc<Record<H>>>,
    /// Those of them that are not stored as the seal would store them.
    pub(super) stale: Vec<Arc<Record<H>>>,
}

/// A value that cannot be opened, and why.
struct Unopened {
    key: Arc<str>,
    reason: String,
}

/// All records in key order, checked for contradictions.
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
    let mut loaded = gather(parsed).map_err(|Unopened { key, reason }| OpenError::Sealed {
        path: path.clone(),
        key: key.to_string(),
        reason,
    })?;
    // Each parser's share is in order already, which this sort notices: it only has to merge them.
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

/// Puts the parsers' shares together, or says which value was not to be had.
fn gather<H>(shares: Vec<Result<Loaded<H>, Unopened>>) -> Result<Loaded<H>, Unopened> {
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
) -> Result<Loaded<H>, Unopened> {
    let mut loaded = Loaded::default();
    let mut failed = None;
    loop {
        let received = chunks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(chunk) = received else {
            loaded.records.sort_unstable_by(by_key);
            return failed.map_or(Ok(loaded), Err);
        };
        // Taken even after a failure: the reader must not wait for ever.
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
) -> Result<(), Unopened> {
    let Row {
        key,
        created,
        modified,
        value,
    } = row;
    let (value, is_current) = match seal.map(|seal| seal.open(&key, value.clone())) {
        None => (value, true),
        Some(Ok(opened)) => (opened.value, opened.is_current),
        Some(Err(reason)) => return Err(Unopened { key, reason }),
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

/// What the writer relies on: each key once, each revision already given out.
fn check<H>(sorted: &[Arc<Record<H>>], revision: Revision) -> Result<(), String> {
    if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a.key == b.key) {
        return Err(format!("key {} is stored twice", twice.key));
    }
    let impossible = |r: &&Arc<Record<H>>| r.modified > revision || r.created > r.modified;
    match sorted.iter().find(impossible) {
        Some(record) => Err(format!("key {} has an impossible revision", record.key)),
        None => Ok(()),
    }
}

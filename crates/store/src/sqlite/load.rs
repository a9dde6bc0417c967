//! Reads all rows at startup: this thread reads, others parse heads, since parsing is the dearer part.

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::database::{Database, unsigned};
use crate::error::OpenError;
use crate::record::{Record, Revision};

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

/// All records in key order, checked for contradictions.
pub(super) fn load<H: Send + Sync>(
    database: &mut Database,
    decode: &(impl Fn(&str, &Bytes) -> H + Sync),
) -> Result<Vec<Arc<Record<H>>>, OpenError> {
    let parsers = std::thread::available_parallelism().map_or(1, |n| n.get().clamp(1, PARSERS_MAX));
    let (send, receive) = sync_channel(CHUNKS_IN_FLIGHT);
    let receive = Mutex::new(receive);
    let (read, mut records) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parsers)
            .map(|_| scope.spawn(|| parse(&receive, decode)))
            .collect();
        let read = read_rows(database, |chunk| send.send(chunk).is_ok());
        drop(send);
        let mut records = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(parsed) => records.extend(parsed),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        (read, records)
    });
    // Each parser's share is in order already, which this sort notices: it only has to merge them.
    records.sort_by(by_key);
    let path = database.path().to_owned();
    read.map_err(|source| OpenError::Database {
        path: path.clone(),
        source,
    })?;
    let damaged = |reason| OpenError::Damaged {
        path: path.clone(),
        reason,
    };
    check(&records, database.revision()).map_err(damaged)?;
    Ok(records)
}

fn parse<H>(
    chunks: &Mutex<Receiver<Vec<Row>>>,
    decode: &impl Fn(&str, &Bytes) -> H,
) -> Vec<Arc<Record<H>>> {
    let mut records = Vec::new();
    loop {
        let received = chunks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(chunk) = received else {
            records.sort_unstable_by(by_key);
            return records;
        };
        records.extend(chunk.into_iter().map(
            |Row {
                 key,
                 created,
                 modified,
                 value,
             }| {
                let head = decode(&key, &value);
                Arc::new(Record {
                    key,
                    value,
                    created,
                    modified,
                    head,
                })
            },
        ));
    }
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

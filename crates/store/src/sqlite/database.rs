//! The writer's and the loader's access to the SQLite file: the few statements they need, the block
//! of reserved revisions, and the log's length. It decides nothing about writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::schema::{self, PAGE_BYTES};
use crate::error::OpenError;
use crate::record::{Event, Record, Revision};

/// The database file in the data directory.
pub const DATABASE_FILE: &str = "kennel.db";

/// Revisions are reserved this many at a time. After a crash the counter goes on behind the reserved
/// block, so no revision that was shown, but never reached the disk, is given out twice. A block is
/// over two minutes of 500 lease renewals a second, so that reserving costs next to nothing.
const REVISION_BLOCK: Revision = 1 << 16;

/// A new block is reserved, along with some other write, when less than this is left: lazy writes
/// then go on for a while even when the disk takes nothing.
const REVISION_LOW: Revision = REVISION_BLOCK / 2;

/// The log is copied into the file after about this many pages (16 MB): rarely enough that a page
/// rewritten often is copied once, often enough that copying takes tens of milliseconds.
const CHECKPOINT_PAGES: usize = 4096;

/// The open database.
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    /// The revision the file stands for: what it was closed with, or the end of the reserved block.
    revision: Revision,
    /// Revisions up to here may be given out.
    reserved: Revision,
    /// About how many pages the log holds.
    log_pages: usize,
}

impl Database {
    /// Opens the database in `dir`, creating it when there is none.
    pub(super) fn open(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(DATABASE_FILE);
        let connection = schema::open(&path)?;
        let reserved = connection
            .query_row("SELECT reserved FROM revision", [], |row| unsigned(row, 0))
            .map_err(|source| OpenError::Database {
                path: path.clone(),
                source,
            })?;
        let log_pages = log_pages(&path);
        Ok(Self {
            connection,
            path,
            revision: reserved,
            reserved,
            log_pages,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The revision to start from: no greater one was ever shown.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Commits a batch of events; when this returns `Ok` it is on disk.
    pub(super) fn commit<H>(&mut self, events: &[Arc<Event<H>>]) -> rusqlite::Result<()> {
        let last = events.last().map_or(0, |event| event.revision);
        let reserve = self.wanted_block(last);
        let transaction = self.begin()?;
        for event in events {
            write_event(&transaction, event)?;
        }
        if let Some(reserved) = reserve {
            write_reserved(&transaction, reserved)?;
        }
        transaction.commit()?;
        self.reserved = reserve.unwrap_or(self.reserved);
        self.log_pages += events
            .iter()
            .map(|event| pages(event.after.as_deref()))
            .sum::<usize>();
        Ok(())
    }

    /// Writes records that memory already shows.
    pub(super) fn commit_lazy<'a, H: 'a>(
        &mut self,
        records: impl Iterator<Item = &'a Arc<Record<H>>>,
    ) -> rusqlite::Result<()> {
        let transaction = self.begin()?;
        let mut log_pages = 0;
        for record in records {
            update(&transaction, record)?;
            log_pages += pages(Some(record));
        }
        transaction.commit()?;
        self.log_pages += log_pages;
        Ok(())
    }

    /// Makes sure that revisions up to `last` may be given out; returns whether that took a commit.
    pub(super) fn reserve(&mut self, last: Revision) -> rusqlite::Result<bool> {
        if last <= self.reserved {
            return Ok(false);
        }
        let reserved = last + REVISION_BLOCK;
        let transaction = self.begin()?;
        write_reserved(&transaction, reserved)?;
        transaction.commit()?;
        self.reserved = reserved;
        Ok(true)
    }

    /// The reservation a batch ending at `last` should carry along, if any.
    fn wanted_block(&self, last: Revision) -> Option<Revision> {
        (last + REVISION_LOW > self.reserved).then_some(last + REVISION_BLOCK)
    }

    fn begin(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
    }

    /// Whether the log has grown long enough to be copied into the file.
    pub(super) fn wants_checkpoint(&self) -> bool {
        self.log_pages >= CHECKPOINT_PAGES
    }

    /// Copies the log into the file; the next commit then starts the log over.
    pub(super) fn checkpoint(&mut self) -> rusqlite::Result<()> {
        self.log_pages = 0;
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    }

    /// Closes the file, noting that no revision after `last` was given out.
    pub(super) fn close(mut self, last: Revision) -> rusqlite::Result<()> {
        let transaction = self.begin()?;
        write_reserved(&transaction, last)?;
        transaction.commit()?;
        // Closing the last connection copies the whole log and removes it.
        self.connection.close().map_err(|(_, error)| error)
    }
}

/// How long a log was left behind: a server that keeps crashing early must still get to copy it.
fn log_pages(path: &Path) -> usize {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let bytes = std::fs::metadata(log).map_or(0, |log| log.len());
    usize::try_from(bytes).map_or(usize::MAX, |bytes| bytes / PAGE_BYTES)
}

fn write_event<H>(transaction: &Transaction<'_>, event: &Event<H>) -> rusqlite::Result<()> {
    match (&event.before, &event.after) {
        (None, Some(record)) => {
            let sql = "INSERT INTO kv (created, modified, key, value) VALUES (?1, ?2, ?3, ?4)";
            let (created, modified) = (signed(record.created), signed(record.modified));
            transaction
                .prepare_cached(sql)?
                .execute(params![created, modified, &*record.key, &*record.value])
                .map(drop)
        }
        (_, Some(record)) => update(transaction, record),
        (Some(record), None) => {
            let mut statement = transaction.prepare_cached("DELETE FROM kv WHERE created = ?1")?;
            one_row(statement.execute([signed(record.created)])?)
        }
        (None, None) => Ok(()),
    }
}

fn update<H>(transaction: &Transaction<'_>, record: &Record<H>) -> rusqlite::Result<()> {
    let sql = "UPDATE kv SET modified = ?2, value = ?3 WHERE created = ?1";
    let (created, modified) = (signed(record.created), signed(record.modified));
    let mut statement = transaction.prepare_cached(sql)?;
    one_row(statement.execute(params![created, modified, &*record.value])?)
}

fn write_reserved(transaction: &Transaction<'_>, reserved: Revision) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached("UPDATE revision SET reserved = ?1")?;
    one_row(statement.execute([signed(reserved)])?)
}

/// The file must hold what memory shows. If a row is missing, somebody else wrote to the file.
fn one_row(changed: usize) -> rusqlite::Result<()> {
    if changed == 1 {
        Ok(())
    } else {
        Err(rusqlite::Error::StatementChangedRows(changed))
    }
}

/// How many log pages a write takes: the row's own and those that lead to it.
fn pages<H>(record: Option<&Record<H>>) -> usize {
    1 + record.map_or(1, |record| record.value.len().div_ceil(PAGE_BYTES))
}

// SQLite's integers are signed. A counter from zero does not reach the sign bit in any lifetime.
fn signed(revision: Revision) -> i64 {
    i64::try_from(revision).expect("revisions stay below 2^63")
}

/// Reads a revision.
pub(super) fn unsigned(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Revision> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, number))
}

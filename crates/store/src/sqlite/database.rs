//! The SQLite file: its statements, the block of reserved revisions, and the length of the write-ahead log.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::checksum::{checksum, checksum_of_revision};
use super::log_check;
use super::options::Options;
use super::schema::{self, PAGE_BYTES};
use crate::error::OpenError;
use crate::record::{Event, Record, Revision};
use crate::seal::Seal;

/// The database file in the data directory.
pub const DATABASE_FILE: &str = "kennel.db";

/// Revisions are reserved this many at a time. After a crash the counter continues after the reserved
/// block, so that no revision that was visible, but never reached the disk, is assigned twice. A block lasts
/// over two minutes at 500 lease renewals a second, so that reserving costs next to nothing.
const REVISION_BLOCK: Revision = 1 << 16;

/// A new block is reserved, along with some other write, when less than this is left: lazy writes
/// can then continue for a while even when the disk fails.
const REVISION_LOW: Revision = REVISION_BLOCK / 2;

/// How far a damaged counter goes on beyond the greatest stored revision: more than can have been assigned since.
const REVISIONS_AHEAD: Revision = 1 << 32;

/// Leaves room for more, whatever a damaged row says.
const REVISION_MAX: Revision = 1 << 62;

pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    /// The revision that the file was closed with, or the end of the reserved block after a crash.
    revision: Revision,
    /// Revisions up to here may be assigned.
    reserved: Revision,
    /// Approximate length of the log.
    log_pages: usize,
    /// The length at which the log is copied into the file.
    checkpoint_pages: usize,
    seal: Option<Arc<dyn Seal>>,
    /// The name of the seal that the whole file was last written with.
    sealed_as: String,
}

impl Database {
    /// Opens the database in `options.dir`, creating it when there is none.
    pub(super) fn open(options: &Options) -> Result<Self, OpenError> {
        let path = options.dir.join(DATABASE_FILE);
        let connection = schema::open(&path)?;
        let failed = |source| OpenError::Database {
            path: path.clone(),
            source,
        };
        let reserved = read_reserved(&connection, &path).map_err(failed)?;
        let sealed_as = schema::sealed_as(&connection).map_err(failed)?;
        let log_pages = log_pages(&path);
        Ok(Self {
            connection,
            path,
            revision: reserved,
            reserved,
            log_pages,
            checkpoint_pages: options.checkpoint_pages,
            seal: options.seal.clone(),
            sealed_as,
        })
    }

    pub(super) fn seal(&self) -> Option<&dyn Seal> {
        self.seal.as_deref()
    }

    /// Whether the whole file was last written with the current seal.
    pub(super) fn has_current_seal(&self) -> bool {
        self.sealed_as == self.seal_name()
    }

    fn seal_name(&self) -> &str {
        self.seal().map_or("", Seal::name)
    }

    /// Records that the whole file is written with the current seal.
    pub(super) fn record_seal(&mut self) -> rusqlite::Result<()> {
        let name = self.seal_name().to_owned();
        schema::record_seal(&self.connection, &name)?;
        self.sealed_as = name;
        Ok(())
    }

    /// Removes everything but the current rows from the file and its log. Returns false if another process reads
    /// the log, which therefore stays.
    pub(super) fn scrub(&mut self) -> rusqlite::Result<bool> {
        // The state fits into memory, so no temporary file is written to disk.
        self.connection
            .execute_batch("PRAGMA temp_store = MEMORY; VACUUM; PRAGMA temp_store = DEFAULT;")?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        self.log_pages = log_pages(&self.path);
        Ok(busy == 0)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The revision to start from: no greater one was ever visible.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Commits a batch of events; when this returns `Ok` it is on disk.
    pub(super) fn commit<H>(&mut self, events: &[Arc<Event<H>>]) -> rusqlite::Result<()> {
        let last = events.last().map_or(0, |event| event.revision);
        let reserve = self.wanted_block(last);
        let seal = self.seal.as_deref();
        let transaction = begin(&mut self.connection)?;
        for event in events {
            write_event(&transaction, event, seal)?;
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

    /// Writes records that are already visible.
    pub(super) fn commit_lazy<'a, H: 'a>(
        &mut self,
        records: impl Iterator<Item = &'a Arc<Record<H>>>,
    ) -> rusqlite::Result<()> {
        let seal = self.seal.as_deref();
        let transaction = begin(&mut self.connection)?;
        let mut log_pages = 0;
        for record in records {
            update(&transaction, record, seal)?;
            log_pages += pages(Some(record));
        }
        transaction.commit()?;
        self.log_pages += log_pages;
        Ok(())
    }

    /// Ensures that revisions up to `last` may be assigned; returns whether that took a commit.
    pub(super) fn reserve(&mut self, last: Revision) -> rusqlite::Result<bool> {
        if last <= self.reserved {
            return Ok(false);
        }
        let reserved = last + REVISION_BLOCK;
        let transaction = begin(&mut self.connection)?;
        write_reserved(&transaction, reserved)?;
        transaction.commit()?;
        self.reserved = reserved;
        Ok(true)
    }

    /// A transaction that only reserves one more revision. SQLite would neither write nor sync one that changes nothing.
    pub(super) fn commit_nothing(&mut self) -> rusqlite::Result<()> {
        let reserved = self.reserved + 1;
        let transaction = begin(&mut self.connection)?;
        write_reserved(&transaction, reserved)?;
        transaction.commit()?;
        self.reserved = reserved;
        self.log_pages += 1;
        Ok(())
    }

    /// The reservation to write along with a batch that ends at `last`, if any.
    fn wanted_block(&self, last: Revision) -> Option<Revision> {
        (last + REVISION_LOW > self.reserved).then_some(last + REVISION_BLOCK)
    }

    /// Whether the log has grown long enough to be copied into the file.
    pub(super) fn wants_checkpoint(&self) -> bool {
        self.log_pages >= self.checkpoint_pages
    }

    /// Copies the log into the file, and makes a commit, with which the log starts over. Without that, a start that could not
    /// read the last commit of the old log would combine older pages of the log with newer ones of the file.
    pub(super) fn checkpoint(&mut self) -> rusqlite::Result<()> {
        self.log_pages = 0;
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        self.commit_nothing()
    }

    /// Whether a commit that failed may be found by a start, if the process ends before the next commit.
    pub(super) fn may_hold_failed_commit(&self) -> bool {
        log_check::holds_failed_commit(&self.path).unwrap_or(true)
    }

    /// Closes the file and records that no revision after `last` was assigned.
    pub(super) fn close(mut self, last: Revision) -> rusqlite::Result<()> {
        let transaction = begin(&mut self.connection)?;
        write_reserved(&transaction, last)?;
        transaction.commit()?;
        // Closing the last connection copies the whole log and removes it.
        self.connection.close().map_err(|(_, error)| error)
    }
}

/// The length of a log that a crash left behind: a server that crashes early each time must still get to
/// checkpoint it.
fn log_pages(path: &Path) -> usize {
    let bytes = std::fs::metadata(log_check::path_of(path)).map_or(0, |log| log.len());
    usize::try_from(bytes).map_or(usize::MAX, |bytes| bytes / PAGE_BYTES)
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// The bytes of a record's value in the file.
fn stored<'a, H>(record: &'a Record<H>, seal: Option<&dyn Seal>) -> Cow<'a, [u8]> {
    let sealed = seal.and_then(|seal| seal.seal(&record.key, &record.value));
    sealed.map_or(Cow::Borrowed(&record.value), Cow::Owned)
}

fn write_event<H>(
    transaction: &Transaction<'_>,
    event: &Event<H>,
    seal: Option<&dyn Seal>,
) -> rusqlite::Result<()> {
    match (&event.before, &event.after) {
        (None, Some(record)) => {
            let sql = "INSERT INTO kv (created, modified, key, value, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";
            let (created, modified) = (signed(record.created), signed(record.modified));
            let value = stored(record, seal);
            let sum = checksum(created, modified, &record.key, &value);
            transaction
                .prepare_cached(sql)?
                .execute(params![created, modified, &*record.key, value, sum])
                .map(drop)
        }
        (_, Some(record)) => update(transaction, record, seal),
        (Some(record), None) => {
            let mut statement = transaction.prepare_cached("DELETE FROM kv WHERE created = ?1")?;
            one_row(statement.execute([signed(record.created)])?)
        }
        (None, None) => Ok(()),
    }
}

fn update<H>(
    transaction: &Transaction<'_>,
    record: &Record<H>,
    seal: Option<&dyn Seal>,
) -> rusqlite::Result<()> {
    let sql = "UPDATE kv SET modified = ?2, value = ?3, checksum = ?4 WHERE created = ?1";
    let (created, modified) = (signed(record.created), signed(record.modified));
    let value = stored(record, seal);
    let sum = checksum(created, modified, &record.key, &value);
    let mut statement = transaction.prepare_cached(sql)?;
    one_row(statement.execute(params![created, modified, value, sum])?)
}

pub(super) fn write_reserved(
    transaction: &Transaction<'_>,
    reserved: Revision,
) -> rusqlite::Result<()> {
    let sql = "UPDATE revision SET reserved = ?1, checksum = ?2";
    let reserved = signed(reserved);
    let mut statement = transaction.prepare_cached(sql)?;
    one_row(statement.execute([reserved, checksum_of_revision(reserved)])?)
}

/// The end of the reserved block. If it is damaged, revisions go on far beyond all that are stored, as after a restore.
fn read_reserved(connection: &Connection, path: &Path) -> rusqlite::Result<Revision> {
    let sql = "SELECT reserved, checksum FROM revision";
    let read = connection.query_row(sql, [], |row| {
        let number = |at: usize| row.get_ref(at).map(|value| value.as_i64_or_null());
        Ok((number(0)?, number(1)?))
    })?;
    if let (Ok(Some(reserved)), Ok(sum)) = read
        && let Ok(revision) = Revision::try_from(reserved)
        && sum.is_none_or(|sum| sum == checksum_of_revision(reserved))
    {
        return Ok(revision);
    }
    let sql = "SELECT max(max(created, modified)) FROM kv WHERE typeof(modified) = 'integer'";
    let greatest: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
    let greatest = greatest.and_then(|revision| Revision::try_from(revision).ok());
    let next = greatest.unwrap_or(0).min(REVISION_MAX) + REVISIONS_AHEAD;
    tracing::error!(
        "the counter of revisions in {} is damaged; it goes on at {next}, beyond every stored revision",
        path.display()
    );
    Ok(next)
}

/// Fails if a row is missing that memory has: another process must have written to the file.
fn one_row(changed: usize) -> rusqlite::Result<()> {
    if changed == 1 {
        Ok(())
    } else {
        Err(rusqlite::Error::StatementChangedRows(changed))
    }
}

/// How many log pages a write takes: the row's own and those of the tree above it.
fn pages<H>(record: Option<&Record<H>>) -> usize {
    1 + record.map_or(1, |record| record.value.len().div_ceil(PAGE_BYTES))
}

// SQLite's integers are signed. A counter from zero does not reach the sign bit in any lifetime.
pub(super) fn signed(revision: Revision) -> i64 {
    i64::try_from(revision).expect("revisions stay below 2^63")
}

pub(super) fn unsigned(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Revision> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Health checks rely on it: they ask whether the disk takes a write.
    #[test]
    fn a_commit_of_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut database = Database::open(&Options::new(dir.path())).unwrap();
        for _ in 0..3 {
            let before = log_pages(&database.path);
            database.commit_nothing().unwrap();
            assert_eq!(log_pages(&database.path), before + 1);
        }
    }

    /// A damaged last commit of a log that was copied would otherwise hide what the copy holds.
    #[test]
    fn a_checkpoint_restarts_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut database = Database::open(&Options::new(dir.path())).unwrap();
        let log = log_check::path_of(&database.path);
        let salts = || std::fs::read(&log).unwrap()[16..24].to_vec();
        database.commit_nothing().unwrap();
        let before = salts();
        database.checkpoint().unwrap();
        assert_ne!(salts(), before);
    }
}

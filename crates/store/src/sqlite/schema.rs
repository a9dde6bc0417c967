//! Opens the SQLite file: recognises it, checks its structure, and sets it up. [`super::migrate`] has its schema.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::check::{self, Verdict};
use super::log_check;
use super::migrate::{self, SCHEMA_VERSION};
use crate::error::{Damage, OpenError};

/// "knnl" in the file's header.
pub(super) const APPLICATION_ID: i32 = 0x6b6e_6e6c;

/// How long a start may spend on `quick_check`, which reads the whole file: enough for some gigabytes.
const QUICK_CHECK_TIME: Duration = Duration::from_secs(5);

/// Page cache. The writer appends or rewrites single rows, so a small cache is enough.
const CACHE_KIBIBYTES: i64 = 1024;

/// Another process that reads or backs up the file may hold a lock for a moment.
const BUSY_TIMEOUT_MS: u32 = 2_000;

/// A row of 3 KiB fits a page of SQLite's default size, and an update rewrites only that page.
pub(super) const PAGE_BYTES: usize = 4096;

/// Opens the database file, creating it when there is none, and migrates it to the current schema.
pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    create_private(path).map_err(|source| OpenError::File {
        path: path.to_owned(),
        source,
    })?;
    check_log(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let failed = |source| failed(path, source);
    let found = recognise(&connection, path)?;
    if found > 0 {
        quick_check(&connection, path)?;
    }
    configure(&connection).map_err(failed)?;
    write_ahead(&connection, path)?;
    migrate::run(&connection, found).map_err(failed)?;
    Ok(connection)
}

/// Opens a file of ours that exists, without changing it.
pub(super) fn open_existing(
    path: &Path,
    access: OpenFlags,
) -> Result<(Connection, i32), OpenError> {
    std::fs::metadata(path).map_err(|source| OpenError::File {
        path: path.to_owned(),
        source,
    })?;
    let connection = connect(path, access)?;
    let found = recognise(&connection, path)?;
    let busy = format!("PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}");
    connection
        .execute_batch(&busy)
        .map_err(|source| failed(path, source))?;
    Ok((connection, found))
}

/// Refuses a log whose synced commits SQLite would drop, and syncs those that it would take over.
pub(super) fn check_log(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::File {
        path: log_check::path_of(path),
        source,
    };
    match log_check::check(path).map_err(failed)? {
        None => log_check::sync(path).map_err(failed),
        Some(damage) => Err(OpenError::Damaged {
            path: path.to_owned(),
            reason: Damage::Log(damage),
        }),
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(|source| failed(path, source))
}

pub(super) fn failed(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        _ => OpenError::Database { path, source },
    }
}

fn quick_check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match check::quick(connection, QUICK_CHECK_TIME).map_err(|source| failed(path, source))? {
        Verdict::Sound => Ok(()),
        Verdict::Unfinished => {
            tracing::info!(
                "stopped the quick_check of {} after {} s; `kennel doctor` runs it to the end",
                path.display(),
                QUICK_CHECK_TIME.as_secs()
            );
            Ok(())
        }
        Verdict::Damaged(reports) => Err(OpenError::Damaged {
            path: path.to_owned(),
            reason: Damage::Structure(reports.join("; ")),
        }),
    }
}

/// Stored values may be secrets, whatever the directory's mode; SQLite gives its other files the
/// database's mode.
fn create_private(path: &Path) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

/// Checks that the file is ours; returns its schema version, 0 if it is empty.
fn recognise(connection: &Connection, path: &Path) -> Result<i32, OpenError> {
    let number = |sql| {
        connection
            .query_row(sql, [], |row| row.get::<_, i32>(0))
            .map_err(|source| failed(path, source))
    };
    let application_id = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if (application_id, found, tables) == (0, 0, 0) {
        return Ok(0);
    }
    let path = path.to_owned();
    if application_id != APPLICATION_ID {
        return Err(OpenError::Foreign {
            path,
            application_id,
        });
    }
    if found > SCHEMA_VERSION {
        let known = SCHEMA_VERSION;
        return Err(OpenError::Newer { path, found, known });
    }
    if found < 1 {
        let reason = Damage::SchemaVersion(found);
        return Err(OpenError::Damaged { path, reason });
    }
    Ok(found)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES};
         PRAGMA synchronous = FULL;
         PRAGMA cache_size = -{CACHE_KIBIBYTES};
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};"
    ))
}

/// Sets the journal up. SQLite does not fail if the file system cannot have a write-ahead log (it lacks shared memory, say): it
/// answers with the mode that the file has.
fn write_ahead(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let set = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
    let mode: String = set.map_err(|source| failed(path, source))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(OpenError::NoWriteAheadLog {
        path: path.to_owned(),
        mode,
    })
}

/// The name of the seal that the whole file was last written with; empty when it was written with none.
/// Files that were never sealed have no table for it.
pub(super) fn sealed_as(connection: &Connection) -> rusqlite::Result<String> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'seal'";
    if connection.query_row(sql, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(String::new());
    }
    connection.query_row("SELECT name FROM seal", [], |row| row.get(0))
}

/// Notes the name of the seal that the whole file is written with.
pub(super) fn record_seal(connection: &Connection, name: &str) -> rusqlite::Result<()> {
    connection.execute_batch(
        "BEGIN IMMEDIATE;
         DROP TABLE IF EXISTS seal;
         CREATE TABLE seal (name TEXT NOT NULL);",
    )?;
    connection.execute("INSERT INTO seal VALUES (?1)", [name])?;
    connection.execute_batch("COMMIT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_cannot_have_a_write_ahead_log_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        let refused = write_ahead(&connection, Path::new("/x/kennel.db")).unwrap_err();
        let words = "/x/kennel.db cannot have a write-ahead log (its journal mode stays memory)";
        assert!(refused.to_string().starts_with(words), "{refused}");
    }
}

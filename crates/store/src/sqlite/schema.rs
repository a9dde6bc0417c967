//! The schema of the SQLite file: recognition, creation, settings.
//!
//! The primary key of a row is the revision that created its key. It is unique and growing, so new rows are
//! appended to one tree, and the keys need no index: memory has them.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Damage, OpenError};

/// "knnl" in the file's header.
const APPLICATION_ID: i32 = 0x6b6e_6e6c;

const SCHEMA_VERSION: i32 = 1;

/// Page cache. The writer appends or rewrites single rows, so a small cache is enough.
const CACHE_KIBIBYTES: i64 = 1024;

/// Another process that reads or backs up the file may hold a lock for a moment.
const BUSY_TIMEOUT_MS: u32 = 2_000;

/// A row of 3 KiB fits a page of SQLite's default size, and an update rewrites only that page.
pub(super) const PAGE_BYTES: usize = 4096;

/// Opens the database file, creating it when there is none.
pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase {
            path: path.to_owned(),
        },
        _ => OpenError::Database {
            path: path.to_owned(),
            source,
        },
    };
    create_private(path).map_err(|source| OpenError::File {
        path: path.to_owned(),
        source,
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let fresh = recognise(&connection, path, failed)?;
    configure(&connection).map_err(failed)?;
    if fresh {
        create(&connection).map_err(failed)?;
    }
    Ok(connection)
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

/// Checks that the file is ours; returns whether it is empty.
fn recognise(
    connection: &Connection,
    path: &Path,
    failed: impl Fn(rusqlite::Error) -> OpenError + Copy,
) -> Result<bool, OpenError> {
    let number = |sql| {
        connection
            .query_row(sql, [], |row| row.get::<_, i32>(0))
            .map_err(failed)
    };
    let application_id = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if (application_id, found, tables) == (0, 0, 0) {
        return Ok(true);
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
    if found < SCHEMA_VERSION {
        let reason = Damage::SchemaVersion(found);
        return Err(OpenError::Damaged { path, reason });
    }
    Ok(false)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES};
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA cache_size = -{CACHE_KIBIBYTES};
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};"
    ))
}

/// Everything in one transaction, so that a crash leaves an empty file or a whole one.
fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         CREATE TABLE kv (
             created INTEGER PRIMARY KEY,
             modified INTEGER NOT NULL,
             key TEXT NOT NULL,
             value BLOB NOT NULL
         );
         CREATE TABLE revision (reserved INTEGER NOT NULL);
         INSERT INTO revision VALUES (0);
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {SCHEMA_VERSION};
         COMMIT;"
    ))
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

//! A database file looked at from outside the store, also while a server uses it: checks, raw values, snapshots, and
//! the new revisions of a restored file.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

use super::check;
use super::checksum::checksum;
use super::damaged;
use super::database::{DATABASE_FILE, signed, unsigned, write_reserved};
use super::directory::is_in_use;
use super::load::{self, Row, Unreadable};
use super::log_check::{self, LogDamage};
use super::migrate::WITH_CHECKSUMS;
use super::schema;
use crate::DamagedValue;
use crate::error::{DecodeError, OpenError};
use crate::record::Revision;
use crate::seal::{Seal, SealError};

/// A file that is only read.
pub struct Offline {
    connection: Connection,
    path: PathBuf,
    schema_version: i32,
}

/// What a check of all values found.
#[derive(Debug, Default)]
pub struct ValueReport {
    pub values: usize,
    /// Written by Kennel 0.1.0, and not since.
    pub without_checksum: usize,
    /// Encrypted with a key that the check was not given; their checksums were verified.
    pub without_key: usize,
    pub damaged: Vec<DamagedValue>,
}

/// The bytes of a value as stored.
#[derive(Debug, PartialEq, Eq)]
pub struct RawValue {
    pub created: i64,
    pub value: Vec<u8>,
    /// Why it was set aside, if it was.
    pub reason: Option<String>,
}

impl Offline {
    /// Opens the database of a data directory, which a server may be using.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_file(&dir.join(DATABASE_FILE))
    }

    pub fn open_file(path: &Path) -> Result<Self, OpenError> {
        let (connection, schema_version) =
            schema::open_existing(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            schema_version,
        })
    }

    /// Opens the file of a directory that no server uses, whose log must be whole.
    pub(crate) fn open_checked(path: &Path) -> Result<Self, OpenError> {
        schema::check_log(path)?;
        Self::open_file(path)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// 0 if the file is empty.
    pub fn schema_version(&self) -> i32 {
        self.schema_version
    }

    fn failed(&self, source: rusqlite::Error) -> OpenError {
        schema::failed(&self.path, source)
    }

    /// A revision that no write has passed yet.
    pub fn revision(&self) -> Result<Revision, OpenError> {
        let sql = "SELECT reserved FROM revision";
        let read = self
            .connection
            .query_row(sql, [], |row| unsigned(row, 0))
            .optional();
        Ok(read.map_err(|source| self.failed(source))?.unwrap_or(0))
    }

    /// The name of the seal that the file was last written with; empty for none.
    pub fn seal_name(&self) -> Result<String, OpenError> {
        schema::sealed_as(&self.connection).map_err(|source| self.failed(source))
    }

    /// SQLite's full check of the file's structure: what it finds wrong.
    pub fn integrity(&self) -> Result<Vec<String>, OpenError> {
        check::reports(&self.connection, "integrity_check").map_err(|source| self.failed(source))
    }

    /// Reads every value: verifies its checksum, opens it, and has it decoded.
    pub fn check_values(
        &self,
        seal: &dyn Seal,
        decode: impl Fn(&str, &Bytes) -> Result<(), DecodeError>,
    ) -> Result<ValueReport, OpenError> {
        let mut report = ValueReport::default();
        let column = if self.schema_version < WITH_CHECKSUMS {
            "NULL"
        } else {
            "checksum"
        };
        let read = load::read_rows(&self.connection, column, |row| {
            report.count(&row, seal, &decode);
            true
        });
        read.map_err(|source| self.failed(source))?;
        Ok(report)
    }

    /// The values that starts have set aside.
    pub fn damaged(&self) -> Result<Vec<DamagedValue>, OpenError> {
        if self.schema_version < WITH_CHECKSUMS {
            return Ok(Vec::new());
        }
        damaged::list(&self.connection).map_err(|source| self.failed(source))
    }

    /// Whether a damaged value of this key is set aside.
    pub(super) fn holds_damaged(dir: &Path, key: &str) -> Result<bool, OpenError> {
        let file = Self::open(dir)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM damaged WHERE key = ?1)";
        let found = file.connection.query_row(sql, [key], |row| row.get(0));
        found.map_err(|source| file.failed(source))
    }

    /// All values of a key, as their bytes are stored: the current one, and those that were set aside.
    pub fn raw(&self, key: &str) -> Result<Vec<RawValue>, OpenError> {
        let mut sql = "SELECT created, CAST(value AS BLOB), NULL FROM kv WHERE key = ?1".to_owned();
        if self.schema_version >= WITH_CHECKSUMS {
            sql.push_str(
                " UNION ALL SELECT created, CAST(value AS BLOB), reason FROM damaged WHERE key = ?1",
            );
        }
        let read = || -> rusqlite::Result<Vec<RawValue>> {
            let mut statement = self.connection.prepare(&sql)?;
            let values = statement.query_map([key], |row| {
                Ok(RawValue {
                    created: row.get(0)?,
                    value: row.get::<_, Option<_>>(1)?.unwrap_or_default(),
                    reason: row.get(2)?,
                })
            })?;
            values.collect()
        };
        read().map_err(|source| self.failed(source))
    }

    /// What is wrong with the write-ahead log of a data directory, which a server may be using.
    pub fn log_damage(dir: &Path) -> Result<Option<LogDamage>, OpenError> {
        let path = dir.join(DATABASE_FILE);
        log_check::check(&path).map_err(|source| OpenError::File {
            path: log_check::path_of(&path),
            source,
        })
    }

    /// Writes a consistent copy, which is a database of its own, to a file that must be empty or absent. A damaged log is
    /// refused unless a server uses it: that knows where its commits are.
    pub fn snapshot(&self, to: &Path) -> Result<(), OpenError> {
        if !self.path.parent().is_some_and(is_in_use) {
            schema::check_log(&self.path)?;
        }
        let copied = self
            .connection
            .execute("VACUUM INTO ?1", [to.to_string_lossy()]);
        copied.map(drop).map_err(|source| self.failed(source))
    }

    /// Removes the damaged values of a key from those that were set aside; returns how many there were. A server may
    /// be running.
    pub fn discard_damaged(dir: &Path, key: &str) -> Result<usize, OpenError> {
        let path = dir.join(DATABASE_FILE);
        if !is_in_use(dir) {
            schema::check_log(&path)?;
        }
        let access = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let (connection, schema_version) = schema::open_existing(&path, access)?;
        if schema_version < WITH_CHECKSUMS {
            return Ok(0);
        }
        let deleted = connection.execute("DELETE FROM damaged WHERE key = ?1", [key]);
        deleted.map_err(|source| schema::failed(&path, source))
    }

    /// Gives every value of a file that no server uses a new revision above `base`, in the order of the old ones, and
    /// a checksum. Returns the last revision.
    ///
    /// Clients that have seen later revisions of the objects than the file has, and compare them, take the restored
    /// ones as newer.
    pub fn renumber(path: &Path, base: Revision) -> Result<Revision, OpenError> {
        let mut connection = schema::open(path)?;
        renumber(&mut connection, signed(base)).map_err(|source| schema::failed(path, source))
    }
}

impl ValueReport {
    fn count(
        &mut self,
        row: &Row,
        seal: &dyn Seal,
        decode: &impl Fn(&str, &Bytes) -> Result<(), DecodeError>,
    ) {
        self.values += 1;
        self.without_checksum += usize::from(row.checksum.is_none());
        match row.read(Some(seal), decode) {
            Ok(_) => {}
            Err(Unreadable::Sealed(SealError::MissingKey(_))) => self.without_key += 1,
            Err(reason) => self.damaged.push(row.damaged(&reason)),
        }
    }
}

fn renumber(connection: &mut Connection, base: i64) -> rusqlite::Result<Revision> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let created: Vec<i64> = {
        let mut statement = transaction.prepare("SELECT created FROM kv ORDER BY modified")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut last = base;
    for created in created {
        let sql = "SELECT created, modified, key, value, checksum FROM kv WHERE created = ?1";
        let mut statement = transaction.prepare_cached(sql)?;
        let row = statement.query_row([created], Row::of)?;
        if row.verify().is_err() {
            // The next start sets it aside as it is.
            continue;
        }
        last += 1;
        let sum = checksum(created, last, &row.key, &row.value);
        let sql = "UPDATE kv SET modified = ?2, checksum = ?3 WHERE created = ?1";
        let mut statement = transaction.prepare_cached(sql)?;
        statement.execute(params![created, last, sum])?;
    }
    let last = Revision::try_from(last).unwrap_or(0);
    write_reserved(&transaction, last)?;
    transaction.commit()?;
    Ok(last)
}

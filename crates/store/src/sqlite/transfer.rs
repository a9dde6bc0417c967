//! Rows as they are stored, for moving them to another engine and back: read from a file, and written into a new one.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, TransactionBehavior, params};

use super::checksum::checksum;
use super::database::{signed, write_reserved};
use super::load::Row;
use super::migrate::WITH_CHECKSUMS;
use super::offline::Offline;
use super::schema;
use crate::DamagedValue;
use crate::error::OpenError;
use crate::record::Revision;

/// A row whose checksum is right.
pub(crate) struct StoredRow {
    pub(crate) key: Arc<str>,
    pub(crate) created: Revision,
    pub(crate) modified: Revision,
    pub(crate) value: Bytes,
}

impl Offline {
    /// Reads all rows in the order of their revisions, until `take` returns false.
    pub(crate) fn for_each_row(
        &self,
        mut take: impl FnMut(Result<StoredRow, DamagedValue>) -> bool,
    ) -> Result<(), OpenError> {
        let column = if self.schema_version() < WITH_CHECKSUMS {
            "NULL"
        } else {
            "checksum"
        };
        let sql =
            format!("SELECT created, modified, key, value, {column} FROM kv ORDER BY modified");
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection().prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let row = Row::of(row)?;
                let checked = row.verify().map_err(|reason| row.damaged(&reason));
                let taken = checked.map(|(created, modified)| StoredRow {
                    key: row.key,
                    created,
                    modified,
                    value: row.value,
                });
                if !take(taken) {
                    break;
                }
            }
            Ok(())
        };
        read().map_err(|source| schema::failed(self.path(), source))
    }
}

/// A new database file that is being filled.
pub(crate) struct NewDatabase {
    connection: Connection,
}

impl NewDatabase {
    pub(crate) fn create(path: &Path) -> Result<Self, OpenError> {
        let connection = schema::open(path)?;
        Ok(Self { connection })
    }

    /// Each row must have another `created`.
    pub(crate) fn insert(&mut self, rows: &[StoredRow]) -> rusqlite::Result<()> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate)?;
        for row in rows {
            let sql = "INSERT INTO kv (created, modified, key, value, checksum) VALUES (?1, ?2, ?3, ?4, ?5)";
            let (created, modified) = (signed(row.created), signed(row.modified));
            let sum = checksum(created, modified, &row.key, &row.value);
            let mut statement = transaction.prepare_cached(sql)?;
            statement.execute(params![created, modified, &*row.key, &*row.value, sum])?;
        }
        transaction.commit()
    }

    /// Notes the last revision and closes the file, which then needs no log.
    pub(crate) fn finish(mut self, last: Revision) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        write_reserved(&transaction, last)?;
        transaction.commit()?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

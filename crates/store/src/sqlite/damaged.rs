//! Values that cannot be read: a start moves them from `kv` to the table `damaged`, byte for byte, so that the others
//! can be served, and their keys can be written again.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use crate::DamagedValue;

/// How many values one start sets aside. More are no accident of single values: a program that misreads what it
/// stores, or a disk that fails. Then nothing is changed, because controllers would act on what is missing.
pub(super) const SET_ASIDE_MAX: usize = 100;

pub(super) fn set_aside(
    connection: &mut Connection,
    values: &[DamagedValue],
) -> rusqlite::Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for DamagedValue {
        created, reason, ..
    } in values
    {
        let sql = "INSERT OR REPLACE INTO damaged (created, modified, key, value, checksum, reason)
                   SELECT created, modified, key, value, checksum, ?2 FROM kv WHERE created = ?1";
        transaction.execute(sql, params![created, reason])?;
        transaction.execute("DELETE FROM kv WHERE created = ?1", [created])?;
    }
    transaction.commit()
}

/// All that were set aside, by this start and by earlier ones.
pub(super) fn list(connection: &Connection) -> rusqlite::Result<Vec<DamagedValue>> {
    let sql = "SELECT CAST(key AS BLOB), created, reason FROM damaged ORDER BY created";
    let mut statement = connection.prepare(sql)?;
    let values = statement.query_map([], |row| {
        let key: Option<Vec<u8>> = row.get(0)?;
        Ok(DamagedValue {
            key: String::from_utf8_lossy(&key.unwrap_or_default()).into_owned(),
            created: row.get(1)?,
            reason: row.get(2)?,
        })
    })?;
    values.collect()
}

pub(super) fn log(values: &[DamagedValue], file: &Path) {
    for DamagedValue { key, reason, .. } in values {
        tracing::error!(
            key,
            "a stored value cannot be read and is left out: {reason}; `kennel doctor` shows it and what to do \
             (in {})",
            file.display()
        );
    }
}

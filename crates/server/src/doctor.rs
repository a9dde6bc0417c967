//! Examines the database of a data directory, also while a server uses it, for `kennel doctor`.

use std::path::Path;

use kennel_store::{Damage, LogDamage, Offline, OpenError};

pub use kennel_store::{DamagedValue, RawValue, SCHEMA_VERSION, ValueReport};

use crate::data_dir;
use crate::object;
use crate::seal::Keyring;

/// What an examination found.
#[derive(Debug)]
pub struct Examination {
    pub schema_version: i32,
    pub revision: u64,
    /// Synced commits of the write-ahead log that cannot be read. A server refuses to start with it; one that runs has
    /// everything in memory, and its backups are complete.
    pub log: Option<LogDamage>,
    /// What SQLite's full check finds wrong with the file's structure.
    pub structure: Vec<String>,
    /// Every value, read and parsed. The next start sets aside those that are damaged.
    pub values: ValueReport,
    /// What starts have set aside.
    pub set_aside: Vec<DamagedValue>,
    /// A restore was interrupted, so that no server starts.
    pub half_restored: bool,
}

impl Examination {
    pub fn is_healthy(&self) -> bool {
        self.log.is_none()
            && self.structure.is_empty()
            && self.values.damaged.is_empty()
            && self.set_aside.is_empty()
            && !self.half_restored
    }
}

/// Examines everything. `keys` decrypt what is encrypted at rest.
pub fn examine(data_dir: &Path, keys: &Keyring) -> Result<Examination, OpenError> {
    let log = Offline::log_damage(data_dir)?;
    let offline = Offline::open(data_dir).map_err(|error| because_of(log.clone(), error))?;
    let structure = offline.integrity()?;
    let values = offline.check_values(keys, |key, value| {
        object::decode(key, value)?;
        Ok(())
    });
    // A damaged structure can make the rest unreadable, and is the better answer then.
    let or_default = |result: Result<ValueReport, OpenError>| match result {
        Err(_) if !structure.is_empty() => Ok(ValueReport::default()),
        other => other,
    };
    Ok(Examination {
        schema_version: offline.schema_version(),
        revision: offline.revision()?,
        values: or_default(values)?,
        set_aside: offline.damaged()?,
        half_restored: data_dir::is_half_restored(data_dir),
        log,
        structure,
    })
}

/// A database that cannot be opened: its log is the reason if that is damaged.
fn because_of(log: Option<LogDamage>, error: OpenError) -> OpenError {
    match (log, error) {
        (Some(damage), OpenError::Database { path, .. } | OpenError::NotADatabase { path }) => {
            let reason = Damage::Log(damage);
            OpenError::Damaged { path, reason }
        }
        (_, error) => error,
    }
}

/// The stored bytes of an object: of a damaged one, if one was set aside, or else the current ones.
pub fn raw(data_dir: &Path, key: &str) -> Result<Option<RawValue>, OpenError> {
    let values = Offline::open(data_dir)?.raw(key)?;
    let newest_damaged = |value: &RawValue| (value.reason.is_some(), value.created);
    Ok(values.into_iter().max_by_key(newest_damaged))
}

/// Deletes the damaged values of a key; returns how many there were.
pub fn discard(data_dir: &Path, key: &str) -> Result<usize, OpenError> {
    Offline::discard_damaged(data_dir, key)
}

/// The user whose certificates outlive an object that was discarded and has not been created again.
pub fn left_with_certificates(data_dir: &Path, key: &str) -> Result<Option<String>, OpenError> {
    if raw(data_dir, key)?.is_some() {
        return Ok(None);
    }
    let row = object::row_of_key(key).filter(|row| !row.namespaced());
    let name = key.rsplit('/').next();
    Ok(row
        .zip(name)
        .and_then(|(row, name)| row.admission.revoked_user(name)))
}

//! The form of values on etcd, where kube-apiserver may have written, too: its protobuf is read as JSON.
//!
//! A value with fields that this version does not know is read without them. So that no write drops them silently, the object is
//! read-only until the operator allows its loss.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use kennel_store::{Opened, Seal, SealError};

use super::Keyring;
use crate::object::stored_protobuf::{self, Converted};

#[derive(Debug)]
pub struct EtcdForm {
    keyring: Keyring,
    /// The keys of objects that may lose unknown fields.
    may_lose: BTreeSet<String>,
    /// The unknown fields of stored objects, by key.
    unknown: Mutex<BTreeMap<String, String>>,
}

impl EtcdForm {
    pub fn new(keyring: Keyring, may_lose: BTreeSet<String>) -> Self {
        Self {
            keyring: keyring.in_upstreams_form(),
            may_lose,
            unknown: Mutex::default(),
        }
    }

    fn unknown(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, key: &str, fields: &BTreeSet<String>) {
        let mut unknown = self.unknown();
        if fields.is_empty() {
            unknown.remove(key);
            return;
        }
        let fields = fields.iter().map(String::as_str).collect::<Vec<_>>();
        let fields = fields.join(", ");
        if unknown.get(key) != Some(&fields) && !self.may_lose.contains(key) {
            tracing::warn!(
                "{key} has fields that this version does not know, and is read-only: {fields}"
            );
        }
        unknown.insert(key.to_owned(), fields);
    }
}

impl Seal for EtcdForm {
    fn name(&self) -> &str {
        self.keyring.name()
    }

    fn seal(&self, key: &str, value: &[u8]) -> Option<Vec<u8>> {
        // What is written has none. If it is not stored, the answer of etcd is opened again.
        self.unknown().remove(key);
        self.keyring.seal(key, value)
    }

    fn read_only(&self, key: &str) -> Option<String> {
        if self.may_lose.contains(key) {
            return None;
        }
        self.unknown().get(key).cloned()
    }

    fn open(&self, key: &str, stored: Bytes) -> Result<Opened, SealError> {
        let opened = if stored_protobuf::is_protobuf(&stored) {
            Opened {
                value: stored,
                is_current: self.keyring.encryption_key(key).is_none(),
            }
        } else {
            self.keyring.open(key, stored)?
        };
        let converted = if stored_protobuf::is_protobuf(&opened.value) {
            let converted = stored_protobuf::convert(key, &opened.value);
            converted.map_err(|error| SealError::Damaged(error.into()))?
        } else {
            None
        };
        let Some(Converted { value, unknown }) = converted else {
            self.note(key, &BTreeSet::new());
            return Ok(opened);
        };
        self.note(key, &unknown);
        Ok(Opened {
            value,
            // Nothing is rewritten that would lose fields.
            is_current: opened.is_current || !unknown.is_empty(),
        })
    }
}

//! The managers of an object in the form in which they are stored with it.

mod json;
mod set;

use std::collections::BTreeMap;

use kennel_types::Timestamp;
use serde_json::Value;

use super::entry::{EntryError, Manager, Managers, Operation, Owned};
use super::field_set::FieldSet;
pub(super) use set::CompactSet;

/// The managers of an object, in the form in which they are stored with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactManagers(pub(super) BTreeMap<Manager, CompactOwned>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompactOwned {
    pub(super) fields: CompactSet,
    pub(super) api_version: String,
    /// In seconds; 0 for none.
    pub(super) time: i64,
}

impl CompactManagers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stored form of managers of an object with these fields. Sets of another version are not relative.
    pub(super) fn of(managers: &Managers, full: &FieldSet, api_version: &str) -> Self {
        let none = FieldSet::default();
        let entries = managers.0.iter().map(|(manager, owned)| {
            let full = if owned.api_version == api_version {
                full
            } else {
                &none
            };
            let owned = CompactOwned {
                fields: CompactSet::of(&owned.fields, full),
                api_version: owned.api_version.clone(),
                time: owned.time.map_or(0, Timestamp::as_secs),
            };
            (manager.clone(), owned)
        });
        Self(entries.collect())
    }

    pub(super) fn expand(&self, full: &FieldSet, api_version: &str) -> Managers {
        let none = FieldSet::default();
        let entries = self.0.iter().map(|(manager, owned)| {
            let full = if owned.api_version == api_version {
                full
            } else {
                &none
            };
            let time = Some(owned.time).filter(|time| *time != 0);
            let owned = Owned {
                fields: owned.fields.expand(full),
                api_version: owned.api_version.clone(),
                time: time.map(Timestamp::from_secs),
            };
            (manager.clone(), owned)
        });
        // A manager of everything where nothing is left is none.
        let entries = entries.filter(|(_, owned)| !owned.fields.is_empty());
        Managers(entries.collect())
    }

    /// Takes out fields that the object did not have so far and that nobody owns.
    pub(super) fn exclude(&mut self, added: &FieldSet, api_version: &str) {
        if added.is_empty() {
            return;
        }
        for owned in self.0.values_mut() {
            if owned.api_version == api_version {
                owned.fields.exclude(added);
            }
        }
    }

    pub(super) fn same_but_times(&self, other: &Self) -> bool {
        let same =
            |((a, of_a), (b, of_b)): ((&Manager, &CompactOwned), (&Manager, &CompactOwned))| {
                a == b && of_a.api_version == of_b.api_version && of_a.fields == of_b.fields
            };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }

    /// Writes the stored form: for each manager a list of name, operation, version, subresource, time and
    /// fields.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, (manager, owned)) in self.0.iter().enumerate() {
            out.extend_from_slice(if at > 0 { b",[" } else { b"[" });
            json::write_text(out, "", &manager.name);
            let is_apply = manager.operation == Operation::Apply;
            out.extend_from_slice(if is_apply { b",1," } else { b",0," });
            json::write_text(out, "", &owned.api_version);
            out.push(b',');
            json::write_text(out, "", &manager.subresource);
            out.push(b',');
            json::write_number(out, owned.time);
            out.push(b',');
            owned.fields.write(out);
            out.push(b']');
        }
        out.push(b']');
    }

    /// Reads the stored form.
    pub fn from_value(value: &Value) -> Result<Self, EntryError> {
        let entries = value.as_array().ok_or(EntryError::NotAList)?;
        let entries = entries.iter().map(|entry| {
            let [name, operation, version, subresource, time, fields] =
                entry.as_array().map(Vec::as_slice).unwrap_or_default()
            else {
                return Err(EntryError::NotAList);
            };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let is_apply = operation.as_u64() == Some(1);
            let manager = Manager {
                name: text(name),
                operation: if is_apply {
                    Operation::Apply
                } else {
                    Operation::Update
                },
                api_version: if is_apply {
                    String::new()
                } else {
                    text(version)
                },
                subresource: text(subresource),
            };
            let owned = CompactOwned {
                fields: CompactSet::read(fields)?,
                api_version: text(version),
                time: time.as_i64().unwrap_or_default(),
            };
            Ok((manager, owned))
        });
        entries.collect::<Result<_, _>>().map(Self)
    }
}

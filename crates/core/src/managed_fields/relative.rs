//! Updates of managers in the form in which they are stored, without listing their fields.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cap::UPDATE_MANAGERS_MAX;
use super::compact::{CompactManagers, CompactOwned, CompactSet};
use super::entry::{Manager, Operation, have_same_paths};
use super::field_manager::{FieldManager, STRIPPED};
use super::field_set::FieldSet;
use super::ownership::Ownership;
use super::path_element::PathElement;
use super::schema::Schema;
use super::typed::{Comparison, fields_of_members};

impl<S: Schema> FieldManager<'_, S> {
    /// The managers of a new object whose creator owns all of its fields.
    pub(super) fn own_everything(&self) -> Ownership {
        let owned = CompactOwned {
            fields: CompactSet::all_but(self.ignored),
            api_version: self.api_version.to_owned(),
            time: self.now.as_secs(),
        };
        let creator = self.identity(self.manager, Operation::Update);
        Ownership::Relative(CompactManagers(BTreeMap::from([(creator, owned)])))
    }

    /// Whether the creator of an object owns some field of it: there is a value that can be owned.
    pub(super) fn owns_surely(&self, object: &Value) -> bool {
        has_value(object, Some(&STRIPPED), Some(self.ignored))
    }

    /// The managers after an update, unless their fields must be listed to tell: if the write changes or removes fields
    /// of other managers, if its manager owns a part of what is around them, or if a manager is to be forgotten.
    pub(super) fn update_relative(
        &self,
        compared: &Comparison,
        managers: &CompactManagers,
        new: &Value,
    ) -> Option<CompactManagers> {
        let strip = |fields: &FieldSet| fields.clone().difference(&STRIPPED);
        let (modified, added, removed) = (
            strip(&compared.modified),
            strip(&compared.added),
            strip(&compared.removed),
        );
        let mut versions = managers.0.values().map(|owned| &owned.api_version);
        if !versions.all(|version| self.knows(version)) {
            return None;
        }
        let mut updated = managers.clone();
        let itself = self.identity(self.manager, Operation::Update);
        for (manager, owned) in &mut updated.0 {
            if *manager == itself || !have_same_paths(&owned.api_version, self.api_version) {
                continue;
            }
            let fields = &mut owned.fields;
            if fields.touches(&modified) || fields.touches(&removed) || fields.names(&added) {
                return None;
            }
            fields.exclude(&added);
        }
        let is_changed = !modified.is_empty() || !added.is_empty();
        let Some(own) = updated.0.get_mut(&itself) else {
            if is_changed {
                let written = added.union(&modified);
                let full = fields_of_members(self.schema, new, &written).unwrap_or_default();
                let mut fields = CompactSet::by_name(&written, &full.difference(&STRIPPED));
                // What the write cannot change may be missing from `new` and yet be stored.
                fields.exclude(self.ignored);
                self.add(&mut updated, itself, fields)?;
            }
            return Some(updated);
        };
        // One that only removes may be left with nothing, and is no manager then.
        let is_left = is_changed || removed.is_empty();
        let is_free = is_left
            && own.fields.contains(&modified)
            && own.fields.contains_freely(&added)
            && own.fields.contains_freely(&removed);
        if is_changed {
            own.time = self.now.as_secs();
        }
        is_free.then_some(updated)
    }

    /// Adds a manager, if there are not too many.
    fn add(
        &self,
        managers: &mut CompactManagers,
        manager: Manager,
        fields: CompactSet,
    ) -> Option<()> {
        let is_update = |manager: &&Manager| manager.operation == Operation::Update;
        if managers.0.keys().filter(is_update).count() >= UPDATE_MANAGERS_MAX {
            return None;
        }
        let owned = CompactOwned {
            fields,
            api_version: self.api_version.to_owned(),
            time: self.now.as_secs(),
        };
        managers.0.insert(manager, owned);
        Some(())
    }
}

/// Whether there is a scalar in a value that its creator owns, itself or with something around it. `stripped` are fields
/// that nobody owns, `ignored` are fields without owners below them.
fn has_value(value: &Value, stripped: Option<&FieldSet>, ignored: Option<&FieldSet>) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => members.iter().any(|(name, value)| {
            let element = PathElement::field(name);
            let has =
                |fields: Option<&FieldSet>| fields.is_some_and(|set| set.has_element(&element));
            if has(ignored) || (has(stripped) && !value.is_object()) {
                return false;
            }
            has_value(
                value,
                stripped.and_then(|fields| fields.below(&element)),
                ignored.and_then(|fields| fields.below(&element)),
            )
        }),
        Value::Array(items) => items.iter().any(|item| has_value(item, None, None)),
        _ => true,
    }
}

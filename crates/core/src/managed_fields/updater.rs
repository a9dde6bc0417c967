//! The owners of an object's fields after a write: structured-merge-diff's updater.

use std::collections::BTreeMap;

use serde_json::Value;

use super::conflict::Conflicts;
use super::entry::{Manager, Managers, Owned, have_same_paths};
use super::field_set::FieldSet;
use super::schema::Schema;
use super::typed::{Comparison, TypeErrors, compare_without, field_set_of, merge, remove};
use super::value::equal;

/// What the writes of one resource have in common.
#[derive(Clone, Copy)]
pub(super) struct Updater<'a, S> {
    pub(super) schema: S,
    /// The version in which the objects are. Managers that wrote one with other paths keep their fields.
    pub(super) api_version: &'a str,
    /// Fields that a write cannot change and that nobody owns through it, with everything below them.
    pub(super) ignored: &'a FieldSet,
}

/// The result of an apply.
pub(super) struct Merged {
    /// The object; none if it is the live one.
    pub(super) object: Option<Value>,
    pub(super) managers: Managers,
}

pub(super) enum Failure {
    Conflicts(Conflicts),
    Types(&'static str, TypeErrors),
}

impl<S: Schema> Updater<'_, S> {
    /// The fields in which `new` differs from `live` and that somebody may own.
    pub(super) fn compare(&self, live: &Value, new: &Value) -> Result<Comparison, TypeErrors> {
        compare_without(self.schema, live, new, self.ignored)
    }

    /// Gives `manager` the fields that changed, and takes them from all others.
    pub(super) fn update(
        &self,
        compared: &Comparison,
        mut managers: Managers,
        manager: &Manager,
    ) -> Managers {
        let taken = self.conflicts(&managers, manager, compared);
        self.take(&mut managers, manager, &taken, &compared.removed);
        let before = managers.0.get(manager);
        let fields = before.map(|owned| owned.fields.clone()).unwrap_or_default();
        let fields = fields
            .difference(&compared.removed)
            .union(&compared.modified)
            .union(&compared.added)
            .recursive_difference(self.ignored);
        self.set(&mut managers, manager, fields);
        managers
    }

    /// Merges a configuration into the live object, removes what the manager owned and no longer lists, and
    /// gives it what it lists.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        mut managers: Managers,
        manager: &Manager,
        force: bool,
    ) -> Result<Merged, Failure> {
        let types = |what| move |errors| Failure::Types(what, errors);
        let merged = merge(self.schema, Some(live), Some(config));
        let merged = merged.map_err(types("failed to merge config"))?;
        let merged = merged.unwrap_or(Value::Null);
        let fields = field_set_of(self.schema, config);
        let fields = fields.map_err(types("failed to get field set"))?;
        let last = managers.0.get(manager).cloned();
        self.set(
            &mut managers,
            manager,
            fields.recursive_difference(self.ignored),
        );
        let pruned = self.prune(merged, &managers, manager, last.as_ref());
        let pruned = pruned.map_err(types("failed to prune fields"))?;
        if equal(live, &pruned) {
            // Nothing changed, so nobody else's fields did.
            return Ok(Merged {
                object: None,
                managers,
            });
        }
        let compared = self.compare(live, &pruned);
        let compared = compared.map_err(types("failed to compare objects"))?;
        let taken = self.conflicts(&managers, manager, &compared);
        if !force && let Some(conflicts) = Conflicts::of(&taken_by(&taken)) {
            return Err(Failure::Conflicts(conflicts));
        }
        self.take(&mut managers, manager, &taken, &compared.removed);
        Ok(Merged {
            object: Some(pruned),
            managers,
        })
    }

    fn set(&self, managers: &mut Managers, manager: &Manager, fields: FieldSet) {
        let before = managers.0.remove(manager);
        if fields.is_empty() {
            return;
        }
        let owned = Owned {
            fields,
            api_version: self.api_version.to_owned(),
            time: before.and_then(|owned| owned.time),
        };
        managers.0.insert(manager.clone(), owned);
    }

    /// What each other manager owns of the fields that changed or were added.
    fn conflicts(
        &self,
        managers: &Managers,
        manager: &Manager,
        compared: &Comparison,
    ) -> BTreeMap<Manager, FieldSet> {
        let changed = compared.modified.clone().union(&compared.added);
        if changed.is_empty() {
            return BTreeMap::new();
        }
        let others = self.others(managers, manager);
        let conflicts =
            others.map(|(other, owned)| (other.clone(), owned.fields.intersection(&changed)));
        conflicts.filter(|(_, fields)| !fields.is_empty()).collect()
    }

    fn others<'m>(
        &self,
        managers: &'m Managers,
        manager: &'m Manager,
    ) -> impl Iterator<Item = (&'m Manager, &'m Owned)> {
        let api_version = self.api_version;
        let others = managers.0.iter();
        others.filter(move |(other, owned)| {
            *other != manager && have_same_paths(&owned.api_version, api_version)
        })
    }

    /// Takes fields from the other managers.
    fn take(
        &self,
        managers: &mut Managers,
        manager: &Manager,
        taken: &BTreeMap<Manager, FieldSet>,
        removed: &FieldSet,
    ) {
        for (other, owned) in &mut managers.0 {
            if other == manager || !have_same_paths(&owned.api_version, self.api_version) {
                continue;
            }
            if let Some(fields) = taken.get(other) {
                owned.fields = std::mem::take(&mut owned.fields).difference(fields);
            }
            owned.fields = std::mem::take(&mut owned.fields).difference(removed);
        }
        managers
            .0
            .retain(|other, owned| other == manager || !owned.fields.is_empty());
    }

    /// Removes what the manager applied last time, does not apply this time, and nobody else owns.
    fn prune(
        &self,
        merged: Value,
        managers: &Managers,
        manager: &Manager,
        last: Option<&Owned>,
    ) -> Result<Value, TypeErrors> {
        let Some(last) = last.filter(|last| !last.fields.is_empty()) else {
            return Ok(merged);
        };
        let is_kept = |now: &Owned| last.fields.is_subset_of(&now.fields);
        let is_comparable = have_same_paths(&last.api_version, self.api_version);
        if !is_comparable || managers.0.get(manager).is_some_and(is_kept) {
            return Ok(merged);
        }
        let named = |fields: &FieldSet| fields.with_named_parents(Some(self.schema));
        let last = named(&last.fields);
        let merged_fields = named(&field_set_of(self.schema, &merged)?);
        let pruned = remove(self.schema, &merged, &last);
        let owned = self.owned_by_anyone(managers);
        // Whatever somebody owns comes back,
        let kept = named(&field_set_of(self.schema, &pruned)?).union(&named(&owned));
        let pruned = remove(
            self.schema,
            &merged,
            &merged_fields.clone().difference(&kept),
        );
        // and so does what the manager did not own: below a removed parent there may be such fields.
        let kept = named(&field_set_of(self.schema, &pruned)?);
        let gone = merged_fields.difference(&kept).intersection(&last);
        Ok(remove(self.schema, &merged, &gone))
    }

    fn owned_by_anyone(&self, managers: &Managers) -> FieldSet {
        let all = managers.0.values();
        let here = all.filter(|owned| have_same_paths(&owned.api_version, self.api_version));
        here.fold(FieldSet::default(), |all, owned| all.union(&owned.fields))
    }
}

fn taken_by(taken: &BTreeMap<Manager, FieldSet>) -> Vec<(&Manager, FieldSet)> {
    let taken = taken.iter();
    taken
        .map(|(manager, fields)| (manager, fields.clone()))
        .collect()
}

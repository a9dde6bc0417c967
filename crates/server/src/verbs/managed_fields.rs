//! Managed fields: the manager of each write owns the fields that it sets.

use kennel_core::managed_fields::{FieldManager, FieldSet, Managers, Ownership};
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::decode;
use crate::clock;
use crate::kinds;
use crate::object::Document;
use crate::registry::{self, Part, Resource};
use crate::request::User;
use crate::schema::Structure;
use crate::status::{ApiError, Result};
use crate::tree::{self, text};

const PATH: &str = "metadata.managedFields";

/// The field manager.
#[derive(Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) user: &'a User,
    /// The field manager that the written fields belong to.
    pub(crate) manager: &'a str,
}

/// The managers of a new object. The request may name some in `metadata.managedFields`, which is taken out.
pub(super) fn of_create(row: &Resource, manager: &str, tree: &mut Value) -> Result<Ownership> {
    let requested = take(tree);
    let managers = usable(row, tree, &requested)?.unwrap_or_default();
    let ownership = write(row, Part::Main, manager, |fields| {
        fields.create(tree, managers)
    })?;
    // The stored form of managers is relative to the stored version of the object.
    Ok(match row.conversion {
        Some(_) => Ownership::Listed(list(row, &ownership, tree)?),
        None => ownership,
    })
}

/// The managers of a document that the server itself changed: nobody owns what it added to `before`. It did not change
/// `unchanged` fields.
pub(super) fn after_own_change(
    row: &Resource,
    ownership: Ownership,
    before: &Value,
    after: &Value,
    unchanged: &[&[&str]],
) -> Result<Ownership> {
    let schema = Structure::Object(decode::type_of(row)?);
    let unchanged = FieldSet::of_names(unchanged);
    Ok(ownership.after_unowned_change(schema, &row.api_version(), (before, after), &unchanged))
}

/// A copy of a document's object before the server changes it, if the owners depend on it. `old` is null for a new object.
pub(super) fn before_own_change(
    row: &Resource,
    part: Part,
    document: &Document,
    old: &Value,
) -> Option<Value> {
    let adds_fields = || match part {
        Part::Status => row.strategy.adds_to_status(&document.tree, old),
        _ => row.strategy.adds_fields(part),
    };
    let is_needed = match &document.ownership {
        Ownership::Relative(_) => !document.ownership.is_empty() && adds_fields(),
        Ownership::Listed(_) => false,
    };
    is_needed.then(|| document.tree.clone())
}

fn list(row: &Resource, ownership: &Ownership, tree: &Value) -> Result<Managers> {
    let schema = Structure::Object(decode::type_of(row)?);
    Ok(ownership.list(schema, &row.api_version(), tree))
}

/// The managers after an update of one part. `requested` is `metadata.managedFields` of the request.
pub(super) fn of_update(
    row: &Resource,
    part: Part,
    manager: &str,
    requested: &Value,
    (new, old): (&Document, &Document),
) -> Result<Ownership> {
    if part == Part::Binding {
        // As upstream: nobody owns the node of a pod that was bound.
        return after_own_change(row, old.ownership.clone(), &old.tree, &new.tree, &[]);
    }
    let by_hand = match part {
        Part::Main if Managers::is_reset(requested) => Some(Managers::default()),
        Part::Main => usable(row, &new.tree, requested)?,
        // A subresource does not change managers by hand.
        _ => None,
    };
    let ownership = match by_hand {
        Some(managers) => Ownership::Listed(managers),
        None => old.ownership.clone(),
    };
    write(row, part, manager, |fields| {
        fields.update(&old.tree, &new.tree, ownership)
    })
}

/// Calls `change` with the manager of a write.
pub(super) fn write<T>(
    row: &Resource,
    part: Part,
    manager: &str,
    change: impl FnOnce(FieldManager<'_, Structure>) -> T,
) -> Result<T> {
    let now = clock::now();
    Ok(change(FieldManager {
        schema: Structure::Object(decode::type_of(row)?),
        manager,
        api_version: &row.api_version(),
        subresource: part.subresource(),
        is_version: &|version| registry::is_version(row, version),
        ignored: &FieldSet::of_names(row.strategy.reset_fields(part)),
        now: Timestamp::from_secs(now.as_secs()),
    }))
}

/// The managers in a request for an object, if there are any and they can be read.
fn usable(row: &Resource, tree: &Value, requested: &Value) -> Result<Option<Managers>> {
    let managers = Managers::from_value(requested).ok();
    let Some(managers) = managers.filter(|managers| !managers.is_empty()) else {
        return Ok(None);
    };
    let errors = kinds::meta::managed_fields(&json!({"managedFields": requested}));
    if errors.is_empty() {
        return Ok(Some(managers));
    }
    Err(ApiError::invalid(row, text(tree, "metadata.name"), &errors))
}

/// Whether a request names no managers in a list, which is no absent list: it asks to forget them.
pub(super) fn is_empty_list(tree: &Value) -> bool {
    tree::at(tree, PATH).as_array().is_some_and(Vec::is_empty)
}

/// Puts the empty list back that pruning has removed.
pub(super) fn set_empty_list(tree: &mut Value) {
    tree::set(tree, PATH, json!([]));
}

/// Removes `metadata.managedFields` from a tree.
pub(super) fn take(tree: &mut Value) -> Value {
    tree::remove(tree, PATH).unwrap_or_default()
}

/// Whether two versions of an object have the same managers with the same fields, whenever they wrote them.
pub(super) fn same_owners(row: &Resource, new: &Document, old: &Document) -> bool {
    // The stored form of the same managers may differ.
    let is_same = || {
        let (new, old) = (new.managers(row), old.managers(row));
        new.same_but_times(&old)
    };
    new.ownership.same_but_times(&old.ownership) || is_same()
}

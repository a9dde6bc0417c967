//! The fields in which two values differ.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::super::field_set::FieldSet;
use super::super::path_element::PathElement;
use super::super::schema::{Fields, ListShape, Schema, Shape};
use super::super::value::equal;
use super::error::TypeErrors;
use super::items::Items;
use super::{Members, list, member_of, members};

/// The fields in which a new value differs from an old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub removed: FieldSet,
    pub modified: FieldSet,
    pub added: FieldSet,
}

impl Comparison {
    /// Leaves out fields and everything below them.
    #[must_use]
    pub fn without(self, ignored: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            added: self.added.recursive_difference(ignored),
        }
    }

    fn add_below(&mut self, element: &PathElement, found: Found) {
        let Found { is, below } = found;
        for (set, is_member, below) in [
            (&mut self.removed, is.removed, below.removed),
            (&mut self.modified, is.modified, below.modified),
            (&mut self.added, is.added, below.added),
        ] {
            if is_member || !below.is_empty() {
                set.add(element.clone(), is_member, below);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// How a value itself differs. One that stops being a duplicate is removed and added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    removed: bool,
    modified: bool,
    added: bool,
}

impl Change {
    const NONE: Self = Self {
        removed: false,
        modified: false,
        added: false,
    };
    const REMOVED: Self = Self {
        removed: true,
        ..Self::NONE
    };
    const MODIFIED: Self = Self {
        modified: true,
        ..Self::NONE
    };
    const ADDED: Self = Self {
        added: true,
        ..Self::NONE
    };
}

/// How a value differs, and what is below it.
#[derive(Default)]
struct Found {
    is: Change,
    below: Comparison,
}

impl Found {
    fn itself(is: Change) -> Self {
        Self {
            is,
            below: Comparison::default(),
        }
    }

    fn is_none(&self) -> bool {
        self.is == Change::NONE && self.below.is_empty()
    }
}

/// Compares two objects of a type.
pub fn compare<S: Schema>(schema: S, old: &Value, new: &Value) -> Result<Comparison, TypeErrors> {
    walk(schema, Some(old), Some(new)).map(|found| found.below)
}

/// Compares two objects of a type but for some fields and everything below them.
pub(in crate::managed_fields) fn compare_without<S: Schema>(
    schema: S,
    old: &Value,
    new: &Value,
    ignored: &FieldSet,
) -> Result<Comparison, TypeErrors> {
    let (old, new) = (members(Some(old)), members(Some(new)));
    // Whole members, such as the spec in an update of the status, are not even looked at.
    let compared = of_members(schema, old, new, |name| !ignored.has_field(name))?;
    Ok(compared.without(ignored))
}

/// The fields of the members of an object that are in `members_of`, or below them.
pub(in crate::managed_fields) fn fields_of_members<S: Schema>(
    schema: S,
    object: &Value,
    members_of: &FieldSet,
) -> Result<FieldSet, TypeErrors> {
    let wanted = |name: &str| members_of.names_field(name);
    let none = Map::new();
    let compared = of_members(schema, Some(&none), members(Some(object)), wanted)?;
    Ok(compared.added.union(&compared.modified))
}

fn walk<S: Schema>(
    schema: S,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Found, TypeErrors> {
    let below = match schema.shape() {
        Shape::Map(_) => {
            let (old, new) = (members(old), members(new));
            let is_empty = |members: Option<&Members>| members.is_none_or(Map::is_empty);
            if is_empty(old) && is_empty(new) {
                None
            } else {
                Some(of_members(schema, old, new, |_| true)?)
            }
        }
        Shape::List(shape) => {
            let (old, new) = (list(old), list(new));
            if old.unwrap_or_default().is_empty() && new.unwrap_or_default().is_empty() {
                None
            } else {
                Some(of_items(schema, shape, old, new)?)
            }
        }
        _ => None,
    };
    let presence = match (old, new) {
        (None, Some(_)) => Some(Change::ADDED),
        (Some(_), None) => Some(Change::REMOVED),
        _ => None,
    };
    match below {
        Some(below) => Ok(Found {
            is: presence.unwrap_or_default(),
            below,
        }),
        // Two empty ones are one value each, so that null and empty differ.
        None => Ok(leaf(presence, old, new)),
    }
}

fn leaf(presence: Option<Change>, old: Option<&Value>, new: Option<&Value>) -> Found {
    match (presence, old, new) {
        (Some(change), ..) => Found::itself(change),
        (None, Some(old), Some(new)) if !equal(old, new) => Found::itself(Change::MODIFIED),
        _ => Found::default(),
    }
}

/// Compares the wanted members of two objects.
fn of_members<S: Schema>(
    schema: S,
    old: Option<&Members>,
    new: Option<&Members>,
    wanted: impl Fn(&str) -> bool,
) -> Result<Comparison, TypeErrors> {
    let mut comparison = Comparison::default();
    let mut member =
        |name: &str, old: Option<&Value>, new: Option<&Value>| -> Result<(), TypeErrors> {
            let Some(member) = member_of(schema, name) else {
                return Ok(());
            };
            let element = PathElement::field(name);
            let found =
                walk(member, old, new).map_err(|below| TypeErrors::below(&element, below))?;
            if !found.is_none() {
                comparison.add_below(&element, found);
            }
            Ok(())
        };
    let absent_from = |members: Option<&Members>, name: &str| {
        let is_by_value = members.is_some() && schema.value_members().any(|other| other == name);
        if is_by_value {
            member_of(schema, name).map(absent)
        } else {
            None
        }
    };
    for (name, old_value, new_value) in joined(old, new).filter(|(name, ..)| wanted(name)) {
        match (old_value, new_value) {
            // Most members are the same.
            (Some(old), Some(new)) if old == new => {}
            (Some(_), Some(_)) => member(name, old_value, new_value)?,
            (None, _) => member(name, absent_from(old, name), new_value)?,
            (_, None) => member(name, old_value, absent_from(new, name))?,
        }
    }
    // Members that are there although they are absent come and go with the object.
    let (Some(only), is_new) = (match (old, new) {
        (None, only) => (only, true),
        (only, None) => (only, false),
        _ => (None, false),
    }) else {
        return Ok(comparison);
    };
    for name in schema
        .value_members()
        .filter(|name| wanted(name) && !only.contains_key(*name))
    {
        let value = member_of(schema, name).map(absent);
        if is_new {
            member(name, None, value)?;
        } else {
            member(name, value, None)?;
        }
    }
    Ok(comparison)
}

/// The members of two objects by name, in order.
fn joined<'a>(
    old: Option<&'a Members>,
    new: Option<&'a Members>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let mut old = old.into_iter().flatten().peekable();
    let mut new = new.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let old = if order.is_le() { old.next() } else { None };
        let new = if order.is_ge() { new.next() } else { None };
        let (name, _) = old.or(new)?;
        Some((
            name.as_str(),
            old.map(|(_, value)| value),
            new.map(|(_, value)| value),
        ))
    })
}

/// What an absent member counts as that is there nevertheless.
fn absent<S: Schema>(member: S) -> &'static Value {
    static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
    match member.shape() {
        Shape::Map(Fields::Declared) | Shape::AtomicMap(Fields::Declared) => &EMPTY,
        _ => &Value::Null,
    }
}

fn of_items<S: Schema>(
    schema: S,
    shape: ListShape,
    old: Option<&[Value]>,
    new: Option<&[Value]>,
) -> Result<Comparison, TypeErrors> {
    let mut comparison = Comparison::default();
    let is_same = |(old, new): (&Value, &Value)| equal(old, new);
    if let (Some(old), Some(new)) = (old, new)
        && old.len() == new.len()
        && old.iter().zip(new).all(is_same)
    {
        return Ok(comparison);
    }
    let (old, new) = (
        Items::of(schema, shape, old)?,
        Items::of(schema, shape, new)?,
    );
    let elements: BTreeSet<&PathElement> =
        old.by_element.keys().chain(new.by_element.keys()).collect();
    for element in elements {
        let found = of_item(schema, &old, &new, element)?;
        if !found.is_none() {
            comparison.add_below(element, found);
        }
    }
    Ok(comparison)
}

/// Compares the items with one element. Items that occur twice are one value together.
fn of_item<S: Schema>(
    schema: S,
    old: &Items<'_>,
    new: &Items<'_>,
    element: &PathElement,
) -> Result<Found, TypeErrors> {
    let count = |items: &Items<'_>| items.by_element.get(element).map_or(0, Vec::len);
    let single = |old: Option<&Value>, new: Option<&Value>| match schema.item() {
        Some(schema) => walk(schema, old, new).map_err(|below| TypeErrors::below(element, below)),
        None => Ok(Found::default()),
    };
    match (count(old), count(new)) {
        (0..=1, 0..=1) => single(old.single(element), new.single(element)),
        (2.., 2..) => {
            let (old, new) = (&old.by_element[element], &new.by_element[element]);
            let is_same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal(a, b));
            if is_same {
                return Ok(Found::default());
            }
            Ok(Found::itself(Change::MODIFIED))
        }
        (2.., _) => {
            let mut found = match new.single(element) {
                Some(new) => single(None, Some(new))?,
                None => Found::default(),
            };
            found.is.removed = true;
            Ok(found)
        }
        (_, _) => {
            let mut found = match old.single(element) {
                Some(old) => single(Some(old), None)?,
                None => Found::default(),
            };
            found.is.added = true;
            Ok(found)
        }
    }
}

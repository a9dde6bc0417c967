//! The fields that a value names.

use serde_json::Value;

use super::super::field_set::FieldSet;
use super::super::path_element::PathElement;
use super::super::schema::{ListShape, Schema, Shape};
use super::error::TypeErrors;
use super::items::Items;
use super::{Members, is_declared, member_of};

/// The leaves that a value names, the items of its lists and the keys of its maps.
pub fn field_set_of<S: Schema>(schema: S, value: &Value) -> Result<FieldSet, TypeErrors> {
    walk(schema, value).map(|found| found.below)
}

struct Found {
    is_leaf: bool,
    below: FieldSet,
}

fn walk<S: Schema>(schema: S, value: &Value) -> Result<Found, TypeErrors> {
    let below = match (schema.shape(), value) {
        (Shape::Map(_), Value::Object(members)) => of_members(schema, members)?,
        (Shape::List(shape), Value::Array(items)) => of_items(schema, shape, items)?,
        // An empty one has nothing to name.
        (Shape::Map(_) | Shape::List(_), _) => FieldSet::default(),
        _ => {
            return Ok(Found {
                is_leaf: true,
                below: FieldSet::default(),
            });
        }
    };
    Ok(Found {
        is_leaf: false,
        below,
    })
}

fn of_members<S: Schema>(schema: S, members: &Members) -> Result<FieldSet, TypeErrors> {
    let mut set = FieldSet::default();
    let is_free = !is_declared(schema);
    for (name, value) in members {
        let Some(member) = member_of(schema, name) else {
            continue;
        };
        let Found { is_leaf, below } = walk(member, value)?;
        let is_empty = match value {
            Value::Null => true,
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        set.add(
            PathElement::field(name),
            is_leaf || is_empty || is_free,
            below,
        );
    }
    Ok(set)
}

fn of_items<S: Schema>(
    schema: S,
    shape: ListShape,
    items: &[Value],
) -> Result<FieldSet, TypeErrors> {
    let mut set = FieldSet::default();
    let items = Items::of(schema, shape, Some(items))?;
    for (element, found) in items.by_element {
        // Nobody owns what is inside of items that occur twice.
        let below = match (schema.item(), found.as_slice()) {
            (Some(schema), [item]) => walk(schema, item)?.below,
            _ => FieldSet::default(),
        };
        set.add(element, true, below);
    }
    Ok(set)
}

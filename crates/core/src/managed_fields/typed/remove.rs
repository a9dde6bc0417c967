//! Removes fields from a value.

use serde_json::{Map, Value};

use super::super::field_set::FieldSet;
use super::super::path_element::PathElement;
use super::super::schema::{ListShape, Schema, Shape};
use super::items::element_of;
use super::{Members, member_of};

/// The value without these fields. What becomes empty becomes null.
pub fn remove<S: Schema>(schema: S, value: &Value, fields: &FieldSet) -> Value {
    match (schema.shape(), value) {
        (Shape::Map(_), Value::Object(members)) => from_members(schema, members, fields),
        (Shape::List(shape), Value::Array(items)) => from_items(schema, shape, items, fields),
        (Shape::Scalar(_), value) => value.clone(),
        (Shape::Any, Value::Object(_) | Value::Array(_)) => Value::Null,
        (Shape::Any, value) => value.clone(),
        _ => Value::Null,
    }
}

fn from_members<S: Schema>(schema: S, members: &Members, fields: &FieldSet) -> Value {
    let mut left = Map::new();
    for (name, value) in members {
        let element = PathElement::field(name);
        if fields.has_element(&element) {
            continue;
        }
        let value = match (fields.below(&element), member_of(schema, name)) {
            (Some(below), Some(member)) => remove(member, value, below),
            _ => value.clone(),
        };
        left.insert(name.clone(), value);
    }
    if left.is_empty() {
        return Value::Null;
    }
    Value::Object(left)
}

fn from_items<S: Schema>(schema: S, shape: ListShape, items: &[Value], fields: &FieldSet) -> Value {
    let mut left = Vec::new();
    for item in items {
        let Ok(element) = element_of(schema, shape, item) else {
            left.push(item.clone());
            continue;
        };
        if fields.has_element(&element) {
            continue;
        }
        left.push(match (fields.below(&element), schema.item()) {
            (Some(below), Some(schema)) => remove(schema, item, below),
            _ => item.clone(),
        });
    }
    if left.is_empty() {
        return Value::Null;
    }
    Value::Array(left)
}

//! Checks that a value fits its type.

use serde_json::Value;

use super::super::go;
use super::super::path_element::PathElement;
use super::super::schema::{ListShape, Scalar, Schema, Shape};
use super::error::TypeErrors;
use super::items::element_of;
use super::{Members, is_declared, member_of};
use crate::go::type_of;

/// What to do with items of sets and keyed lists that occur twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Refuse,
    Allow,
}

/// Checks that a value fits its type.
pub fn validate<S: Schema>(
    schema: S,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    walk(schema, value, duplicates).into_result()
}

fn walk<S: Schema>(schema: S, value: &Value, duplicates: Duplicates) -> TypeErrors {
    match (schema.shape(), value) {
        (Shape::Any, _) | (_, Value::Null) => TypeErrors::default(),
        (Shape::Scalar(scalar), value) => check_scalar(scalar, value),
        (Shape::Map(_) | Shape::AtomicMap(_), Value::Object(members)) => {
            walk_members(schema, members, duplicates)
        }
        (Shape::List(shape), Value::Array(items)) => walk_items(schema, shape, items, duplicates),
        (Shape::AtomicList, Value::Array(items)) => walk_atomic(schema, items, duplicates),
        (Shape::Map(_) | Shape::AtomicMap(_), other) => {
            TypeErrors::one(format!("expected map, got {}", go::plain(other)))
        }
        (Shape::List(_) | Shape::AtomicList, other) => {
            TypeErrors::one(format!("expected list, got {}", go::plain(other)))
        }
    }
}

fn check_scalar(scalar: Scalar, value: &Value) -> TypeErrors {
    let message = match (scalar, value) {
        (Scalar::String, Value::String(_))
        | (Scalar::Number, Value::Number(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Any, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            return TypeErrors::default();
        }
        (Scalar::String, other) => format!("expected string, got {}", go::syntax(other)),
        (Scalar::Number, other) => {
            format!("expected numeric (int or float), got {}", type_of(other))
        }
        (Scalar::Boolean, other) => format!("expected boolean, got {}", go::plain(other)),
        (Scalar::Any, other) => format!("expected any scalar, got {}", go::plain(other)),
    };
    TypeErrors::one(message)
}

fn walk_members<S: Schema>(schema: S, members: &Members, duplicates: Duplicates) -> TypeErrors {
    let mut errors = TypeErrors::default();
    for (name, value) in members {
        let below = match member_of(schema, name) {
            Some(member) => walk(member, value, duplicates),
            None if is_declared(schema) => {
                let undeclared = TypeErrors::one("field not declared in schema");
                errors.extend_below(&PathElement::field(name), undeclared);
                break;
            }
            None => TypeErrors::default(),
        };
        errors.extend_below(&PathElement::field(name), below);
    }
    errors
}

fn walk_items<S: Schema>(
    schema: S,
    shape: ListShape,
    items: &[Value],
    duplicates: Duplicates,
) -> TypeErrors {
    let mut errors = TypeErrors::default();
    let mut seen = std::collections::BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = match element_of(schema, shape, item) {
            Ok(element) => element,
            Err(why) => {
                errors.push(format!("element {index}: {why}"));
                break;
            }
        };
        if seen.contains(&element) && duplicates == Duplicates::Refuse {
            errors.push(format!("duplicate entries for key {element}"));
        }
        if let Some(schema) = schema.item() {
            errors.extend_below(&element, walk(schema, item, duplicates));
        }
        seen.insert(element);
    }
    errors
}

fn walk_atomic<S: Schema>(schema: S, items: &[Value], duplicates: Duplicates) -> TypeErrors {
    let mut errors = TypeErrors::default();
    let Some(schema) = schema.item() else {
        return errors;
    };
    for (index, item) in (0..).zip(items) {
        let below = walk(schema, item, duplicates);
        errors.extend_below(&PathElement::Index(index), below);
    }
    errors
}

//! Walks over values by their schema. One file per walk; `error` has what all can report, `items` how the
//! items of lists are told apart.
//!
//! Absent and null differ: an absent value is `None`.

mod compare;
mod error;
mod field_set;
mod items;
mod merge;
mod remove;
mod validate;

pub use compare::{Comparison, compare};
pub(super) use compare::{compare_without, fields_of_members};
pub use error::{TypeError, TypeErrors};
pub use field_set::field_set_of;
pub use merge::merge;
pub use remove::remove;
pub use validate::{Duplicates, validate};

use serde_json::{Map, Value};

use super::schema::{Fields, Schema, Shape};

type Members = Map<String, Value>;

/// The members of an object; none for null, absent and other values.
fn members(value: Option<&Value>) -> Option<&Members> {
    value.and_then(Value::as_object)
}

/// The items of a list; none for null, absent and other values.
fn list(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}

/// The type of a member of an object or a map.
fn member_of<S: Schema>(schema: S, name: &str) -> Option<S> {
    match schema.shape() {
        Shape::Map(Fields::Declared) | Shape::AtomicMap(Fields::Declared) => schema.member(name),
        _ => schema.item(),
    }
}

/// Whether a map with this shape has declared members only.
fn is_declared<S: Schema>(schema: S) -> bool {
    matches!(
        schema.shape(),
        Shape::Map(Fields::Declared) | Shape::AtomicMap(Fields::Declared)
    )
}

//! Prunes a tree to its type: removes unknown members and nulls, writes scalars in their canonical
//! form, and refuses values of the wrong JSON type with the errors of Go's decoder.
//!
//! Whether a value is valid is decided by validation, in `kinds`.

use std::cmp::Ordering;
use std::slice;

use serde_json::{Map, Value};

use super::decode::FINDINGS_MAX;
use super::error::DecodeError;
use super::go;
use super::scalar::{Place, go_name, go_type, scalar, strings};
use super::tree_path::{Step, TreePath};
use super::types::{Field, Kind, Shape, Type};

/// Prunes `value` to `ty`. Removes members that the type does not have and reports them in
/// `unknown` (`unknown field "spec.x"`), at most a hundred; also removes null members and the empty
/// ones that Go would omit.
pub fn conform(
    ty: &'static Type,
    value: &mut Value,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(members) = value else {
        return Err(DecodeError::Mismatch {
            json: go::json_type(value).to_owned(),
            place: "value".to_owned(),
            go_type: go_name(ty),
        });
    };
    Walk { unknown }.object(ty, members, &TreePath::default())
}

struct Walk<'u> {
    unknown: &'u mut Vec<String>,
}

impl Walk<'_> {
    fn object(
        &mut self,
        ty: &'static Type,
        members: &mut Map<String, Value>,
        path: &TreePath<'_>,
    ) -> Result<(), DecodeError> {
        // Both are sorted by name: one pass over the fields finds all members.
        let mut fields = ty.fields.iter();
        let mut keeps_all = true;
        for (name, value) in members.iter_mut() {
            let Some(field) = next_named(&mut fields, name) else {
                self.report_unknown(path, name);
                keeps_all = false;
                continue;
            };
            if !value.is_null() {
                let place = Place {
                    owner: ty,
                    field,
                    path: &path.then(Step::Field(field.name)),
                };
                self.field(place, value)?;
            }
            keeps_all &= is_written(field, value);
        }
        // `retain` costs even if it removes nothing, which is the common case.
        if !keeps_all {
            members
                .retain(|name, value| ty.field(name).is_some_and(|field| is_written(field, value)));
        }
        Ok(())
    }

    fn report_unknown(&mut self, path: &TreePath<'_>, name: &str) {
        if self.unknown.len() >= FINDINGS_MAX {
            return;
        }
        let path = path.then(Step::Key(name)).to_string();
        let finding = format!("unknown field {}", go::quote(&path));
        if !self.unknown.contains(&finding) {
            self.unknown.push(finding);
        }
    }

    fn field(&mut self, place: Place<'_>, value: &mut Value) -> Result<(), DecodeError> {
        match (place.field.shape, &mut *value) {
            (Shape::One, _) => self.value(place, value),
            (Shape::List, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = &place.path.then(Step::Index(index));
                    self.item(Place { path, ..place }, item)?;
                }
                Ok(())
            }
            (Shape::Map, Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    let path = &place.path.then(Step::Key(key));
                    self.item(Place { path, ..place }, entry)?;
                }
                Ok(())
            }
            (Shape::List | Shape::Map, _) => Err(place.mismatch(value, &go_type(place.field))),
        }
    }

    /// One item of a list or a map, where null means the zero value and not absence.
    fn item(&mut self, place: Place<'_>, value: &mut Value) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = zero(place.field.kind);
            return Ok(());
        }
        self.value(place, value)?;
        if value.is_null() {
            *value = zero(place.field.kind);
        }
        Ok(())
    }

    fn value(&mut self, place: Place<'_>, value: &mut Value) -> Result<(), DecodeError> {
        match place.field.kind {
            Kind::Object(ty) => match value {
                Value::Object(members) => self.object(ty, members, place.path),
                _ => Err(place.mismatch(value, &go_name(ty))),
            },
            Kind::Raw => Ok(()),
            Kind::Strings => strings(place, value),
            _ => scalar(place, value),
        }
    }
}

/// The field of that name. Names must be asked for in ascending order: it skips smaller fields.
fn next_named(fields: &mut slice::Iter<'static, Field>, name: &str) -> Option<&'static Field> {
    let rest = fields.as_slice();
    let first = |name: &str| name.as_bytes().first().copied();
    // The first byte decides nearly always, without a call to compare.
    let is_not_before = |field: &Field| match first(field.name).cmp(&first(name)) {
        Ordering::Equal => field.name >= name,
        order => order == Ordering::Greater,
    };
    let at = rest.iter().position(is_not_before);
    *fields = rest[at.unwrap_or(rest.len())..].iter();
    fields.as_slice().first().filter(|field| field.name == name)
}

fn is_written(field: &Field, value: &Value) -> bool {
    !value.is_null() && !is_omitted(field, value)
}

/// Whether Go omits the member when it writes the object.
fn is_omitted(field: &Field, value: &Value) -> bool {
    if field.is_required || field.keeps_empty {
        return false;
    }
    match value {
        Value::Array(items) => field.shape == Shape::List && items.is_empty(),
        Value::Object(entries) => field.shape == Shape::Map && entries.is_empty(),
        _ if field.is_pointer => false,
        Value::String(text) => text.is_empty() && matches!(field.kind, Kind::String | Kind::Bytes),
        Value::Bool(set) => !set && matches!(field.kind, Kind::Bool),
        Value::Number(number) => {
            number.as_i64() == Some(0) && matches!(field.kind, Kind::Int32 | Kind::Int64)
        }
        Value::Null => false,
    }
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::String | Kind::Bytes => Value::String(String::new()),
        Kind::Quantity => Value::String("0".to_owned()),
        Kind::Bool => Value::Bool(false),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString => Value::from(0),
        Kind::Strings => Value::Array(Vec::new()),
        Kind::Object(_) => Value::Object(Map::new()),
        Kind::Time | Kind::MicroTime | Kind::Raw => Value::Null,
    }
}

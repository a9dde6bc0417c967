//! Checks the scalars of the API and writes them in their canonical form.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::error::DecodeError;
use super::time::{self, Precision};
use super::tree_path::TreePath;
use super::types::{Field, Kind, Shape, Type};
use super::{base64, go};

/// Where a value belongs, for error messages.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) owner: &'static Type,
    pub(super) field: &'static Field,
    pub(super) path: &'a TreePath<'a>,
}

impl Place<'_> {
    pub(super) fn mismatch(self, value: &Value, go_type: &str) -> DecodeError {
        self.mismatched(go::json_type(value).to_owned(), go_type)
    }

    fn mismatched(self, json: String, go_type: &str) -> DecodeError {
        let (owner, field) = (self.owner.go_name(), self.path.go_path());
        DecodeError::Mismatch {
            json,
            place: format!("struct field {owner}.{field}"),
            go_type: go_type.to_owned(),
        }
    }
}

pub(super) fn scalar(place: Place<'_>, value: &mut Value) -> Result<(), DecodeError> {
    let fits = match place.field.kind {
        Kind::String => value.is_string(),
        Kind::Bool => value.is_boolean(),
        Kind::Int32 => return integer(place, value, i64::from(i32::MIN), i64::from(i32::MAX)),
        Kind::Int64 => return integer(place, value, i64::MIN, i64::MAX),
        Kind::IntOrString if value.is_string() => true,
        Kind::IntOrString => return int_of_int_or_string(place, value),
        Kind::Quantity => return quantity(value),
        Kind::Bytes => return bytes(place, value),
        Kind::Time => return point_in_time(place, value, Precision::Seconds),
        Kind::MicroTime => return point_in_time(place, value, Precision::Micros),
        Kind::Raw | Kind::Strings | Kind::Object(_) => true,
    };
    if fits {
        return Ok(());
    }
    Err(place.mismatch(value, &go_element(place.field)))
}

fn integer(place: Place<'_>, value: &Value, least: i64, most: i64) -> Result<(), DecodeError> {
    ranged(place, value, least, most, &go_element(place.field))
}

fn int_of_int_or_string(place: Place<'_>, value: &Value) -> Result<(), DecodeError> {
    ranged(
        place,
        value,
        i64::from(i32::MIN),
        i64::from(i32::MAX),
        "int32",
    )
}

fn ranged(
    place: Place<'_>,
    value: &Value,
    least: i64,
    most: i64,
    go_type: &str,
) -> Result<(), DecodeError> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(place.mismatched(format!("number {number}"), go_type)),
        },
        _ => Err(place.mismatch(value, go_type)),
    }
}

fn quantity(value: &mut Value) -> Result<(), DecodeError> {
    let parsed = match &*value {
        Value::String(text) => Quantity::parse(text.trim()),
        other => Quantity::parse(&other.to_string()),
    };
    let canonical = parsed?.to_string();
    if value.as_str() != Some(&canonical) {
        *value = Value::String(canonical);
    }
    Ok(())
}

fn bytes(place: Place<'_>, value: &mut Value) -> Result<(), DecodeError> {
    let Value::String(text) = value else {
        return Err(place.mismatch(value, "[]uint8"));
    };
    if let Some(canonical) = base64::canonical(text)? {
        *text = canonical;
    }
    Ok(())
}

fn point_in_time(
    place: Place<'_>,
    value: &mut Value,
    precision: Precision,
) -> Result<(), DecodeError> {
    let Value::String(text) = value else {
        return Err(place.mismatch(value, "string"));
    };
    match time::canonical(text, precision)? {
        Some(canonical) if canonical == *text => {}
        Some(canonical) => *text = canonical,
        None => *value = Value::Null,
    }
    Ok(())
}

/// A list of strings that is itself one value.
pub(super) fn strings(place: Place<'_>, value: &mut Value) -> Result<(), DecodeError> {
    let Value::Array(items) = value else {
        return Err(place.mismatch(value, "v1.ExtraValue"));
    };
    for item in items {
        if item.is_null() {
            *item = Value::String(String::new());
        }
        if !item.is_string() {
            return Err(place.mismatch(item, "string"));
        }
    }
    Ok(())
}

/// Go's name of a table type: `v1.PodSpec`.
pub(super) fn go_name(ty: &Type) -> String {
    let mut parts = ty.name.rsplit('.');
    let name = parts.next().unwrap_or_default();
    match parts.next() {
        Some(package) => format!("{package}.{name}"),
        None => name.to_owned(),
    }
}

/// Go's name of the type of one value of the field.
fn go_element(field: &Field) -> String {
    if let Some(go_type) = field.go_type {
        return go_type.to_owned();
    }
    let name = match field.kind {
        Kind::String => "string",
        Kind::Bool => "bool",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Bytes => "[]uint8",
        Kind::Quantity => "resource.Quantity",
        Kind::IntOrString => "intstr.IntOrString",
        Kind::Time => "v1.Time",
        Kind::MicroTime => "v1.MicroTime",
        Kind::Raw => "runtime.RawExtension",
        Kind::Strings => "v1.ExtraValue",
        Kind::Object(ty) => return go_name(ty),
    };
    name.to_owned()
}

/// Go's name of the type of the whole field.
pub(super) fn go_type(field: &Field) -> String {
    match (field.shape, field.kind) {
        (Shape::One, _) => go_element(field),
        (Shape::List, _) => format!("[]{}", go_element(field)),
        (Shape::Map, Kind::Quantity) => "v1.ResourceList".to_owned(),
        (Shape::Map, _) => format!("map[string]{}", go_element(field)),
    }
}

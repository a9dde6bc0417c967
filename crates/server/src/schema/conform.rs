//! Makes a tree fit its type: unknown members go, nulls go, scalars get their canonical spelling,
//! and what has the wrong JSON type is refused in the words of Go's decoder.
//!
//! What a value *means* is no concern of this room; that is validation.

use kennel_core::quantity::Quantity;
use serde_json::{Map, Value};

use super::decode::MOST_FINDINGS;
use super::time::{self, Precision};
use super::trail::{Step, Trail};
use super::types::{Field, Kind, Shape, Type};
use super::{base64, go};

/// Makes `value` fit `ty`. Members that the type does not have are removed and reported in
/// `unknown` (`unknown field "spec.x"`), at most a hundred of them; null members are removed, and
/// so are empty ones that Go would not write. Fails if something has the wrong type.
pub fn conform(
    ty: &'static Type,
    value: &mut Value,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(members) = value else {
        let (json, go) = (go::json_type(value), go_name(ty));
        return Err(format!(
            "json: cannot unmarshal {json} into Go value of type {go}"
        ));
    };
    Walk { unknown }.object(ty, members, &Trail::default())
}

struct Walk<'u> {
    unknown: &'u mut Vec<String>,
}

/// Where a value belongs, for error messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    owner: &'static Type,
    field: &'static Field,
    trail: &'a Trail<'a>,
}

impl Walk<'_> {
    fn object(
        &mut self,
        ty: &'static Type,
        members: &mut Map<String, Value>,
        trail: &Trail<'_>,
    ) -> Result<(), String> {
        let mut outcome = Ok(());
        members.retain(|name, value| {
            if outcome.is_err() {
                return true;
            }
            let Some(field) = ty.field(name) else {
                self.report_unknown(trail, name);
                return false;
            };
            if value.is_null() {
                return false;
            }
            let place = Place {
                owner: ty,
                field,
                trail: &trail.then(Step::Field(field.name)),
            };
            outcome = self.field(place, value);
            !value.is_null() && !is_left_out(field, value)
        });
        outcome
    }

    fn report_unknown(&mut self, trail: &Trail<'_>, name: &str) {
        if self.unknown.len() >= MOST_FINDINGS {
            return;
        }
        let path = trail.then(Step::Key(name)).to_string();
        let finding = format!("unknown field {}", go::quote(&path));
        if !self.unknown.contains(&finding) {
            self.unknown.push(finding);
        }
    }

    fn field(&mut self, place: Place<'_>, value: &mut Value) -> Result<(), String> {
        match (place.field.shape, &mut *value) {
            (Shape::One, _) => self.value(place, value),
            (Shape::List, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let trail = &place.trail.then(Step::Index(index));
                    self.item(Place { trail, ..place }, item)?;
                }
                Ok(())
            }
            (Shape::Map, Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    let trail = &place.trail.then(Step::Key(key));
                    self.item(Place { trail, ..place }, entry)?;
                }
                Ok(())
            }
            (Shape::List | Shape::Map, _) => Err(place.mismatch(value, &go_type(place.field))),
        }
    }

    /// One item of a list or a map. There, null is not absence but the zero value.
    fn item(&mut self, place: Place<'_>, value: &mut Value) -> Result<(), String> {
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

    fn value(&mut self, place: Place<'_>, value: &mut Value) -> Result<(), String> {
        match place.field.kind {
            Kind::Object(ty) => match value {
                Value::Object(members) => self.object(ty, members, place.trail),
                _ => Err(place.mismatch(value, &go_name(ty))),
            },
            Kind::Raw => Ok(()),
            Kind::Strings => strings(place, value),
            _ => scalar(place, value),
        }
    }
}

impl Place<'_> {
    fn mismatch(self, value: &Value, go_type: &str) -> String {
        self.unfit(go::json_type(value), go_type)
    }

    fn unfit(self, json: &str, go_type: &str) -> String {
        format!(
            "json: cannot unmarshal {json} into Go struct field {}.{} of type {go_type}",
            self.owner.go_name(),
            self.trail.go_spelling(),
        )
    }
}

fn scalar(place: Place<'_>, value: &mut Value) -> Result<(), String> {
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

fn integer(place: Place<'_>, value: &Value, least: i64, most: i64) -> Result<(), String> {
    ranged(place, value, least, most, &go_element(place.field))
}

fn int_of_int_or_string(place: Place<'_>, value: &Value) -> Result<(), String> {
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
) -> Result<(), String> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(place.unfit(&format!("number {number}"), go_type)),
        },
        _ => Err(place.mismatch(value, go_type)),
    }
}

fn quantity(value: &mut Value) -> Result<(), String> {
    let parsed = match &*value {
        Value::String(text) => Quantity::parse(text.trim()),
        other => Quantity::parse(&other.to_string()),
    };
    let canonical = parsed.map_err(|error| error.to_string())?.to_string();
    if value.as_str() != Some(&canonical) {
        *value = Value::String(canonical);
    }
    Ok(())
}

fn bytes(place: Place<'_>, value: &mut Value) -> Result<(), String> {
    let Value::String(text) = value else {
        return Err(place.mismatch(value, "[]uint8"));
    };
    if let Some(canonical) = base64::canonical(text)? {
        *text = canonical;
    }
    Ok(())
}

fn point_in_time(place: Place<'_>, value: &mut Value, precision: Precision) -> Result<(), String> {
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

fn strings(place: Place<'_>, value: &mut Value) -> Result<(), String> {
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

/// Whether Go leaves the member out when it writes the object.
fn is_left_out(field: &Field, value: &Value) -> bool {
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

/// Go's name of a table type: `v1.PodSpec`.
fn go_name(ty: &Type) -> String {
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
fn go_type(field: &Field) -> String {
    match (field.shape, field.kind) {
        (Shape::One, _) => go_element(field),
        (Shape::List, _) => format!("[]{}", go_element(field)),
        (Shape::Map, Kind::Quantity) => "v1.ResourceList".to_owned(),
        (Shape::Map, _) => format!("map[string]{}", go_element(field)),
    }
}

//! Makes a tree fit its type: unknown members go, nulls go, scalars get their canonical spelling,
//! and what has the wrong JSON type is refused in the words of Go's decoder.
//!
//! What a value *means* is no concern of this room; that is validation.

use std::cmp::Ordering;
use std::slice;

use serde_json::{Map, Value};

use super::decode::MOST_FINDINGS;
use super::go;
use super::scalar::{Place, go_name, go_type, scalar, strings};
use super::trail::{Step, Trail};
use super::types::{Field, Kind, Shape, Type};

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

impl Walk<'_> {
    fn object(
        &mut self,
        ty: &'static Type,
        members: &mut Map<String, Value>,
        trail: &Trail<'_>,
    ) -> Result<(), String> {
        // Both are sorted by name, so one walk along the fields finds all members.
        let mut fields = ty.fields.iter();
        let mut all_stay = true;
        for (name, value) in members.iter_mut() {
            let Some(field) = next_named(&mut fields, name) else {
                self.report_unknown(trail, name);
                all_stay = false;
                continue;
            };
            if !value.is_null() {
                let place = Place {
                    owner: ty,
                    field,
                    trail: &trail.then(Step::Field(field.name)),
                };
                self.field(place, value)?;
            }
            all_stay &= stays(field, value);
        }
        // Nearly always; and taking members out of a map costs, even where none goes.
        if !all_stay {
            members.retain(|name, value| ty.field(name).is_some_and(|field| stays(field, value)));
        }
        Ok(())
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

/// The field of that name, which is not before the last one asked for.
fn next_named(fields: &mut slice::Iter<'static, Field>, name: &str) -> Option<&'static Field> {
    let rest = fields.as_slice();
    let first = |name: &str| name.as_bytes().first().copied();
    // One byte tells most names apart, and costs no call.
    let is_not_before = |field: &Field| match first(field.name).cmp(&first(name)) {
        Ordering::Equal => field.name >= name,
        order => order == Ordering::Greater,
    };
    let at = rest.iter().position(is_not_before);
    *fields = rest[at.unwrap_or(rest.len())..].iter();
    fields.as_slice().first().filter(|field| field.name == name)
}

fn stays(field: &Field, value: &Value) -> bool {
    !value.is_null() && !is_left_out(field, value)
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

//! A message into a tree, by the table of types.
//!
//! As in Go, fields that the table does not know are passed over, since newer clients have more of
//! them; a message that comes in several pieces is merged; of a scalar given twice, the last counts.
//! The work and the memory are proportional to the input, and the depth of the tree is bounded.

use serde_json::{Map, Value};

use super::value;
use super::wire::{Fields, Payload, misfit};
use crate::limits::BODY_BYTES_MAX;
use crate::schema::{Field, Kind, Shape, Type};

/// How deep a tree may be: what JSON's decoder would still read back.
pub(super) const DEPTH_MAX: usize = 100;

/// How many objects a tree may have: as many as fit a body of JSON, where each takes a dozen bytes
/// at least. In protobuf it may be two, and a tree takes hundreds for it.
const OBJECTS_MAX: usize = BODY_BYTES_MAX / 12;

/// The tree of a message of that type, with every member that was sent. Fails with what is wrong.
pub fn transcode(ty: &'static Type, bytes: &[u8]) -> Result<Value, String> {
    let mut walk = Walk {
        objects_left: OBJECTS_MAX,
    };
    let mut members = Map::new();
    walk.message(ty, bytes, 1, &mut members)?;
    Ok(Value::Object(members))
}

/// The raw JSON in one member of a message, exactly as it was sent (see `schema::raw_member`).
pub fn raw_member<'a>(ty: &'static Type, bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let is_raw = |field: &&Field| matches!(field.kind, Kind::Raw);
    let wanted = ty.field(name).filter(is_raw)?;
    let mut found = None;
    let mut fields = Fields::of(bytes);
    while let Some((number, payload)) = fields.next().ok()? {
        if number == wanted.number {
            found = Some(value::raw_json(wanted, payload).ok()?);
        }
    }
    found
}

/// A walk through a message, and what it may still take.
struct Walk {
    objects_left: usize,
}

impl Walk {
    fn message(
        &mut self,
        ty: &'static Type,
        bytes: &[u8],
        depth: usize,
        members: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("exceeded max depth".to_owned());
        }
        let left = self.objects_left.checked_sub(1);
        self.objects_left = left.ok_or("more objects than a body may hold")?;
        let mut fields = Fields::of(bytes);
        while let Some((number, payload)) = fields.next()? {
            if let Some(field) = ty.numbered(number) {
                self.take(field, payload, depth, members)?;
            } else if let Some(field) = ty.inlined.iter().find(|field| field.number == number)
                && let Kind::Object(part) = field.kind
            {
                let bytes = value::bytes(field, payload)?;
                self.message(part, bytes, depth, members)?;
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
        members: &mut Map<String, Value>,
    ) -> Result<(), String> {
        match field.shape {
            Shape::One => {
                if let (Kind::Object(ty), Some(Value::Object(known))) =
                    (field.kind, members.get_mut(field.name))
                {
                    return self.message(ty, value::bytes(field, payload)?, depth + 1, known);
                }
                let value = self.one(field, payload, depth + 1)?;
                members.insert(field.name.to_owned(), value);
                Ok(())
            }
            Shape::List => {
                let list = member(members, field.name, || Value::Array(Vec::new()));
                let Value::Array(list) = list else {
                    return Ok(());
                };
                self.item(field, payload, depth + 2, list)
            }
            Shape::Map => {
                let entries = member(members, field.name, || Value::Object(Map::new()));
                let Value::Object(entries) = entries else {
                    return Ok(());
                };
                let (key, value) = self.entry(field, payload, depth + 2)?;
                entries.insert(key, value);
                Ok(())
            }
        }
    }

    /// One value of a field, at that depth of the tree.
    fn one(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
    ) -> Result<Value, String> {
        let Kind::Object(ty) = field.kind else {
            return value::scalar(field, payload, depth);
        };
        let mut members = Map::new();
        self.message(ty, value::bytes(field, payload)?, depth, &mut members)?;
        Ok(Value::Object(members))
    }

    /// The next item of a list; or several, since numbers may be packed.
    fn item(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
        list: &mut Vec<Value>,
    ) -> Result<(), String> {
        let is_number = matches!(field.kind, Kind::Int32 | Kind::Int64 | Kind::Bool);
        match payload {
            Payload::Bytes(packed) if is_number => {
                let mut numbers = Fields::of(packed);
                while let Some(number) = numbers.next_packed()? {
                    list.push(value::scalar(field, Payload::Varint(number), depth)?);
                }
            }
            _ => list.push(self.one(field, payload, depth)?),
        }
        Ok(())
    }

    /// An entry of a map: a message of a key and a value, either of which is zero when it is missing.
    fn entry(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
    ) -> Result<(String, Value), String> {
        let (mut key, mut value) = ("", None);
        let mut fields = Fields::of(value::bytes(field, payload)?);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => key = value::text(field, payload)?,
                2 => value = Some(payload),
                _ => {}
            }
        }
        let value = match value {
            Some(payload) => self.one(field, payload, depth)?,
            // The checks after this room know what zero is.
            None => Value::Null,
        };
        Ok((key.to_owned(), value))
    }
}

/// The member of that name, made if there is none yet.
fn member<'m>(
    members: &'m mut Map<String, Value>,
    name: &str,
    empty: fn() -> Value,
) -> &'m mut Value {
    if !members.contains_key(name) {
        members.insert(name.to_owned(), empty());
    }
    &mut members[name]
}

/// The refusal of a number where the field holds none, and the other way round.
pub(super) fn refuse(field: &Field, payload: Payload<'_>) -> String {
    misfit(payload, field.name)
}

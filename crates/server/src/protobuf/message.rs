//! Decodes a message to a tree by the schema table.
//!
//! As in Go, unknown fields are skipped (newer clients send more), a message that comes in several
//! pieces is merged, and the last of duplicate scalars wins. Time and memory are proportional to the
//! input, and the depth of the tree is bounded.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::error::ProtobufError;
use super::value;
use super::wire::{Fields, Payload};
use crate::limits::BODY_BYTES_MAX;
use crate::schema::{Field, Kind, Shape, Type};

/// The maximum depth of a tree: the JSON decoder must be able to read it back.
pub(super) const DEPTH_MAX: usize = 100;

/// The maximum number of objects in a tree: as many as a JSON body can hold, where each takes at least
/// a dozen bytes. In protobuf an object may take two bytes, and hundreds in the tree.
const OBJECTS_MAX: usize = BODY_BYTES_MAX / 12;

/// How many unknown fields are named: the operator needs to see that there are some.
const UNKNOWN_MAX: usize = 10;

/// The tree of a message of that type, with every member that was sent.
pub fn transcode(ty: &'static Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
    transcode_noting(ty, bytes).map(|(tree, _)| tree)
}

/// The same with the unknown fields that were skipped, at most [`UNKNOWN_MAX`], such as `core.v1.PodSpec 47`.
pub fn transcode_noting(
    ty: &'static Type,
    bytes: &[u8],
) -> Result<(Value, BTreeSet<String>), ProtobufError> {
    let mut walk = Walk {
        objects_left: OBJECTS_MAX,
        unknown: BTreeSet::new(),
    };
    let mut members = Map::new();
    walk.message(ty, bytes, 1, &mut members)?;
    Ok((Value::Object(members), walk.unknown))
}

/// The raw JSON in one member of a message, unchanged (see `schema::raw_member`).
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

struct Walk {
    objects_left: usize,
    /// By type and number.
    unknown: BTreeSet<String>,
}

impl Walk {
    fn message(
        &mut self,
        ty: &'static Type,
        bytes: &[u8],
        depth: usize,
        members: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        if depth > DEPTH_MAX {
            return Err(ProtobufError::TooDeep);
        }
        let left = self.objects_left.checked_sub(1);
        self.objects_left = left.ok_or(ProtobufError::TooManyObjects)?;
        let mut fields = Fields::of(bytes);
        while let Some((number, payload)) = fields.next()? {
            if let Some(field) = ty.numbered(number) {
                self.take(field, payload, depth, members)?;
            } else if let Some(field) = ty.inlined.iter().find(|field| field.number == number)
                && let Kind::Object(part) = field.kind
            {
                let bytes = value::bytes(field, payload)?;
                self.message(part, bytes, depth, members)?;
            } else if self.unknown.len() < UNKNOWN_MAX {
                self.unknown.insert(format!("{} {number}", ty.name));
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
    ) -> Result<(), ProtobufError> {
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

    /// One value of a field, at `depth` of the tree.
    fn one(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let Kind::Object(ty) = field.kind else {
            return value::scalar(field, payload, depth);
        };
        let mut members = Map::new();
        self.message(ty, value::bytes(field, payload)?, depth, &mut members)?;
        Ok(Value::Object(members))
    }

    /// The next item of a list, or several: numbers may be packed.
    fn item(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
        list: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
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

    /// An entry of a map: a message of a key and a value; a missing one is zero.
    fn entry(
        &mut self,
        field: &'static Field,
        payload: Payload<'_>,
        depth: usize,
    ) -> Result<(String, Value), ProtobufError> {
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
            // `schema::conform` replaces it with the zero value of the type.
            None => Value::Null,
        };
        Ok((key.to_owned(), value))
    }
}

/// The member of that name, created if there is none.
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

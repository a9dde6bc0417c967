//! Converts the payload of a field to its JSON value.
//!
//! Some scalars of the API are small messages in protobuf: times, quantities, `IntOrString`, raw
//! JSON, lists within maps.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::error::ProtobufError;
use super::message::DEPTH_MAX;
use super::wire::{Fields, Payload, wrong_wire_type};
use super::{envelope, wire};
use crate::schema::{self, Field, Kind};

pub(super) fn bytes<'a>(field: &Field, payload: Payload<'a>) -> Result<&'a [u8], ProtobufError> {
    envelope::bytes(payload, field.name)
}

pub(super) fn text<'a>(field: &Field, payload: Payload<'a>) -> Result<&'a str, ProtobufError> {
    envelope::text(payload, field.name)
}

/// One value that is not an object of the schema table.
pub(super) fn scalar(
    field: &Field,
    payload: Payload<'_>,
    depth: usize,
) -> Result<Value, ProtobufError> {
    Ok(match field.kind {
        Kind::String => text(field, payload)?.into(),
        Kind::Bool => (varint(field, payload)? != 0).into(),
        Kind::Int32 => low_half(varint(field, payload)?).into(),
        Kind::Int64 => varint(field, payload)?.cast_signed().into(),
        Kind::Bytes => BASE64_STANDARD.encode(bytes(field, payload)?).into(),
        Kind::Quantity => quantity(field, payload)?,
        Kind::IntOrString => int_or_string(field, payload)?,
        Kind::Time => point_in_time(field, payload, false)?,
        Kind::MicroTime => point_in_time(field, payload, true)?,
        Kind::Raw => raw(field, payload, depth)?,
        Kind::Strings => strings(field, payload)?,
        Kind::Object(_) => return Err(wrong_wire_type(payload, field.name)),
    })
}

fn varint(field: &Field, payload: Payload<'_>) -> Result<u64, ProtobufError> {
    match payload {
        Payload::Varint(number) => Ok(number),
        _ => Err(wrong_wire_type(payload, field.name)),
    }
}

/// An int32; protobuf writes negative ones with 64 bits.
fn low_half(number: u64) -> i32 {
    let low = u32::try_from(number & u64::from(u32::MAX)).expect("the upper half is cleared");
    low.cast_signed()
}

/// `{1: string}`
fn quantity(field: &Field, payload: Payload<'_>) -> Result<Value, ProtobufError> {
    let mut found = "0";
    let mut fields = Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            found = text(field, payload)?;
        }
    }
    Ok(found.into())
}

/// `{1: type, 2: number, 3: string}`
fn int_or_string(field: &Field, payload: Payload<'_>) -> Result<Value, ProtobufError> {
    let (mut ty, mut int, mut string) = (0, 0, "");
    let mut fields = Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => ty = varint(field, payload)?,
            2 => int = low_half(varint(field, payload)?),
            3 => string = text(field, payload)?,
            _ => {}
        }
    }
    match ty {
        0 => Ok(int.into()),
        1 => Ok(string.into()),
        _ => Err(ProtobufError::IntOrStringType),
    }
}

/// `{1: seconds, 2: nanoseconds}`, where two zeros mean null, not 1970.
fn point_in_time(
    field: &Field,
    payload: Payload<'_>,
    with_micros: bool,
) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        match number {
            1 => seconds = varint(field, payload)?.cast_signed(),
            2 => nanos = low_half(varint(field, payload)?),
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    // Truncates to the precision that the type has in JSON.
    let fraction = SignedDuration::from_nanos(i64::from(nanos / 1000) * 1000);
    let fraction = if with_micros {
        fraction
    } else {
        SignedDuration::ZERO
    };
    let time = Timestamp::from_second(seconds).and_then(|time| time.checked_add(fraction));
    let time = time.ok().map(|time| time.to_zoned(jiff::tz::TimeZone::UTC));
    let time = time.filter(|time| (0..=9999).contains(&time.year()));
    let time = time.ok_or(ProtobufError::YearOutOfRange)?;
    let format = if with_micros {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(time.strftime(format).to_string().into())
}

/// `{1: JSON}`: only the JSON.
pub(super) fn raw_json<'a>(field: &Field, payload: Payload<'a>) -> Result<&'a [u8], ProtobufError> {
    let mut found: &[u8] = &[];
    let mut fields = wire::Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            found = bytes(field, payload)?;
        }
    }
    Ok(found)
}

fn raw(field: &Field, payload: Payload<'_>, depth: usize) -> Result<Value, ProtobufError> {
    let json = raw_json(field, payload)?;
    if json.is_empty() {
        return Ok(Value::Null);
    }
    let parsed = schema::parse(json).map_err(|error| ProtobufError::RawJson {
        field: field.name,
        error,
    })?;
    if levels(&parsed.value) + depth > DEPTH_MAX {
        return Err(ProtobufError::TooDeep);
    }
    Ok(parsed.value)
}

/// The depth of a tree. The recursion is bounded: the decoder has limited the depth.
fn levels(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(members) => members.values().map(levels).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// `{1: strings}`; in JSON only the list.
fn strings(field: &Field, payload: Payload<'_>) -> Result<Value, ProtobufError> {
    let mut items = Vec::new();
    let mut fields = Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            items.push(Value::from(text(field, payload)?));
        }
    }
    Ok(items.into())
}

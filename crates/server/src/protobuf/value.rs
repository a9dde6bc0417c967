//! Single values: from a field's payload to what JSON has for it.
//!
//! Some scalars of the API are small messages in protobuf: times, quantities, numbers that may be
//! strings, raw JSON, lists within maps.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::message::{DEPTH_MAX, refuse};
use super::wire::{Fields, Payload};
use super::{envelope, wire};
use crate::schema::{self, Field, Kind};

/// The bytes of a field that must have some.
pub(super) fn bytes<'a>(field: &Field, payload: Payload<'a>) -> Result<&'a [u8], String> {
    envelope::bytes(payload, field.name)
}

/// The string of a field that must have one.
pub(super) fn text<'a>(field: &Field, payload: Payload<'a>) -> Result<&'a str, String> {
    envelope::text(payload, field.name)
}

/// One value that is no object of the table.
pub(super) fn scalar(field: &Field, payload: Payload<'_>, depth: usize) -> Result<Value, String> {
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
        Kind::Object(_) => return Err(refuse(field, payload)),
    })
}

fn varint(field: &Field, payload: Payload<'_>) -> Result<u64, String> {
    match payload {
        Payload::Varint(number) => Ok(number),
        _ => Err(refuse(field, payload)),
    }
}

/// A number of 32 bits; negative ones are written with 64.
fn low_half(number: u64) -> i32 {
    let low = u32::try_from(number & u64::from(u32::MAX)).expect("the upper half is cleared");
    low.cast_signed()
}

/// `{1: string}`
fn quantity(field: &Field, payload: Payload<'_>) -> Result<Value, String> {
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
fn int_or_string(field: &Field, payload: Payload<'_>) -> Result<Value, String> {
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
        _ => Err("impossible IntOrString.Type".to_owned()),
    }
}

/// `{1: seconds, 2: nanoseconds}`, where nothing but zeros is no time at all, not 1970.
fn point_in_time(field: &Field, payload: Payload<'_>, with_micros: bool) -> Result<Value, String> {
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
    // JSON has whole seconds or microseconds, and so have times that came in protobuf.
    let fraction = SignedDuration::from_nanos(i64::from(nanos / 1000) * 1000);
    let fraction = if with_micros {
        fraction
    } else {
        SignedDuration::ZERO
    };
    let time = Timestamp::from_second(seconds).and_then(|time| time.checked_add(fraction));
    let time = time.ok().map(|time| time.to_zoned(jiff::tz::TimeZone::UTC));
    let time = time.filter(|time| (0..=9999).contains(&time.year()));
    let time = time.ok_or("Time.MarshalJSON: year outside of range [0,9999]")?;
    let format = if with_micros {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(time.strftime(format).to_string().into())
}

/// `{1: JSON}`: the JSON alone.
pub(super) fn raw_json<'a>(field: &Field, payload: Payload<'a>) -> Result<&'a [u8], String> {
    let mut found: &[u8] = &[];
    let mut fields = wire::Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            found = bytes(field, payload)?;
        }
    }
    Ok(found)
}

fn raw(field: &Field, payload: Payload<'_>, depth: usize) -> Result<Value, String> {
    let json = raw_json(field, payload)?;
    if json.is_empty() {
        return Ok(Value::Null);
    }
    let parsed = schema::parse(json).map_err(|why| format!("{}: {why}", field.name))?;
    if levels(&parsed.value) + depth > DEPTH_MAX {
        return Err("exceeded max depth".to_owned());
    }
    Ok(parsed.value)
}

/// How deep a tree is. Its decoder has bounded that already.
fn levels(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(members) => members.values().map(levels).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// `{1: strings}`, in JSON the list alone.
fn strings(field: &Field, payload: Payload<'_>) -> Result<Value, String> {
    let mut items = Vec::new();
    let mut fields = Fields::of(bytes(field, payload)?);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            items.push(Value::from(text(field, payload)?));
        }
    }
    Ok(items.into())
}

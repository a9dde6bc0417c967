//! Trees into protobuf, as Go's generated code writes it. The server has nothing like it; what it
//! says is compared with recordings of a real client.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kennel_server::schema::{Field, Kind, Shape, Type};
use serde_json::{Map, Value};

/// How a message is written; every way means the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As Go does: what its structs hold by value is always written, even when nobody set it.
    Go,
    /// Only what the tree has, and lists of numbers packed.
    Sparse,
    /// As a newer client would: each message has fields that the server has never heard of.
    Newer,
}

/// Members that Go holds by value though they are messages, where the name says enough, or with
/// their type where it does not.
const BY_VALUE: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "roleRef",
    "updateStrategy",
    "loadBalancer",
    "userInfo",
    "involvedObject",
    "regarding",
    "target",
    "state",
    "lastState",
    "nodeInfo",
    "daemonEndpoints",
    "kubeletEndpoint",
    "preference",
    "podAffinityTerm",
    "targetPort",
    "divisor",
    "HTTPGetAction.port",
    "TCPSocketAction.port",
    "Event.source",
    "Event.deprecatedSource",
    "Endpoint.conditions",
    "TokenReviewStatus.user",
    "Container.resources",
    "EphemeralContainerCommon.resources",
    "PersistentVolumeClaimSpec.resources",
    "creationTimestamp",
    "expirationTimestamp",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "lastObservedTime",
    "lastTransitionTime",
    "lastHeartbeatTime",
    "lastProbeTime",
    "startedAt",
    "finishedAt",
];

/// A whole body: the object in its envelope.
pub(crate) fn body(ty: &Type, object: &Value, style: Style) -> Vec<u8> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().as_bytes();
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, text("apiVersion"));
    put_bytes(&mut type_meta, 2, text("kind"));
    let mut out = b"k8s\0".to_vec();
    put_bytes(&mut out, 1, &type_meta);
    put_bytes(&mut out, 2, &message(ty, object, style));
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}

/// One message.
pub(crate) fn message(ty: &Type, tree: &Value, style: Style) -> Vec<u8> {
    let own = ty.fields.iter().filter(|f| f.within == 0 && f.number > 0);
    let mut fields: Vec<(&Field, bool)> = own.map(|field| (field, false)).collect();
    fields.extend(ty.inlined.iter().map(|field| (field, true)));
    fields.sort_by_key(|(field, _)| field.number);
    let mut out = Vec::new();
    for (field, is_inlined) in fields {
        match (is_inlined, field.kind) {
            (true, Kind::Object(part)) => {
                put_bytes(&mut out, field.number, &message(part, tree, style));
            }
            _ => put_field(&mut out, ty, field, &tree[field.name], style),
        }
    }
    if style == Style::Newer {
        put_unknown(&mut out);
    }
    out
}

fn put_unknown(out: &mut Vec<u8>) {
    put_varint(out, 15_000 << 3);
    put_varint(out, u64::MAX);
    put_bytes(out, 15_001, b"\xff\xff");
    put_varint(out, 15_002 << 3 | 1);
    out.extend([7; 8]);
    put_varint(out, 15_003 << 3 | 5);
    out.extend([7; 4]);
}

fn put_field(out: &mut Vec<u8>, owner: &Type, field: &Field, value: &Value, style: Style) {
    let empty = Map::new();
    match field.shape {
        Shape::One => put_one(out, owner, field, value, style),
        Shape::List if style == Style::Sparse && is_number(field.kind) => {
            let mut packed = Vec::new();
            for item in value.as_array().into_iter().flatten() {
                put_varint(&mut packed, number(item));
            }
            if !packed.is_empty() {
                put_bytes(out, field.number, &packed);
            }
        }
        Shape::List => {
            for item in value.as_array().into_iter().flatten() {
                put_value(out, field.number, field.kind, item, style);
            }
        }
        Shape::Map => {
            for (key, value) in value.as_object().unwrap_or(&empty) {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                put_value(&mut entry, 2, field.kind, value, style);
                put_bytes(out, field.number, &entry);
            }
        }
    }
}

fn put_one(out: &mut Vec<u8>, owner: &Type, field: &Field, value: &Value, style: Style) {
    let by_value = match field.kind {
        Kind::String | Kind::Bool | Kind::Int32 | Kind::Int64 => !field.is_pointer,
        Kind::Bytes => false,
        Kind::Raw => owner.go_name() == "ControllerRevision",
        _ => {
            let qualified = format!("{}.{}", owner.go_name(), field.name);
            BY_VALUE.contains(&field.name) || BY_VALUE.contains(&qualified.as_str())
        }
    };
    if !value.is_null() || (by_value && style == Style::Go) {
        put_value(out, field.number, field.kind, value, style);
    }
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Int32 | Kind::Int64 | Kind::Bool)
}

/// One value; null is written as zero.
fn put_value(out: &mut Vec<u8>, field: u32, kind: Kind, value: &Value, style: Style) {
    let text = value.as_str().unwrap_or_default();
    let bytes = match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => {
            put_varint(out, u64::from(field) << 3);
            return put_varint(out, number(value));
        }
        Kind::String => text.as_bytes().to_vec(),
        Kind::Bytes => BASE64_STANDARD.decode(text).unwrap(),
        Kind::Quantity if value.is_null() => string_message(1, "0"),
        Kind::Quantity => string_message(1, text),
        Kind::IntOrString => int_or_string(value),
        Kind::Time | Kind::MicroTime => time(text),
        Kind::Raw if value.is_null() => Vec::new(),
        Kind::Raw => string_message(1, &value.to_string()),
        Kind::Strings => {
            let mut list = Vec::new();
            for item in value.as_array().into_iter().flatten() {
                put_bytes(&mut list, 1, item.as_str().unwrap().as_bytes());
            }
            list
        }
        Kind::Object(ty) => message(ty, value, style),
    };
    put_bytes(out, field, &bytes);
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Bool(set) => u64::from(*set),
        value => value.as_i64().unwrap_or_default().cast_unsigned(),
    }
}

fn string_message(number: u32, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, text.as_bytes());
    out
}

fn int_or_string(value: &Value) -> Vec<u8> {
    let mut out = vec![1 << 3, u8::from(value.is_string()), 2 << 3];
    put_varint(&mut out, number(value));
    put_bytes(&mut out, 3, value.as_str().unwrap_or_default().as_bytes());
    out
}

fn time(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if !text.is_empty() {
        let time: jiff::Timestamp = text.parse().unwrap();
        put_varint(&mut out, 1 << 3);
        put_varint(&mut out, time.as_second().cast_unsigned());
        put_varint(&mut out, 2 << 3);
        put_varint(
            &mut out,
            i64::from(time.subsec_nanosecond()).cast_unsigned(),
        );
    }
    out
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

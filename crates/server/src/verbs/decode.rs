//! Decodes bodies: parses JSON or protobuf, checks types, and prunes or refuses unknown fields.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::call::Call;
use super::{managed_fields, type_meta};
use crate::limits::BODY_BYTES_MAX;
use crate::object::Document;
use crate::protobuf::{self, Envelope};
use crate::registry::Resource;
use crate::request::query::FieldValidation;
use crate::schema::{self, Type};
use crate::status::{ApiError, Result};

/// The media types of objects.
const BODIES: &[&str] = &["application/json", protobuf::MEDIA_TYPE];

/// A decoded object, and the warnings about unknown and duplicate fields.
#[derive(Clone)]
pub(super) struct Decoded {
    pub(super) document: Document,
    pub(super) warnings: Vec<String>,
}

/// The type of a row in the schema table.
pub(super) fn type_of(row: &Resource) -> Result<&'static Type> {
    named_type(row.schema)
}

fn named_type(name: &str) -> Result<&'static Type> {
    schema::find(name).ok_or_else(|| ApiError::internal(format!("no schema for {name}")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Protobuf,
}

impl Format {
    /// JSON is the default.
    fn of(call: &Call) -> Result<Self> {
        match call.media_type() {
            "" | "application/json" | "*/*" => Ok(Self::Json),
            protobuf::MEDIA_TYPE => Ok(Self::Protobuf),
            _ => Err(ApiError::unsupported_media_type(BODIES)),
        }
    }
}

/// Decodes the object in a create or update.
pub(super) fn object(call: &Call, row: &'static Resource, options: &str) -> Result<Decoded> {
    let format = Format::of(call)?;
    let mode = call.query.field_validation(options)?;
    match format {
        Format::Json => json_object(call, row, mode),
        Format::Protobuf => protobuf_object(call, row, mode),
    }
}

fn json_object(call: &Call, row: &'static Resource, mode: FieldValidation) -> Result<Decoded> {
    let parsed = parse(row.kind, &call.body)?;
    let mut tree = parsed.value;
    type_meta::check(row, &tree, &call.body)?;
    let refuse = |why: String| cannot_handle(row, &why);
    let warnings = conform(row, &mut tree, parsed.duplicates, mode, refuse)?;
    Ok(Decoded {
        document: Document::from_body(row, tree, &call.body),
        warnings,
    })
}

fn protobuf_object(call: &Call, row: &'static Resource, mode: FieldValidation) -> Result<Decoded> {
    let refuse = |why: String| cannot_handle(row, &why);
    let envelope = open(row.kind, &call.body)?;
    type_meta::check(row, &type_meta_of(&envelope), &call.body)?;
    let ty = type_of(row)?;
    let mut tree =
        protobuf::transcode(ty, envelope.raw).map_err(|error| refuse(error.to_string()))?;
    // Protobuf has no field names, so there are no unknown or duplicate ones.
    let warnings = conform(row, &mut tree, Vec::new(), mode, refuse)?;
    check_size(&tree, call.body.len())?;
    let raw = row.raw_field;
    let raw = raw.and_then(|field| protobuf::raw_member(ty, envelope.raw, field));
    Ok(Decoded {
        document: Document::from_message(row, tree, raw),
        warnings,
    })
}

/// Applies the size limit to the JSON of an object that was sent as protobuf, because objects are stored as
/// JSON.
fn check_size(tree: &Value, body_bytes: usize) -> Result<()> {
    /// The most that JSON is larger than protobuf: the longest name has fifty bytes, its tag two.
    const GROWTH_MAX: usize = 64;
    if body_bytes <= BODY_BYTES_MAX / GROWTH_MAX {
        return Ok(());
    }
    let mut size = Size(0);
    let counted = serde_json::to_writer(&mut size, tree);
    counted.map_err(|_| ApiError::too_large(BODY_BYTES_MAX))
}

/// Counts written bytes, up to the size limit.
struct Size(usize);

impl std::io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > BODY_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn parse(kind: &str, body: &[u8]) -> Result<schema::Parsed> {
    schema::parse(body).map_err(|error| unrecognized(kind, &error.to_string(), body))
}

fn open<'a>(kind: &str, body: &'a [u8]) -> Result<Envelope<'a>> {
    Envelope::open(body).map_err(|error| no_object(kind, &error.to_string(), body))
}

/// `apiVersion` and `kind` of the envelope, as a JSON body has them.
fn type_meta_of(envelope: &Envelope<'_>) -> Value {
    json!({"apiVersion": envelope.api_version, "kind": envelope.kind})
}

/// Prunes and checks a tree. The findings become warnings or an error, which `refuse` creates.
pub(super) fn conform(
    row: &Resource,
    tree: &mut Value,
    duplicates: Vec<String>,
    mode: FieldValidation,
    refuse: impl Fn(String) -> ApiError,
) -> Result<Vec<String>> {
    let mut findings = duplicates;
    let resets_managers = managed_fields::is_empty_list(tree);
    schema::conform(type_of(row)?, tree, &mut findings)
        .map_err(|error| refuse(error.to_string()))?;
    if resets_managers {
        managed_fields::set_empty_list(tree);
    }
    match mode {
        _ if findings.is_empty() => Ok(findings),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings),
        FieldValidation::Strict => {
            let listed = findings.join(", ");
            Err(refuse(format!("strict decoding error: {listed}")))
        }
    }
}

/// Decodes a small body of another type (a Binding, a `TokenRequest`).
pub(super) fn other(call: &Call, schema_type: &str, kind: &str) -> Result<Value> {
    let mut tree = as_sent(call, schema_type, kind)?;
    type_meta::check_other(schema_type, kind, &tree)?;
    schema::conform(named_type(schema_type)?, &mut tree, &mut Vec::new())
        .map_err(|error| cannot_handle_other(kind, &error.to_string()))?;
    Ok(tree)
}

/// The tree of a small body as it was sent, without a check of its version: clients send `DeleteOptions` and
/// evictions in several versions.
pub(super) fn as_sent(call: &Call, schema_type: &str, kind: &str) -> Result<Value> {
    if Format::of(call)? == Format::Json {
        return parse(kind, &call.body).map(|parsed| parsed.value);
    }
    let envelope = open(kind, &call.body)?;
    let names = type_meta_of(&envelope);
    if !matches!(envelope.kind, "") && envelope.kind != kind {
        return Err(type_meta::other_kind(kind, &names));
    }
    let mut tree = protobuf::transcode(named_type(schema_type)?, envelope.raw)
        .map_err(|error| cannot_handle_other(kind, &error.to_string()))?;
    for name in ["apiVersion", "kind"] {
        if names[name] != "" {
            tree[name] = names[name].clone();
        }
    }
    Ok(tree)
}

fn cannot_handle_other(kind: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version \"v1\" cannot be handled as a {kind}: {why}"
    ))
}

/// The refusal of a body that cannot be parsed.
pub(super) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    let why = format!("couldn't get version/kind; json parse error: {why}");
    no_object(kind, &why, body)
}

fn no_object(kind: &str, why: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(body)
    ))
}

/// The start of a body, as upstream shows it: text if it may be JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let start = &body[..body.len().min(SHOWN)];
    let shown = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => HEXLOWER.encode(start),
    };
    let more = if body.len() > SHOWN { " ..." } else { "" };
    format!("{shown}{more}")
}

fn cannot_handle(row: &Resource, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}",
        kind = row.kind,
        version = row.version,
    ))
}

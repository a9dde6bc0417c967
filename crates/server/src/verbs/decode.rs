//! From a body to a tree of the right kind: parse, check types, treat unknown fields as asked.

use serde_json::Value;

use super::call::Call;
use super::type_meta;
use crate::object::Document;
use crate::registry::Resource;
use crate::request::query::FieldValidation;
use crate::schema::{self, Type};
use crate::status::{ApiError, Result};

/// Media types of ordinary bodies.
const BODIES: &[&str] = &["application/json"];

/// An object from a body, and the warnings its decoding earned.
pub(super) struct Decoded {
    pub(super) document: Document,
    pub(super) warnings: Vec<String>,
}

/// The type of a row in the schema table.
pub(super) fn type_of(row: &Resource) -> Result<&'static Type> {
    schema::find(row.schema)
        .ok_or_else(|| ApiError::internal(format!("no schema for {}", row.schema)))
}

/// Decodes the object in a create or update.
pub(super) fn object(call: &Call, row: &'static Resource, options: &str) -> Result<Decoded> {
    json_only(call)?;
    let mode = call.query.field_validation(options)?;
    let parsed = schema::decode::parse(&call.body)
        .map_err(|why| unrecognized(row.kind, &why, &call.body))?;
    let mut tree = parsed.value;
    type_meta::check(row, &tree, &call.body)?;
    let refuse = |why: String| cannot_handle(row, &why);
    let warnings = conform(row, &mut tree, parsed.duplicates, mode, refuse)?;
    Ok(Decoded {
        document: Document::from_body(row, tree, &call.body),
        warnings,
    })
}

/// Prunes and checks a tree; the findings become warnings or a refusal, which `refuse` words.
pub(super) fn conform(
    row: &Resource,
    tree: &mut Value,
    duplicates: Vec<String>,
    mode: FieldValidation,
    refuse: impl Fn(String) -> ApiError,
) -> Result<Vec<String>> {
    let mut findings = duplicates;
    schema::conform(type_of(row)?, tree, &mut findings).map_err(&refuse)?;
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

/// Decodes a small body of another type (a Binding, an Eviction, `DeleteOptions`).
pub(super) fn other(call: &Call, schema_type: &str, kind: &str) -> Result<Value> {
    json_only(call)?;
    let parsed =
        schema::decode::parse(&call.body).map_err(|why| unrecognized(kind, &why, &call.body))?;
    let mut tree = parsed.value;
    let found = schema::find(schema_type)
        .ok_or_else(|| ApiError::internal(format!("no schema for {schema_type}")))?;
    schema::conform(found, &mut tree, &mut Vec::new()).map_err(|why| {
        ApiError::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: {why}"
        ))
    })?;
    Ok(tree)
}

fn json_only(call: &Call) -> Result<()> {
    match call.media_type() {
        "" | "application/json" | "*/*" => Ok(()),
        _ => Err(ApiError::unsupported_media_type(BODIES)),
    }
}

/// A body in which not even a kind could be looked for.
pub(super) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
         json parse error: {why} ({})",
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
        Some(_) => hexadecimal(start),
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

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digits = |byte: &u8| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    };
    bytes.iter().flat_map(digits).collect()
}

//! From a body to a tree of the right kind: parse, check types, treat unknown fields as asked.

use serde_json::Value;

use super::call::Call;
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
    if call.body.is_empty() {
        return Err(ApiError::bad_request(
            "the request body is empty; an object was expected",
        ));
    }
    let parsed = schema::decode::parse(&call.body).map_err(|why| cannot_handle(row, &why))?;
    let mut tree = parsed.value;
    check_type_meta(row, &tree)?;
    let warnings = conform(row, &mut tree, parsed.duplicates, mode)?;
    Ok(Decoded {
        document: Document::from_body(row, tree, &call.body),
        warnings,
    })
}

/// Prunes and checks a tree; the findings become warnings or a refusal.
pub(super) fn conform(
    row: &Resource,
    tree: &mut Value,
    duplicates: Vec<String>,
    mode: FieldValidation,
) -> Result<Vec<String>> {
    let mut findings = duplicates;
    schema::conform(type_of(row)?, tree, &mut findings).map_err(|why| cannot_handle(row, &why))?;
    match mode {
        _ if findings.is_empty() => Ok(findings),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings),
        FieldValidation::Strict => {
            let listed = findings.join(", ");
            let why = format!("strict decoding error: {listed}");
            Err(cannot_handle(row, &why))
        }
    }
}

/// Decodes a small body of another type (a Binding, an Eviction, `DeleteOptions`).
pub(super) fn other(call: &Call, schema_type: &str, kind: &str) -> Result<Value> {
    json_only(call)?;
    let parsed = schema::decode::parse(&call.body).map_err(ApiError::bad_request)?;
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

/// `kind` and `apiVersion` may be left out of a body, but not be others.
fn check_type_meta(row: &Resource, tree: &Value) -> Result<()> {
    if !tree.is_object() {
        return Err(cannot_handle(row, "the body is not an object"));
    }
    let kind = tree["kind"].as_str().unwrap_or_default();
    let api_version = tree["apiVersion"].as_str().unwrap_or_default();
    let wanted = row.api_version();
    if !kind.is_empty() && kind != row.kind {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): got kind \"{kind}\"",
            row.kind
        )));
    }
    if !api_version.is_empty() && api_version != wanted {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
        )));
    }
    Ok(())
}

fn cannot_handle(row: &Resource, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}",
        kind = row.kind,
        version = row.version,
    ))
}

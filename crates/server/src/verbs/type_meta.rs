//! Checks `kind` and `apiVersion` of bodies. Errors have upstream's wording.

use serde_json::Value;

use super::decode::unrecognized;
use crate::registry::{self, RESOURCES, Resource, package};
use crate::status::{ApiError, Result};

/// The Go type in upstream's error messages.
const GO_TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                            Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// `kind` and `apiVersion` may be absent from a body, but not be those of another resource.
pub(super) fn check(row: &Resource, tree: &Value, body: &[u8]) -> Result<()> {
    if !tree.is_object() && !tree.is_null() {
        let json = crate::schema::go::json_type(tree);
        let why = format!("json: cannot unmarshal {json} into Go value of type {GO_TYPE_META}");
        return Err(unrecognized(row.kind, &why, body));
    }
    let wanted = row.api_version();
    let kind = text(row, tree, "kind", body)?.unwrap_or(row.kind);
    let version = text(row, tree, "apiVersion", body)?.unwrap_or(&wanted);
    if kind == row.kind && version == wanted {
        return Ok(());
    }
    Err(refusal(row, &wanted, kind, version))
}

/// The same for bodies of types without a row.
pub(super) fn check_other(schema_type: &str, kind: &str, tree: &Value) -> Result<()> {
    let named = |member: &str| tree[member].as_str().filter(|text| !text.is_empty());
    let is_kind = named("kind").is_none_or(|found| found == kind);
    let is_version = named("apiVersion").is_none_or(|version| {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        schema_type == format!("{}.{version}.{kind}", package(group))
    });
    if is_kind && is_version {
        return Ok(());
    }
    Err(other_kind(kind, tree))
}

/// The refusal of a body of another kind.
pub(super) fn other_kind(wanted: &str, tree: &Value) -> ApiError {
    let version = tree["apiVersion"].as_str().unwrap_or_default();
    let kind = tree["kind"].as_str().unwrap_or_default();
    let short = version.rsplit('/').next().unwrap_or_default();
    ApiError::bad_request(format!(
        "{kind} in version \"{short}\" cannot be handled as a {wanted}: \
         no kind \"{kind}\" is registered for version \"{version}\""
    ))
}

/// A string member; empty counts as absent.
fn text<'a>(row: &Resource, tree: &'a Value, field: &str, body: &[u8]) -> Result<Option<&'a str>> {
    match &tree[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.as_str()).filter(|t| !t.is_empty())),
        other => {
            let json = crate::schema::go::json_type(other);
            let why = format!(
                "json: cannot unmarshal {json} into Go struct field .{field} of type string"
            );
            Err(unrecognized(row.kind, &why, body))
        }
    }
}

/// The refusal of an object of another kind or version.
fn refusal(row: &Resource, wanted: &str, kind: &str, version: &str) -> ApiError {
    let served = RESOURCES
        .iter()
        .find(|other| other.kind == kind && other.api_version() == version);
    let short = version.rsplit('/').next().unwrap_or_default();
    let as_another = |why: String| {
        ApiError::bad_request(format!(
            "{kind} in version \"{short}\" cannot be handled as a {}: {why}",
            row.kind
        ))
    };
    match served {
        None => as_another(format!(
            "no kind \"{kind}\" is registered for version \"{version}\""
        )),
        // Another version of the same resource.
        Some(other) if registry::stored_row(other).storage() == row.storage() => {
            ApiError::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({wanted})"
            ))
        }
        Some(other) => as_another(format!(
            "converting ({}.{kind}) to ({}.{}): unknown conversion",
            other.version,
            package(row.group),
            row.kind
        )),
    }
}

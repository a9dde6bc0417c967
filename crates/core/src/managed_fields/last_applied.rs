//! The annotation of client-side apply, which server-side apply by kubectl takes over.

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use super::schema::Schema;
use super::typed::{compare, field_set_of};
use crate::go::json as go_json;

/// The manager that takes over: kubectl's default for server-side apply.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The most bytes that the annotations of an object may have together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The fields that client-side apply set and nobody changed since: kubectl may take them without a conflict.
pub(super) fn owned_fields<S: Schema>(
    schema: S,
    api_version: &str,
    live: &Value,
) -> Option<FieldSet> {
    let text = last_applied(live)?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied["apiVersion"] != api_version {
        return None;
    }
    let fields = field_set_of(schema, &applied).ok()?;
    let compared = compare(schema, &applied, live).ok()?;
    let fields = fields.difference(&compared.modified);
    Some(
        fields
            .difference(&compared.added)
            .difference(&compared.removed),
    )
}

fn last_applied(object: &Value) -> Option<&str> {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Updates the annotation of an object that has one, so that client-side apply can take over again.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let text = go_json::to_string(&config) + "\n";
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    if bytes_of(annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn bytes_of(annotations: &Map<String, Value>) -> usize {
    let entries = annotations.iter();
    let bytes = entries.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
    bytes.sum()
}

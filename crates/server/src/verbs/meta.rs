//! The metadata fields that the server sets.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::kinds;
use crate::names;
use crate::status::{ApiError, Result};

/// The current time as metadata has it: RFC 3339, whole seconds.
pub(crate) fn now() -> String {
    at(Timestamp::now())
}

/// A time as metadata has it.
pub(crate) fn at(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The metadata of a tree, created if it is absent.
pub(crate) fn of(tree: &mut Value) -> &mut Map<String, Value> {
    if !tree["metadata"].is_object() {
        tree["metadata"] = Value::Object(Map::new());
    }
    match &mut tree["metadata"] {
        Value::Object(map) => map,
        _ => unreachable!("metadata was just made an object"),
    }
}

/// A string of the metadata; empty when absent.
pub(crate) fn text<'a>(tree: &'a Value, field: &str) -> &'a str {
    tree["metadata"][field].as_str().unwrap_or_default()
}

/// Whether an object has finalizers.
pub(crate) fn has_finalizers(tree: &Value) -> bool {
    tree["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

/// Whether an object is being deleted.
pub(crate) fn is_deleting(tree: &Value) -> bool {
    tree["metadata"]["deletionTimestamp"].is_string()
}

/// Prepares the metadata of a new object. Does not generate a name.
pub(super) fn prepare_create(tree: &mut Value, namespace: Option<&str>) -> Result<()> {
    check_namespace(tree, namespace)?;
    let metadata = of(tree);
    if metadata
        .get("resourceVersion")
        .and_then(Value::as_str)
        .is_some_and(|v| !v.is_empty())
    {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::bad_request(message));
    }
    for field in [
        "resourceVersion",
        "selfLink",
        "managedFields",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        metadata.remove(field);
    }
    metadata.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".into(), now().into());
    Ok(())
}

/// Generates a name if the object has `generateName` and no name. Returns whether it did.
pub(super) fn generate_name(tree: &mut Value) -> bool {
    let prefix = text(tree, "generateName").to_owned();
    if prefix.is_empty() || !text(tree, "name").is_empty() {
        return false;
    }
    let name = names::generate_name(&prefix, |bound| fastrand::usize(..bound));
    of(tree).insert("name".into(), name.into());
    true
}

/// Checks that the namespace of a body is that of the URL, and sets it if it is absent.
pub(super) fn check_namespace(tree: &mut Value, namespace: Option<&str>) -> Result<()> {
    let given = text(tree, "namespace").to_owned();
    match namespace {
        Some(namespace) if given.is_empty() || given == namespace => {
            of(tree).insert("namespace".into(), namespace.into());
            Ok(())
        }
        Some(_) => Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        // A namespace in a cluster-scoped object is ignored.
        None => {
            of(tree).remove("namespace");
            Ok(())
        }
    }
}

/// Carries over the metadata that an update may not change or may leave out.
pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    let metadata = of(new);
    metadata.remove("selfLink");
    metadata.remove("managedFields");
    metadata.insert(
        "resourceVersion".into(),
        old["metadata"]["resourceVersion"].clone(),
    );
    kinds::meta::copy_omitted(&mut new["metadata"], &old["metadata"]);
}

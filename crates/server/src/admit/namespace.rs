//! Namespaces that are not there, or on their way out.

use serde_json::Value;

use crate::api::Api;
use crate::object;
use crate::registry::{self, Resource};
use crate::status::{ApiError, Result};

/// Namespaces that a cluster cannot do without.
const KEPT: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Nothing is created in a namespace that does not exist or is being deleted.
pub(super) fn check_open(api: &Api, row: &Resource, namespace: &str, tree: &Value) -> Result<()> {
    let namespaces =
        registry::find("", "v1", "namespaces").ok_or_else(ApiError::no_such_resource)?;
    let found = api.store.get(&object::key(namespaces, None, namespace));
    let stored = found.ok_or_else(|| ApiError::not_found(namespaces, namespace))?;
    if stored.head.field(namespaces, "status.phase") != Some("Terminating") {
        return Ok(());
    }
    let name = tree["metadata"]["name"].as_str().unwrap_or_default();
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = format!("namespace {namespace} is being terminated");
    let error = ApiError::forbidden(row, name, &why);
    Err(error.with_cause("NamespaceTerminating", &cause, "metadata.namespace"))
}

/// Some namespaces stay.
pub(super) fn check_deletable(row: &Resource, name: &str) -> Result<()> {
    if KEPT.contains(&name) {
        return Err(ApiError::forbidden(
            row,
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

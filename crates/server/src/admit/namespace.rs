//! Admission by namespace: nothing is created in a missing or terminating one, and some are never deleted.

use kennel_types::NamespacePhase;
use serde_json::Value;

use super::{Admission, Notes, Write, pod_security};
use crate::api::Api;
use crate::object::Stored;
use crate::registry::{self, Part, Resource};
use crate::status::{ApiError, Result};

/// Namespaces that no user may delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Refuses to create an object in a namespace that does not exist or is being deleted.
pub(super) fn check_open(api: &Api, row: &Resource, namespace: &str, tree: &Value) -> Result<()> {
    let namespaces = registry::core("namespaces");
    let stored = api.stored(namespaces, None, namespace)?;
    let phase = stored.head.field(namespaces, "status.phase");
    if phase.map(NamespacePhase::from) != Some(NamespacePhase::Terminating) {
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

/// The admission of namespaces themselves.
pub(crate) struct NamespaceAdmission;

impl Admission for NamespaceAdmission {
    fn validate(
        &self,
        write: Write<'_>,
        part: Part,
        new: &Value,
        old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<()> {
        if part != Part::Main {
            return Ok(());
        }
        pod_security::check_namespace(write, new, old, notes)
    }

    fn delete(&self, row: &'static Resource, stored: &Stored) -> Result<()> {
        let name = &*stored.head.name;
        if IMMORTAL.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(row, name, why));
        }
        Ok(())
    }
}

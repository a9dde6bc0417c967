//! Admission by limit ranges: sets the default requests and limits of containers, and refuses pods and claims that are
//! out of bounds. The rules are `kennel_core::limit_range`.

use kennel_core::limit_range;
use serde_json::Value;

use super::{Admission, Notes, Write, read};
use crate::object;
use crate::registry::{self, Part};
use crate::status::{ApiError, Result};
use crate::tree::{is_deleting, text};

/// The admission of claims for storage.
pub(crate) struct ClaimAdmission;

impl Admission for ClaimAdmission {
    fn validate(
        &self,
        write: Write<'_>,
        part: Part,
        new: &Value,
        old: Option<&Value>,
        _: &mut Notes,
    ) -> Result<()> {
        if part != Part::Main || old.is_some_and(is_deleting) {
            return Ok(());
        }
        check(write, new, limit_range::check_claim)
    }
}

/// The limit ranges of the write's namespace.
fn ranges(write: Write<'_>) -> Vec<Value> {
    let row = registry::core("limitranges");
    let prefix = object::prefix(row, write.namespace);
    let records = write.api.store.range(&prefix, None, None).records;
    records.iter().map(read).collect()
}

/// Sets what the containers of a new pod do not specify.
pub(super) fn set_defaults(write: Write<'_>, pod: &mut Value) {
    for range in ranges(write) {
        limit_range::set_defaults(&range, pod);
    }
}

/// Refuses a new pod that is out of bounds.
pub(super) fn check_pod(write: Write<'_>, pod: &Value) -> Result<()> {
    check(write, pod, limit_range::check_pod)
}

fn check(write: Write<'_>, object: &Value, rule: fn(&Value, &Value) -> Vec<String>) -> Result<()> {
    for range in ranges(write) {
        let mut errors = rule(&range, object);
        // Upstream says each thing once.
        let mut seen = std::collections::BTreeSet::new();
        errors.retain(|error| seen.insert(error.clone()));
        let why = match &errors[..] {
            [] => continue,
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let name = text(object, "metadata.name");
        return Err(ApiError::forbidden(write.row, name, &why));
    }
    Ok(())
}

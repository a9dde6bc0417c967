//! Validates pod templates.

use serde_json::Value;

use super::ratcheting::Ratcheting;
use super::{annotations as pod_annotations, spec};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{annotations, labels};
use crate::tree::list;

/// As upstream, the paths of labels and annotations omit `metadata`.
/// `old` is the template it replaces.
pub(crate) fn validate(errors: &mut Errors, template: &Value, old: Option<&Value>, at: &Path) {
    let nothing = Value::Null;
    let metadata = template.get("metadata").unwrap_or(&nothing);
    let pod_spec = template.get("spec").unwrap_or(&nothing);
    let old_spec = old.and_then(|old| old.get("spec"));
    let ratcheting = old_spec.map(Ratcheting::towards).unwrap_or_default();
    let any_cost = old
        .and_then(|old| old.get("metadata"))
        .is_some_and(pod_annotations::has_bad_cost);
    labels(errors, at, "labels", metadata);
    annotations(errors, at, metadata);
    let annotations_at = at.child("annotations");
    pod_annotations::validate(errors, metadata, pod_spec, &annotations_at, any_cost);
    let spec_at = at.child("spec");
    spec::validate(errors, pod_spec, &spec_at, None, ratcheting);
    pod_annotations::agree_with_fields(errors, metadata, pod_spec, &spec_at);
    if !list(pod_spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.forbidden(&spec_at.child("ephemeralContainers"), why);
    }
}

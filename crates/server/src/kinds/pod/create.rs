//! Preparation and validation of new pods.

use kennel_core::pod::qos;
use serde_json::{Value, json};

use super::ratcheting::Ratcheting;
use super::{affinity, annotations, containers, spec};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::meta;
use crate::tree;
use crate::tree::{list, text};

/// Sets the initial status and generation.
pub(super) fn prepare(pod: &mut Value) {
    meta::first_generation(pod);
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut status = json!({"phase": "Pending", "qosClass": qos::class(spec).name()});
    if !list(spec, "schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    tree::set(pod, "status", status);
    affinity::merge_label_keys(pod);
}

/// Validates a new pod.
pub(super) fn validate(pod: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    let at = Path::new("spec");
    metadata_and_spec(&mut errors, pod, Ratcheting::default(), false);
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.forbidden(&at.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&at.child("nodeName"), why);
    }
    annotations::agree_with_fields(&mut errors, metadata, spec, &at);
    errors
}

/// The rules for new and for updated pods.
pub(super) fn metadata_and_spec(
    errors: &mut Errors,
    pod: &Value,
    ratcheting: Ratcheting,
    any_cost: bool,
) {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    let at = Path::new("spec");
    let annotations_at = Path::new("metadata").child("annotations");
    annotations::validate(errors, metadata, spec, &annotations_at, any_cost);
    let name = Some(text(metadata, "name"));
    spec::validate(errors, spec, &at, name, ratcheting);
    tokens_need_an_account(errors, spec, &at);
    containers::untrimmed_images(errors, spec, &at);
}

fn tokens_need_an_account(errors: &mut Errors, spec: &Value, at: &Path) {
    if !text(spec, "serviceAccountName").is_empty() {
        return;
    }
    for (v, volume) in list(spec, "volumes").iter().enumerate() {
        let Some(projected) = volume.get("projected") else {
            continue;
        };
        for (s, source) in list(projected, "sources").iter().enumerate() {
            if source.get("serviceAccountToken").is_some() {
                let at = at.child("volumes").index(v).child("projected");
                let at = at.child("sources").index(s).child("serviceAccountToken");
                let why = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&at, why);
            }
        }
    }
}

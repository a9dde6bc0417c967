//! Preparation and validation of updates.

use std::fmt::Write as _;

use serde_json::Value;

use super::annotations;
use super::create::metadata_and_spec;
use super::gated;
use super::ratcheting::Ratcheting;
use super::tolerations::only_added;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::schema::semantic_eq as same;
use crate::tree::{self, int, list, text};

const UPDATABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,\
    `spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Copies the status, and increments the generation if the spec changed.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    tree::copy_from_old(new, old, "status");
    count_changes(new, old);
}

/// Increments the generation if the spec changed semantically.
pub(super) fn count_changes(new: &mut Value, old: &Value) {
    let before = tree::number(old, "metadata.generation");
    let changed = !same(tree::at(new, "spec"), tree::at(old, "spec"));
    let generation = before + i64::from(changed);
    tree::set(new, "metadata.generation", generation.into());
}

/// Validates the update from `old` to `new`.
pub(super) fn validate(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let (new_spec, old_spec) = (tree::at(new, "spec"), tree::at(old, "spec"));
    let (new_metadata, old_metadata) = (tree::at(new, "metadata"), tree::at(old, "metadata"));
    let ratcheting = Ratcheting::towards(old_spec);
    let any_cost = annotations::has_bad_cost(old_metadata);
    metadata_and_spec(&mut errors, new, ratcheting, any_cost);
    let annotations_at = Path::new("metadata").child("annotations");
    annotations::changes(&mut errors, new_metadata, old_metadata, &annotations_at);
    spec_changes(&mut errors, new_spec, old_spec);
    errors
}

fn spec_changes(errors: &mut Errors, new: &Value, old: &Value) {
    let at = Path::new("spec");
    for kind in ["containers", "initContainers"] {
        if list(new, kind).len() != list(old, kind).len() {
            let why = "pod updates may not add or remove containers";
            errors.forbidden(&at.child(kind), why);
            return;
        }
    }
    if !active_deadline(errors, new, old, &at) {
        return;
    }
    only_added(errors, new, old, &at);
    gates_only_removed(errors, new, old, &at);
    if same(new, old) {
        return;
    }
    let mut munged = new.clone();
    forgive(&mut munged, old);
    if !list(old, "schedulingGates").is_empty() {
        gated::narrow(errors, &mut munged, old, &at);
    }
    if !same(&munged, old) {
        let mut why = format!("{UPDATABLE}\n");
        difference(&mut why, "spec", old, &munged);
        errors.forbidden(&at, &why);
    }
}

/// The deadline may be set or shortened. Returns false if no further check is useful.
fn active_deadline(errors: &mut Errors, new: &Value, old: &Value, at: &Path) -> bool {
    let at = at.child("activeDeadlineSeconds");
    let before = int(old, "activeDeadlineSeconds");
    match int(new, "activeDeadlineSeconds") {
        Some(seconds) => {
            let mistakes = names::in_range(seconds, 0, i64::from(i32::MAX));
            if let Some(mistake) = mistakes.first() {
                errors.invalid(&at, seconds, mistake);
                return false;
            }
            if before.is_some_and(|before| before < seconds) {
                let why = "must be less than or equal to previous value";
                errors.invalid(&at, seconds, why);
                return false;
            }
        }
        None if before.is_some() => {
            let why = "must not update from a positive integer to nil value";
            errors.invalid(&at, "null", why);
        }
        None => {}
    }
    true
}

fn gates_only_removed(errors: &mut Errors, new: &Value, old: &Value, at: &Path) {
    let before = list(old, "schedulingGates");
    for (i, gate) in list(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !before.iter().any(|gate| text(gate, "name") == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&at.child("schedulingGates").index(i).child("name"), &why);
        }
    }
}

/// Copies the mutable fields from `old` to `spec`.
fn forgive(spec: &mut Value, old: &Value) {
    for kind in ["containers", "initContainers"] {
        for (i, before) in list(old, kind).iter().enumerate() {
            tree::copy_from_old(&mut spec[kind][i], before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        tree::copy_from_old(spec, old, field);
    }
    let grace = "terminationGracePeriodSeconds";
    if int(old, grace).is_some_and(|before| before < 0) && int(spec, grace) == Some(1) {
        tree::copy_from_old(spec, old, grace);
    }
}

/// The difference, one line per field and side.
pub(super) fn difference(out: &mut String, path: &str, old: &Value, new: &Value) {
    if same(old, new) {
        return;
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}.{key}");
                difference(out, &path, &old[key], &new[key]);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (i, (before, after)) in before.iter().zip(after).enumerate() {
                difference(out, &format!("{path}[{i}]"), before, after);
            }
        }
        _ => {
            for (sign, side) in [('-', old), ('+', new)] {
                if !side.is_null() {
                    let _ = writeln!(out, "{sign} {path}: {side}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Strategy as _;
    use crate::kinds::pod::Pod;
    use crate::kinds::testing::created;

    fn pod() -> Value {
        created(
            &Pod,
            &json!({"metadata": {"name": "p", "namespace": "d"}, "spec": {
                "containers": [{"name": "c", "image": "i:1"}],
                "tolerations": [{"key": "a", "operator": "Exists"}],
            }}),
        )
    }

    fn check(change: impl FnOnce(&mut Value), expected: &[&str]) -> Value {
        let old = pod();
        let mut new = old.clone();
        change(&mut new);
        Pod.default(&mut new);
        Pod.prepare_update(&mut new, &old);
        let found: Vec<String> = Pod
            .validate_update(&new, &old)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected);
        new
    }

    #[test]
    fn images_deadlines_and_tolerations_may_change() {
        let new = check(
            |pod| {
                pod["spec"]["containers"][0]["image"] = json!("i:2");
                pod["spec"]["activeDeadlineSeconds"] = json!(5);
                pod["spec"]["tolerations"] =
                    json!([{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]);
            },
            &[],
        );
        assert_eq!(new["metadata"]["generation"], 2);
    }

    #[test]
    fn labels_may_change_and_count_nothing() {
        let new = check(|pod| pod["metadata"]["labels"] = json!({"a": "b"}), &[]);
        assert_eq!(new["metadata"]["generation"], 1);
    }

    #[test]
    fn everything_else_may_not() {
        check(
            |pod| pod["spec"]["containers"][0]["command"] = json!(["x"]),
            &[
                "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n+ spec.containers[0].command: [\"x\"]\n",
            ],
        );
        check(
            |pod| {
                pod["spec"]["containers"] =
                    json!([{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:1"}]);
            },
            &["spec.containers: Forbidden: pod updates may not add or remove containers"],
        );
        check(
            |pod| pod["spec"]["schedulingGates"] = json!([{"name": "g"}]),
            &[
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
            ],
        );
    }

    #[test]
    fn a_status_sent_to_the_pod_is_ignored() {
        let new = check(|pod| pod["status"] = json!({"phase": "Failed"}), &[]);
        assert_eq!(
            new["status"],
            json!({"phase": "Pending", "qosClass": "BestEffort"})
        );
    }

    #[test]
    fn gated_pods_may_narrow_their_nodes() {
        let mut old = pod();
        old["spec"]["schedulingGates"] = json!([{"name": "g"}]);
        old["spec"]["nodeSelector"] = json!({"a": "b"});
        let mut new = old.clone();
        new["spec"]["nodeSelector"]["c"] = json!("d");
        new["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}}});
        assert_eq!(Pod.validate_update(&new, &old), []);
        new["spec"]["nodeSelector"] = json!({"c": "d"});
        assert_eq!(
            Pod.validate_update(&new, &old)[0].to_string(),
            "spec.nodeSelector: Invalid value: {\"c\":\"d\"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        );
    }
}

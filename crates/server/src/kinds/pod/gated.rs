//! Updates of pods with scheduling gates: node selector and node affinity may be narrowed.

use serde_json::Value;

use super::affinity::REQUIRED;
use crate::field::{ErrorList as _, Errors, Path};
use crate::schema::semantic_eq as same;
use crate::tree;
use crate::tree::{list, map};

/// Checks the changes, and reverts them in `spec` so that the caller can compare the rest with `old`.
pub(super) fn narrow(errors: &mut Errors, spec: &mut Value, old: &Value, at: &Path) {
    let before = map(old, "nodeSelector");
    let after = map(spec, "nodeSelector");
    if before
        .iter()
        .any(|(key, value)| after.get(key) != Some(value))
    {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let shown = Value::Object(after.clone());
        errors.invalid(&at.child("nodeSelector"), &shown, why);
    }
    tree::copy_from_old(spec, old, "nodeSelector");
    let affinity = "affinity.nodeAffinity";
    let (after, before) = (tree::at(spec, affinity).clone(), tree::at(old, affinity));
    if same(&after, before) {
        return;
    }
    let terms_at = at.child("affinity").child("nodeAffinity").child(REQUIRED);
    affinity_only_narrowed(errors, &after, before, &terms_at.child("nodeSelectorTerms"));
    tree::copy_from_old(spec, old, affinity);
    if !tree::has(old, "affinity") && tree::is_empty(tree::at(spec, "affinity")) {
        tree::remove(spec, "affinity");
    }
}

fn affinity_only_narrowed(errors: &mut Errors, new: &Value, old: &Value, at: &Path) {
    let terms = |affinity: &Value| -> Vec<Value> {
        let required = affinity.get(REQUIRED);
        required.map_or_else(Vec::new, |r| list(r, "nodeSelectorTerms").to_vec())
    };
    let (before, after) = (terms(old), terms(new));
    if before.is_empty() {
        return;
    }
    if before.len() != after.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.invalid(at, after, why);
        return;
    }
    for (i, (before, after)) in before.iter().zip(&after).enumerate() {
        if !only_narrowed(after, before) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.invalid(&at.index(i), after, why);
        }
    }
}

fn only_narrowed(new: &Value, old: &Value) -> bool {
    const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];
    let is_empty = |term: &Value| LISTS.iter().all(|key| list(term, key).is_empty());
    if is_empty(old) {
        // An empty term matches nothing, so adding requirements to it would widen it.
        return is_empty(new);
    }
    LISTS.iter().all(|key| {
        let (before, after) = (list(old, key), list(new, key));
        after.len() >= before.len() && before.iter().zip(after).all(|(a, b)| same(a, b))
    })
}

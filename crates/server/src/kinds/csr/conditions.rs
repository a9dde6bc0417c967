//! Validates the conditions of certificate signing requests.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, each};
use crate::tree::{has, list, list_mut, same, set, text};

const CONDITIONS: &str = "status.conditions";
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
/// Conditions whose status can only be `True`.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

fn of_type<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(object, "status.conditions")
        .iter()
        .filter(|condition| text(condition, "type") == kind)
        .collect()
}

/// Validates the conditions by themselves.
pub(super) fn check_conditions(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (condition, path) in each(object, &Path::default(), CONDITIONS) {
        let kind = text(condition, "type");
        let at_type = path.child("type");
        if kind.is_empty() {
            errors.required(&at_type, "");
        }
        let allowed: &[&str] = if FINAL.contains(&kind) {
            &["True"]
        } else {
            &STATUSES
        };
        choice(errors, condition, &path, "status", allowed);
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(other) {
            let words = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(&at_type, kind, words);
        }
        if !seen.insert(kind) {
            errors.duplicate(&at_type, kind);
        }
    }
}

/// A decision cannot be removed.
pub(super) fn check_removals(errors: &mut Errors, new: &Value, old: &Value) {
    for kind in FINAL {
        if of_type(new, kind).len() < of_type(old, kind).len() {
            let words = format!("updates may not remove a condition of type {kind:?}");
            errors.forbidden(&Path::new(CONDITIONS), &words);
        }
    }
}

/// Only the `approval` subresource may add a decision.
pub(super) fn check_decisions(errors: &mut Errors, new: &Value, old: &Value) {
    for kind in DECISIONS {
        let (after, before) = (of_type(new, kind), of_type(old, kind));
        let verb = if after.len() > before.len() {
            "add"
        } else if after.len() == before.len() && !after.iter().zip(&before).all(|(a, b)| same(a, b))
        {
            "modify"
        } else {
            continue;
        };
        let words = format!("updates may not {verb} a condition of type {kind:?}");
        errors.forbidden(&Path::new(CONDITIONS), &words);
    }
}

/// Copies the conditions of type `kind` from `old` if none was added or removed.
pub(super) fn keep_conditions(new: &mut Value, old: &Value, kind: &str) {
    let before: Vec<Value> = of_type(old, kind).into_iter().cloned().collect();
    if of_type(new, kind).len() != before.len() {
        return;
    }
    let of_kind = list_mut(new, "status.conditions")
        .iter_mut()
        .filter(|condition| text(condition, "type") == kind);
    for (condition, kept) in of_kind.zip(before) {
        *condition = kept;
    }
}

/// Sets the missing times of conditions to `now`.
pub fn stamp_conditions(new: &mut Value, old: &Value, now: &str) {
    for condition in list_mut(new, "status.conditions") {
        if !has(condition, "lastUpdateTime") {
            set(condition, "lastUpdateTime", json!(now));
        }
        if has(condition, "lastTransitionTime") {
            continue;
        }
        let unchanged = of_type(old, text(condition, "type"))
            .into_iter()
            .find(|before| text(before, "status") == text(condition, "status"));
        let since = unchanged.map_or(now, |before| match text(before, "lastTransitionTime") {
            "" => now,
            since => since,
        });
        set(condition, "lastTransitionTime", json!(since));
    }
}

//! Validates the conditions of certificate signing requests.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::{FieldError, Path};
use crate::tree::{has, list, list_mut, same, set, text};

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
/// Conditions whose status can only be `True`.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

fn path() -> Path {
    Path::new("status").child("conditions")
}

fn of_type<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(object, "status.conditions")
        .iter()
        .filter(|condition| text(condition, "type") == kind)
        .collect()
}

/// Validates the conditions by themselves.
pub(super) fn condition_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, condition) in list(object, "status.conditions").iter().enumerate() {
        let path = path().index(i);
        let kind = text(condition, "type");
        let at_type = path.child("type");
        if kind.is_empty() {
            errors.push(FieldError::required(&at_type, ""));
        }
        errors.extend(status_error(condition, kind, &path.child("status")));
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(other) {
            let words = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&at_type, &json!(kind), words));
        }
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&at_type, &json!(kind)));
        }
    }
    errors
}

fn status_error(condition: &Value, kind: &str, path: &Path) -> Option<FieldError> {
    let allowed: &[&str] = if FINAL.contains(&kind) {
        &["True"]
    } else {
        &STATUSES
    };
    match text(condition, "status") {
        "" => Some(FieldError::required(path, "")),
        status if allowed.contains(&status) => None,
        status => Some(FieldError::not_supported(path, &json!(status), allowed)),
    }
}

/// A decision cannot be removed.
pub(super) fn removal_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    FINAL
        .iter()
        .filter(|kind| of_type(new, kind).len() < of_type(old, kind).len())
        .map(|kind| {
            let words = format!("updates may not remove a condition of type {kind:?}");
            FieldError::forbidden(&path(), &words)
        })
        .collect()
}

/// Only the `approval` subresource may add a decision.
pub(super) fn decision_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
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
        errors.push(FieldError::forbidden(&path(), &words));
    }
    errors
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

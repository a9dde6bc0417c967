//! Validates topology spread constraints.

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{POSITIVE, one_of, optional_choice};
use crate::kinds::selector;
use crate::names;
use crate::tree::{int, list, number, text, texts};

const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];

/// Checks the constraints. `any_selector` accepts any selector, because the stored
/// object has an invalid one.
pub(super) fn all(errors: &mut Errors, spec: &Value, at: &Path, any_selector: bool) {
    let constraints = list(spec, "topologySpreadConstraints");
    for (i, constraint) in constraints.iter().enumerate() {
        let at = at.child("topologySpreadConstraints").index(i);
        let skew = number(constraint, "maxSkew");
        if skew <= 0 {
            errors.invalid(&at.child("maxSkew"), skew, POSITIVE);
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.required(&at.child("topologyKey"), "can not be empty");
        }
        let action = text(constraint, "whenUnsatisfiable");
        one_of(errors, &at.child("whenUnsatisfiable"), action, &ACTIONS);
        repeated(errors, constraint, &constraints[i + 1..], &at);
        min_domains(errors, constraint, action, &at);
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            optional_choice(errors, constraint, &at, name, &["Honor", "Ignore"]);
        }
        label_keys(errors, constraint, &at);
        if let Some(labels) = constraint.get("labelSelector")
            && !any_selector
        {
            selector::collect(errors, labels, &at.child("labelSelector"), false);
        }
    }
}

fn repeated(errors: &mut Errors, constraint: &Value, rest: &[Value], at: &Path) {
    let pair = |constraint: &Value| {
        let key = text(constraint, "topologyKey");
        format!("{{{key}, {}}}", text(constraint, "whenUnsatisfiable"))
    };
    let own = pair(constraint);
    if rest.iter().any(|other| pair(other) == own) {
        errors.duplicate(&at.child("{topologyKey, whenUnsatisfiable}"), own);
    }
}

fn min_domains(errors: &mut Errors, constraint: &Value, action: &str, at: &Path) {
    let Some(domains) = int(constraint, "minDomains") else {
        return;
    };
    let at = at.child("minDomains");
    if domains <= 0 {
        errors.invalid(&at, domains, POSITIVE);
    }
    if action != "DoNotSchedule" {
        let why =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.invalid(&at, domains, &why);
    }
}

fn label_keys(errors: &mut Errors, constraint: &Value, at: &Path) {
    if list(constraint, "matchLabelKeys").is_empty() {
        return;
    }
    let at = at.child("matchLabelKeys");
    let labels = constraint.get("labelSelector");
    if labels.is_none() {
        errors.forbidden(&at, "must not be specified when labelSelector is not set");
    }
    for (i, key) in texts(constraint, "matchLabelKeys").enumerate() {
        errors.invalid_each(&at.index(i), key, names::qualified_name(key));
        if labels.is_some_and(|labels| selects_by(labels, key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.invalid(&at.index(i), key, why);
        }
    }
}

fn selects_by(labels: &Value, key: &str) -> bool {
    labels
        .get("matchLabels")
        .is_some_and(|map| map.get(key).is_some())
        || list(labels, "matchExpressions")
            .iter()
            .any(|expression| text(expression, "key") == key)
}

//! The strategy of `PodDisruptionBudget`.

use serde_json::{Value, json};

use super::check::{not_negative, optional_choice};
use super::daemonset::strategy;
use super::meta::{first_generation, next_generation};
use super::{Strategy, selector};
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::{at, copy_from_old, has, list, map, number, set};

const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
/// The counters of a status, which are written even when they are zero.
const COUNTERS: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

/// The label of upstream by which one version says what the other cannot: that a selector selects nothing (in
/// policy/v1), or everything (in policy/v1beta1). No pod has it.
const V1BETA1_LABEL: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
/// The `apiVersion` of the stored version.
const V1: &str = "policy/v1";
const V1BETA1: &str = "policy/v1beta1";
/// The place of the selector.
const SELECTOR: &str = "/spec/selector";

/// Converts a stored budget to policy/v1beta1, whose empty selector selects nothing.
pub fn to_v1beta1(budget: &mut Value) {
    match budget.pointer_mut(SELECTOR) {
        Some(selector) if is_only(selector, "Exists") => *selector = json!({}),
        Some(selector) if is_empty(selector) => *selector = by_label("DoesNotExist"),
        _ => {}
    }
    set(budget, "apiVersion", json!(V1BETA1));
}

/// Converts a budget from policy/v1beta1 to the stored version, whose empty selector selects everything.
pub fn from_v1beta1(budget: &mut Value) {
    match budget.pointer_mut(SELECTOR) {
        Some(selector) if is_empty(selector) => *selector = by_label("Exists"),
        Some(selector) if is_only(selector, "DoesNotExist") => *selector = json!({}),
        Some(selector) => strip_label(selector),
        None => {}
    }
    set(budget, "apiVersion", json!(V1));
}

/// Removes the terms of the label, which must not become part of a selector with others.
fn strip_label(selector: &mut Value) {
    let Some(fields) = selector.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(terms)) = fields.get_mut("matchExpressions") {
        terms.retain(|term| term["key"] != V1BETA1_LABEL);
        if terms.is_empty() {
            fields.remove("matchExpressions");
        }
    }
}

/// A selector of all pods without the label, which are all, or of those with it, which are none.
fn by_label(operator: &str) -> Value {
    json!({"matchExpressions": [{"key": V1BETA1_LABEL, "operator": operator}]})
}

/// Whether a selector is one of [`by_label`].
fn is_only(selector: &Value, operator: &str) -> bool {
    let terms = list(selector, "matchExpressions");
    let is_it = |term: &Value| term["key"] == V1BETA1_LABEL && term["operator"] == operator;
    map(selector, "matchLabels").is_empty() && matches!(terms, [term] if is_it(term))
}

/// Whether there is a selector, and it has no terms.
fn is_empty(selector: &Value) -> bool {
    let terms = list(selector, "matchExpressions");
    selector.is_object() && terms.is_empty() && map(selector, "matchLabels").is_empty()
}

#[derive(Debug)]
pub struct PodDisruptionBudget;

impl Strategy for PodDisruptionBudget {
    fn prepare_create(&self, object: &mut Value) {
        let zeros = COUNTERS.map(|name| (name.to_owned(), json!(0)));
        set(object, "status", Value::Object(zeros.into_iter().collect()));
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "status");
        next_generation(new, old, &["spec"]);
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
        copy_from_old(new, old, "metadata.generation");
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let (spec, path) = (at(object, "spec"), Path::new("spec"));
        let limits = ["minAvailable", "maxUnavailable"];
        if limits.iter().all(|field| has(spec, field)) {
            let words = "minAvailable and maxUnavailable cannot be both set";
            errors.invalid(&path, spec, words);
        }
        for field in limits {
            if has(spec, field) {
                let (value, path) = (at(spec, field), path.child(field));
                strategy::count_or_percent(&mut errors, value, &path);
                strategy::at_most_all(&mut errors, value, &path);
            }
        }
        let labels = at(spec, "selector");
        selector::collect(&mut errors, labels, &path.child("selector"), false);
        let field = "unhealthyPodEvictionPolicy";
        optional_choice(&mut errors, spec, &path, field, &POLICIES);
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Errors {
        let mut errors = Errors::new();
        let (status, path) = (at(new, "status"), Path::new("status"));
        for field in COUNTERS {
            not_negative(&mut errors, &path, field, number(status, field));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, created, updated};
    use super::*;

    fn budget(spec: Value) -> Value {
        let mut object = json!({"metadata": {"name": "b", "namespace": "d"}});
        object["spec"] = spec;
        object
    }

    #[test]
    fn one_limit_that_is_a_count_or_a_percentage() {
        let check = |spec: Value, expected: &[&str]| {
            check_create(&PodDisruptionBudget, &budget(spec), expected);
        };
        check(json!({"minAvailable": 1, "selector": {}}), &[]);
        check(json!({"maxUnavailable": "20%"}), &[]);
        check(
            json!({"maxUnavailable": 1, "minAvailable": 1}),
            &[
                "spec: Invalid value: {\"maxUnavailable\":1,\"minAvailable\":1}: minAvailable and maxUnavailable cannot be both set",
            ],
        );
        check(
            json!({"minAvailable": -1}),
            &["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
        );
        check(
            json!({"minAvailable": "101%"}),
            &["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
        );
        check(
            json!({"unhealthyPodEvictionPolicy": "Never"}),
            &[
                "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
            ],
        );
    }

    #[test]
    fn an_empty_selector_means_the_opposite_in_the_old_version() {
        let converted = |by: fn(&mut Value), selector: &Value| {
            let mut object = budget(json!({"minAvailable": 1, "selector": selector}));
            by(&mut object);
            object["spec"]["selector"].clone()
        };
        for (old, new) in [
            (json!({}), by_label("Exists")),
            (by_label("DoesNotExist"), json!({})),
            (Value::Null, Value::Null),
            (
                json!({"matchLabels": {"a": "b"}}),
                json!({"matchLabels": {"a": "b"}}),
            ),
        ] {
            assert_eq!(converted(from_v1beta1, &old), new);
            assert_eq!(converted(to_v1beta1, &new), old);
        }
        // The label never is part of a selector that users write.
        let mixed = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": V1BETA1_LABEL, "operator": "Exists"}]});
        let stripped = json!({"matchLabels": {"a": "b"}});
        assert_eq!(converted(from_v1beta1, &mixed), stripped);
    }

    #[test]
    fn the_generation_counts_changes_of_the_spec() {
        let old = created(&PodDisruptionBudget, &budget(json!({"minAvailable": 1})));
        assert_eq!(old["metadata"]["generation"], 1);
        assert_eq!(old["status"]["disruptionsAllowed"], 0);
        let new = updated(
            &PodDisruptionBudget,
            &budget(json!({"minAvailable": 2})),
            &old,
        );
        assert_eq!(new["metadata"]["generation"], 2);
    }
}

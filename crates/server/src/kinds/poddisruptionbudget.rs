//! The strategy of `PodDisruptionBudget`.

use serde_json::{Value, json};

use super::check::{not_negative, optional_choice};
use super::daemonset::strategy;
use super::meta::{first_generation, next_generation};
use super::{Strategy, selector};
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::{at, copy_from_old, has, number, set};

const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
/// The counters of a status, which are written even when they are zero.
const COUNTERS: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

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

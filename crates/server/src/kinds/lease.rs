//! The strategy of Lease.
//!
//! Leases are written more often than all other objects together, nearly always only to change
//! `spec.renewTime`; [`is_renewal`] recognises these writes.

use kennel_store::Durability;
use serde_json::{Value, json};

use super::Strategy;
use super::meta::invalid_each;
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{at, has, int, remove, same, text};

const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

#[derive(Debug)]
pub struct Lease;

impl Strategy for Lease {
    fn durability(&self, new: &Value, old: &Value) -> Durability {
        if is_renewal(old, new) {
            Durability::Lazy
        } else {
            Durability::Synced
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = Path::new("spec");
        let mut errors = Vec::new();
        let mut at_least = |field: &'static str, least: i64, words: &str| {
            let value = at(object, "spec").get(field).and_then(Value::as_i64);
            if let Some(value) = value.filter(|value| *value < least) {
                errors.push(FieldError::invalid(
                    &path.child(field),
                    &json!(value),
                    words,
                ));
            }
        };
        at_least("leaseDurationSeconds", 1, "must be greater than 0");
        at_least("leaseTransitions", 0, "must be greater than or equal to 0");
        errors.extend(strategy_errors(object, &path));
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        self.validate_create(new)
    }
}

fn strategy_errors(object: &Value, path: &Path) -> Vec<FieldError> {
    let strategy = text(object, "spec.strategy");
    // Upstream repeats the last segment.
    let twice = path.child("strategy").child("strategy");
    let mut errors = Vec::new();
    if has(object, "spec.strategy") {
        if strategy.contains('/') {
            errors = invalid_each(&twice, &json!(strategy), names::qualified_name(strategy));
        } else if !STRATEGIES.contains(&strategy) {
            errors.push(FieldError::not_supported(
                &twice,
                &json!(strategy),
                &STRATEGIES,
            ));
        }
    }
    if strategy.is_empty() && !text(object, "spec.preferredHolder").is_empty() {
        let words = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), words));
    }
    errors
}

/// Whether only `spec.renewTime` changed.
pub fn is_renewal(old: &Value, new: &Value) -> bool {
    if same(at(old, "spec.renewTime"), at(new, "spec.renewTime")) {
        return false;
    }
    // The number of transitions changes with the holder, even if the name is the same.
    if int(old, "spec.leaseTransitions") != int(new, "spec.leaseTransitions") {
        return false;
    }
    same(&without_renewal(old), &without_renewal(new))
}

fn without_renewal(lease: &Value) -> Value {
    let mut rest = lease.clone();
    for path in [
        "spec.renewTime",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ] {
        remove(&mut rest, path);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_create;
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        check_create(&Lease, &json!({"spec": {"leaseDurationSeconds": 40}}), &[]);
        check_create(&Lease, &json!({}), &[]);
        check_create(
            &Lease,
            &json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}),
            &[
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
    }

    #[test]
    fn a_preferred_holder_needs_a_strategy() {
        check_create(
            &Lease,
            &json!({"spec": {"preferredHolder": "a"}}),
            &["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
        );
        check_create(
            &Lease,
            &json!({"spec": {"strategy": "Mine"}}),
            &[
                "spec.strategy.strategy: Unsupported value: \"Mine\": supported values: \
               \"OldestEmulationVersion\"",
            ],
        );
    }

    #[test]
    fn a_renewal_moves_the_time_alone() {
        let lease = |meta: Value, holder: &str, time: &str| json!({"metadata": meta, "spec": {"holderIdentity": holder, "renewTime": time}});
        let old = lease(json!({"name": "n", "resourceVersion": "1"}), "a", "t1");
        let check = |new: Value, expected| assert_eq!(is_renewal(&old, &new), expected, "{new}");
        check(
            lease(json!({"name": "n", "managedFields": [{}]}), "a", "t2"),
            true,
        );
        check(
            lease(json!({"name": "n", "resourceVersion": "1"}), "a", "t1"),
            false,
        );
        check(lease(json!({"name": "n"}), "b", "t2"), false);
        check(
            lease(json!({"name": "n", "labels": {"a": "b"}}), "a", "t2"),
            false,
        );
    }
}

//! The strategy of Lease.
//!
//! Leases are written more often than all other objects together, nearly always only to change
//! `spec.renewTime`; [`is_renewal`] recognises these writes.

use kennel_store::Durability;
use serde_json::Value;

use super::Strategy;
use super::check::{NOT_NEGATIVE, one_of};
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::registry::Part;
use crate::tree::{at, has, int, remove, same, text};

const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

#[derive(Debug)]
pub struct Lease;

impl Strategy for Lease {
    fn adds_fields(&self, _: Part) -> bool {
        false
    }

    fn durability(&self, new: &Value, old: &Value) -> Durability {
        if is_renewal(old, new) {
            Durability::Lazy
        } else {
            Durability::Synced
        }
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let mut at_least = |field: &'static str, least: i64, words: &str| {
            if let Some(value) = int(object, field).filter(|value| *value < least) {
                errors.invalid(&Path::new(field), value, words);
            }
        };
        at_least("spec.leaseDurationSeconds", 1, "must be greater than 0");
        at_least("spec.leaseTransitions", 0, NOT_NEGATIVE);
        check_strategy(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }
}

fn check_strategy(errors: &mut Errors, object: &Value) {
    let strategy = text(object, "spec.strategy");
    // Upstream repeats the last segment.
    let twice = Path::new("spec.strategy.strategy");
    if strategy.contains('/') {
        errors.invalid_each(&twice, strategy, names::qualified_name(strategy));
    } else if has(object, "spec.strategy") {
        one_of(errors, &twice, strategy, &STRATEGIES);
    }
    if strategy.is_empty() && !text(object, "spec.preferredHolder").is_empty() {
        let words = "may only be specified if `strategy` is defined";
        errors.forbidden(&Path::new("spec.preferredHolder"), words);
    }
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
    use serde_json::json;

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

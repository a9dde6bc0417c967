//! The strategy of PriorityClass.
//!
//! `admit` checks that at most one class is the global default, since that depends on other objects.

use serde_json::Value;

use super::Strategy;
use super::check::choice;
use super::meta::{first_generation, immutable};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::tree::{copy_from_old, default_to, flag, has, int, number, text};

/// The highest value of classes of users.
pub const USER_VALUE_MAX: i64 = 1_000_000_000;
pub const SYSTEM_PREFIX: &str = "system-";
pub const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

#[derive(Debug)]
pub struct PriorityClass;

impl Strategy for PriorityClass {
    fn default(&self, object: &mut Value) {
        // An empty policy is an error, an absent one is not.
        if !has(object, "preemptionPolicy") {
            default_to(object, "preemptionPolicy", POLICIES[0]);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "metadata.generation");
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        if text(object, "metadata.name").starts_with(SYSTEM_PREFIX) {
            errors.extend(system_error(object));
        } else if number(object, "value") > USER_VALUE_MAX {
            let words =
                format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}");
            errors.forbidden(&Path::new("value"), &words);
        }
        let root = Path::default();
        choice(&mut errors, object, &root, "preemptionPolicy", &POLICIES);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        if number(new, "value") != number(old, "value") {
            errors.forbidden(&Path::new("value"), "may not be changed in an update.");
        }
        immutable(&mut errors, new, old, "preemptionPolicy");
        errors
    }
}

/// A class with a system name must equal one of the system classes.
fn system_error(object: &Value) -> Option<FieldError> {
    let name = text(object, "metadata.name");
    let known = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
    let why = match known {
        None => format!("{name} is not a known system priority class"),
        Some((_, value)) if int(object, "value") != Some(*value) => {
            format!("value of {name} PriorityClass must be {value}")
        }
        Some(_) if flag(object, "globalDefault") => {
            format!("globalDefault of {name} PriorityClass must be false")
        }
        Some(_) => return None,
    };
    let words = format!(
        "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. \
         error: {why}"
    );
    Some(FieldError::forbidden(
        &Path::new("metadata").child("name"),
        &words,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{check_create, check_update, created};
    use super::*;

    fn class(name: &str, value: i64) -> Value {
        json!({"metadata": {"name": name}, "value": value})
    }

    #[test]
    fn defaults() {
        let object = created(&PriorityClass, &class("a", 1));
        assert_eq!(object["preemptionPolicy"], "PreemptLowerPriority");
        assert_eq!(object["metadata"]["generation"], 1);
    }

    #[test]
    fn values_and_reserved_names() {
        check_create(&PriorityClass, &class("a", USER_VALUE_MAX), &[]);
        check_create(
            &PriorityClass,
            &class("system-node-critical", 2_000_001_000),
            &[],
        );
        check_create(
            &PriorityClass,
            &class("a", USER_VALUE_MAX + 1),
            &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        );
        check_create(
            &PriorityClass,
            &class("system-mine", 1),
            &[
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved \
               for system use only. error: system-mine is not a known system priority class",
            ],
        );
        check_create(
            &PriorityClass,
            &class("system-node-critical", 1),
            &[
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved \
               for system use only. error: value of system-node-critical PriorityClass must be \
               2000001000",
            ],
        );
    }

    #[test]
    fn value_and_policy_stay() {
        let mut new = class("a", 2);
        new["preemptionPolicy"] = json!("Never");
        new["description"] = json!("other");
        check_update(
            &PriorityClass,
            &new,
            &class("a", 1),
            &[
                "value: Forbidden: may not be changed in an update.",
                "preemptionPolicy: Invalid value: \"Never\": field is immutable",
            ],
        );
        new["preemptionPolicy"] = json!("Now");
        check_create(
            &PriorityClass,
            &new,
            &[
                "preemptionPolicy: Unsupported value: \"Now\": supported values: \
               \"PreemptLowerPriority\", \"Never\"",
            ],
        );
    }
}

//! The strategy of `StorageClass`. Kennel stores classes and provisions no volumes.

use serde_json::Value;

use super::Strategy;
use super::check::{optional_choice, require};
use super::meta::immutable;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{default_to, map, text};

const MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];
const RECLAIM_POLICIES: [&str; 2] = ["Delete", "Retain"];
/// Upstream's bounds of the parameters: entries, and bytes of keys and values together.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE_MAX: usize = 256 << 10;

#[derive(Debug)]
pub struct StorageClass;

impl Strategy for StorageClass {
    fn default(&self, object: &mut Value) {
        default_to(object, "reclaimPolicy", RECLAIM_POLICIES[0]);
        default_to(object, "volumeBindingMode", MODES[0]);
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let root = Path::default();
        match text(object, "provisioner") {
            "" => require(&mut errors, &root, "provisioner"),
            name => {
                let path = Path::new("provisioner");
                let mistakes = names::qualified_name(&name.to_lowercase());
                errors.invalid_each(&path, name, mistakes);
            }
        }
        check_parameters(&mut errors, object);
        let policies = &RECLAIM_POLICIES;
        optional_choice(&mut errors, object, &root, "reclaimPolicy", policies);
        optional_choice(&mut errors, object, &root, "volumeBindingMode", &MODES);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        for field in [
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ] {
            immutable(&mut errors, new, old, field);
        }
        errors
    }
}

fn check_parameters(errors: &mut Errors, object: &Value) {
    let path = Path::new("parameters");
    let parameters = map(object, "parameters");
    if parameters.len() > PARAMETERS_MAX {
        return errors.too_long(&path, PARAMETERS_MAX);
    }
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if parameters.contains_key("") {
        errors.invalid(&path, "", "field can not be empty.");
    }
    if parameters.iter().map(size).sum::<usize>() > PARAMETERS_SIZE_MAX {
        errors.too_long(&path, PARAMETERS_SIZE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{check_create, check_update, created};
    use super::*;

    fn class(fields: &Value) -> Value {
        let mut class = json!({"metadata": {"name": "c"}, "provisioner": "csi.example.com"});
        for (key, value) in fields.as_object().unwrap() {
            class[key] = value.clone();
        }
        class
    }

    #[test]
    fn policies_have_defaults_and_choices() {
        let made = created(&StorageClass, &class(&json!({})));
        assert_eq!(made["reclaimPolicy"], "Delete");
        assert_eq!(made["volumeBindingMode"], "Immediate");
        check_create(
            &StorageClass,
            &class(&json!({"provisioner": "", "volumeBindingMode": "Later"})),
            &[
                "provisioner: Required value",
                "volumeBindingMode: Unsupported value: \"Later\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
            ],
        );
    }

    #[test]
    fn a_class_is_immutable() {
        check_update(
            &StorageClass,
            &class(&json!({"reclaimPolicy": "Retain"})),
            &class(&json!({})),
            &["reclaimPolicy: Invalid value: \"Retain\": field is immutable"],
        );
    }
}

//! The strategy of `RuntimeClass`.

use serde_json::{Value, json};

use super::Strategy;
use super::amount::resource_errors;
use super::meta::{immutable, invalid_each, labels};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{at, map, text};

#[derive(Debug)]
pub struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let handler = text(object, "handler");
        let wrong = names::dns1123_label(handler);
        let mut errors = invalid_each(&Path::new("handler"), &json!(handler), wrong);
        // As upstream, validates an overhead like limits, and reports it so.
        let path = Path::new("overhead").child("limits");
        for (name, value) in map(object, "overhead.podFixed") {
            errors.extend(resource_errors(name, value, &path.key(name)));
        }
        let path = Path::new("scheduling").child("nodeSelector");
        errors.extend(labels(at(object, "scheduling.nodeSelector"), &path));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, "handler", &Path::new("handler"))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, check_update};
    use super::*;

    #[test]
    fn the_handler_is_a_label() {
        check_create(&RuntimeClass, &json!({"handler": "runc"}), &[]);
        check_create(
            &RuntimeClass,
            &json!({"handler": "a.b", "overhead": {"podFixed": {"cpu": "-1"}}}),
            &[
                "handler: Invalid value: \"a.b\": must not contain dots",
                "overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ],
        );
        let missing = RuntimeClass.validate_create(&json!({}));
        assert!(
            missing[0].to_string().starts_with(
                "handler: Invalid value: \"\": a lowercase RFC 1123 label must consist"
            )
        );
    }

    #[test]
    fn the_handler_stays() {
        check_update(
            &RuntimeClass,
            &json!({"handler": "b"}),
            &json!({"handler": "a"}),
            &["handler: Invalid value: \"b\": field is immutable"],
        );
    }
}

//! The strategy of `RuntimeClass`.

use serde_json::Value;

use super::Strategy;
use super::amount::check_amount;
use super::check::labels;
use super::meta::immutable;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{map, text};

#[derive(Debug)]
pub struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn validate_create(&self, object: &Value) -> Errors {
        let handler = text(object, "handler");
        let mut errors = Errors::new();
        errors.invalid_each(
            &Path::new("handler"),
            handler,
            names::dns1123_label(handler),
        );
        // As upstream, validates an overhead like limits, and reports it so.
        let path = Path::new("overhead").child("limits");
        for (name, value) in map(object, "overhead.podFixed") {
            check_amount(&mut errors, name, value, &path.key(name));
        }
        labels(
            &mut errors,
            &Path::default(),
            "scheduling.nodeSelector",
            object,
        );
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        immutable(&mut errors, new, old, "handler");
        errors
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

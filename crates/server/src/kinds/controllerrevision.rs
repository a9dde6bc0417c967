//! The strategy of ControllerRevision: the data is immutable, the revision number is not.

use serde_json::Value;

use super::check::not_negative;
use super::{Strategy, meta};
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree;
use crate::tree::number;

#[derive(Debug)]
pub struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn default(&self, object: &mut Value) {
        if !tree::has(object, "revision") {
            tree::set(object, "revision", Value::from(0));
        }
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let at = Path::new("data");
        match tree::at(object, "data") {
            Value::Null => errors.required(&at, "data is mandatory"),
            Value::Object(_) => {}
            other => {
                errors.invalid(&at, other, "data must be a valid JSON object");
            }
        }
        revision(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        revision(&mut errors, new);
        meta::immutable(&mut errors, new, old, "data");
        errors
    }
}

fn revision(errors: &mut Errors, object: &Value) {
    let number = number(object, "revision");
    not_negative(errors, &Path::default(), "revision", number);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::{check, check_create};

    #[test]
    fn s1_3_11_data_must_be_an_object() {
        let strategy = ControllerRevision;
        check_create(&strategy, &json!({"revision": 1, "data": {}}), &[]);
        check_create(
            &strategy,
            &json!({}),
            &["data: Required value: data is mandatory"],
        );
        check_create(
            &strategy,
            &json!({"data": [1]}),
            &["data: Invalid value: [1]: data must be a valid JSON object"],
        );
    }

    #[test]
    fn s1_3_11_the_revision_may_change_and_the_data_may_not() {
        let old = json!({"revision": 1, "data": {"a": 1}});
        let strategy = ControllerRevision;
        check(
            &strategy.validate_update(&json!({"revision": 2, "data": {"a": 1}}), &old),
            &[],
        );
        check(
            &strategy.validate_update(&json!({"revision": -1, "data": {"a": 2}}), &old),
            &[
                "revision: Invalid value: -1: must be greater than or equal to 0",
                "data: Invalid value: {\"a\":2}: field is immutable",
            ],
        );
    }
}

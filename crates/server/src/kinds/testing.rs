//! Helpers of the tests of all kinds.

use serde_json::Value;

use super::Strategy;
use crate::field::FieldError;

/// Compares errors with the lines a user would read.
#[track_caller]
pub(crate) fn check(errors: &[FieldError], expected: &[&str]) {
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected);
}

/// A new object as the server makes it before validation.
pub(crate) fn created(strategy: &dyn Strategy, object: &Value) -> Value {
    let mut object = object.clone();
    strategy.default(&mut object);
    strategy.prepare_create(&mut object);
    object
}

/// Creates `object` and compares the errors.
#[track_caller]
pub(crate) fn check_create(strategy: &dyn Strategy, object: &Value, expected: &[&str]) {
    check(
        &strategy.validate_create(&created(strategy, object)),
        expected,
    );
}

/// The update of `old` to `new` as the server makes it before validation.
pub(crate) fn updated(strategy: &dyn Strategy, new: &Value, old: &Value) -> Value {
    let mut new = new.clone();
    strategy.default(&mut new);
    strategy.prepare_update(&mut new, old);
    new
}

/// Creates `old`, updates it to `new`, and compares the errors.
#[track_caller]
pub(crate) fn check_update(strategy: &dyn Strategy, new: &Value, old: &Value, expected: &[&str]) {
    let old = created(strategy, old);
    let new = updated(strategy, new, &old);
    check(&strategy.validate_update(&new, &old), expected);
}

//! Label selectors: validation, and matching against the labels of an object.

use serde_json::Value;

use super::check::{each, form, form_each, label_name};
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{list, map, text, text_entries, texts};

/// Validates a selector. `any_values` accepts invalid label values, for stored objects that
/// already have one.
pub fn validate(selector: &Value, at: &Path, any_values: bool) -> Errors {
    let mut errors = Errors::new();
    collect(&mut errors, selector, at, any_values);
    errors
}

pub(crate) fn collect(errors: &mut Errors, selector: &Value, at: &Path, any_values: bool) {
    for (key, value) in text_entries(selector, "matchLabels") {
        form(errors, at, "matchLabels", key, names::qualified_name(key));
        if !any_values {
            form(errors, at, "matchLabels", value, names::label_value(value));
        }
    }
    for (requirement, at) in each(selector, at, "matchExpressions") {
        expression(errors, requirement, &at, any_values);
    }
}

fn expression(errors: &mut Errors, requirement: &Value, at: &Path, any_values: bool) {
    let operator = text(requirement, "operator");
    let values = list(requirement, "values");
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.required(
            &at.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(
            &at.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.invalid(
            &at.child("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    label_name(errors, at, "key", text(requirement, "key"));
    if any_values {
        return;
    }
    form_each(errors, requirement, at, "values", names::label_value);
}

/// Whether a selector has neither labels nor expressions.
pub fn is_empty(selector: &Value) -> bool {
    map(selector, "matchLabels").is_empty() && list(selector, "matchExpressions").is_empty()
}

/// Whether `selector` matches an object with these labels. An absent selector matches nothing, an
/// empty one everything. An invalid requirement matches nothing.
pub fn matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    let label = |key: &str| {
        labels
            .and_then(|labels| labels.get(key))
            .and_then(Value::as_str)
    };
    let by_labels =
        text_entries(selector, "matchLabels").all(|(key, value)| label(key) == Some(value));
    by_labels
        && list(selector, "matchExpressions")
            .iter()
            .all(|requirement| {
                let present = label(text(requirement, "key"));
                let listed = || texts(requirement, "values").any(|value| Some(value) == present);
                match text(requirement, "operator") {
                    "In" => present.is_some() && listed(),
                    "NotIn" => present.is_none() || !listed(),
                    "Exists" => present.is_some(),
                    "DoesNotExist" => present.is_none(),
                    _ => false,
                }
            })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(selector: &Value, expected: &[&str]) {
        let found: Vec<String> = validate(selector, &Path::new("selector"), false)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn expressions_need_what_their_operator_needs() {
        check(
            &json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            &[
                "selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ],
        );
        check(
            &json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
            &[
                "selector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ],
        );
        check(
            &json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            &[
                "selector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector operator",
            ],
        );
        check(&json!({"matchLabels": {"a": "b"}}), &[]);
    }

    #[test]
    fn bad_values_are_refused_unless_they_were_there_before() {
        let selector = json!({"matchLabels": {"a": "not ok!"}});
        let at = Path::new("selector");
        assert_eq!(validate(&selector, &at, false).len(), 1);
        assert_eq!(validate(&selector, &at, true).len(), 0);
    }

    #[test]
    fn a_selector_matches_as_documented() {
        let labels = json!({"app": "a", "tier": "x"});
        let matched = |selector: Value| matches(Some(&selector), Some(&labels));
        assert!(matched(json!({"matchLabels": {"app": "a"}})));
        assert!(!matched(json!({"matchLabels": {"app": "b"}})));
        assert!(matched(json!({})));
        assert!(!matches(None, Some(&labels)));
        assert!(matched(
            json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}]})
        ));
        assert!(matched(
            json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["x"]}]})
        ));
        assert!(!matched(
            json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]})
        ));
    }
}

//! Validates tolerations.

use kennel_types::TaintEffect;
use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, each, form, label_name, one_of};
use crate::names;
use crate::tree::{list, text};

/// Checks the tolerations of a pod.
pub(super) fn all(errors: &mut Errors, spec: &Value, at: &Path) {
    for (toleration, at) in each(spec, at, "tolerations") {
        one(errors, toleration, &at);
    }
}

fn one(errors: &mut Errors, toleration: &Value, at: &Path) {
    let key = text(toleration, "key");
    let operator = text(toleration, "operator");
    let effect = text(toleration, "effect");
    let value = text(toleration, "value");
    if !key.is_empty() {
        label_name(errors, at, "key", key);
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid(&at.child("operator"), operator, why);
    }
    if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&at.child("effect"), effect, why);
    }
    match operator {
        "Equal" | "" => {
            let mistakes = names::label_value(value);
            if !mistakes.is_empty() {
                form(errors, at, "operator", value, vec![mistakes.join(";")]);
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.invalid(&at.child("operator"), value, why);
            }
        }
        other => one_of(errors, &at.child("operator"), other, &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        choice(errors, toleration, at, "effect", &TaintEffect::NAMES);
    }
}

/// Updates may add tolerations, and change only the seconds of existing ones.
pub(super) fn only_added(errors: &mut Errors, new: &Value, old: &Value, at: &Path) {
    let same = |one: &Value, other: &Value| {
        ["key", "operator", "value", "effect"]
            .iter()
            .all(|field| text(one, field) == text(other, field))
    };
    let kept = list(old, "tolerations")
        .iter()
        .all(|old| list(new, "tolerations").iter().any(|new| same(old, new)));
    if kept {
        return all(errors, new, at);
    }
    let why = "existing toleration can not be modified except its tolerationSeconds";
    errors.forbidden(&at.child("tolerations"), why);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(toleration: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        one(&mut errors, toleration, &Path::new("t"));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{toleration}");
    }

    #[test]
    fn tolerations_make_sense() {
        check(&json!({"operator": "Exists"}), &[]);
        check(
            &json!({"value": "x"}),
            &[
                "t.operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ],
        );
        check(
            &json!({"key": "a", "operator": "Gt", "value": "1"}),
            &["t.operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\""],
        );
    }

    #[test]
    fn tolerations_of_a_running_pod_are_only_added_to() {
        let old =
            json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]});
        let mut errors = Errors::new();
        let longer = json!({"tolerations": [{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}]});
        only_added(&mut errors, &longer, &old, &Path::new("spec"));
        assert_eq!(errors, []);
        only_added(&mut errors, &json!({}), &old, &Path::new("spec"));
        assert_eq!(
            errors[0].to_string(),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
        );
    }
}

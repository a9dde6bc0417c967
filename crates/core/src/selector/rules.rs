//! Validation of label keys, label values and the values of each operator, with upstream's messages.

use super::{Operator, SelectorError};
use crate::names;

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `path` is the field named in the message.
pub(super) fn check_key(key: &str, path: &str) -> Result<(), SelectorError> {
    into_result(key_error(key, path).into_iter().collect())
}

fn key_error(key: &str, path: &str) -> Option<String> {
    let mistakes = names::qualified_name(key);
    (!mistakes.is_empty()).then(|| {
        format!(
            "{path}: Invalid value: {}: {}",
            quoted(key),
            mistakes.join("; ")
        )
    })
}

fn into_result(mut errors: Vec<String>) -> Result<(), SelectorError> {
    match errors.len() {
        0 => Ok(()),
        1 => Err(SelectorError(errors.remove(0))),
        _ => Err(SelectorError(format!("[{}]", errors.join(", ")))),
    }
}

/// Validates the key, the number of values and the values.
pub(super) fn check_requirement(
    key: &str,
    operator: Operator,
    values: &[String],
) -> Result<(), SelectorError> {
    let mut errors: Vec<String> = key_error(key, "key").into_iter().collect();
    if let Some(detail) = wrong_count(operator, values.len()) {
        let shown = serde_json::Value::from(values.to_vec());
        errors.push(format!("values: Invalid value: {shown}: {detail}"));
    }
    let numeric = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    for (index, value) in values.iter().enumerate() {
        if numeric && value.parse::<i64>().is_err() {
            errors.push(format!(
                "values[{index}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be \
                 an integer",
                quoted(value)
            ));
        }
    }
    for (index, value) in values.iter().enumerate() {
        let mistakes = names::label_value(value);
        if !mistakes.is_empty() {
            errors.push(format!(
                "values[{index}][{key}]: Invalid value: {}: {}",
                quoted(value),
                mistakes.join("; ")
            ));
        }
    }
    into_result(errors)
}

fn wrong_count(operator: Operator, count: usize) -> Option<&'static str> {
    match operator {
        Operator::In | Operator::NotIn => {
            (count == 0).then_some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
            (count != 1).then_some("exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist => {
            (count != 0).then_some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan => {
            (count != 1).then_some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, mistakes: usize) {
        assert_eq!(names::qualified_name(key).len(), mistakes, "{key}");
    }

    #[test]
    fn keys() {
        check("app", 0);
        check("kubernetes.io/os", 0);
        check("a/b/c", 1);
        check("", 2);
        check("/x", 1);
        check("Big.io/x", 1);
        check("a..b/x", 1);
        check(&"x".repeat(63), 0);
        check(&"x".repeat(64), 1);
        check(&format!("{}/x", "y".repeat(254)), 1);
        check("é", 1);
    }

    #[test]
    fn values() {
        assert!(names::label_value("").is_empty());
        assert!(names::label_value("a_b.c-d").is_empty());
        assert_eq!(names::label_value("-a").len(), 1);
        assert_eq!(
            names::label_value(&"v".repeat(64)),
            ["must be no more than 63 bytes"]
        );
    }
}

//! What a label's key and value may look like, and which values an operator takes.
//!
//! The checks return upstream's explanations as text; where the text is shown is for others to say.

use super::{Operator, SelectorError};
use crate::names;

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The key as a check of its own, shown at `path`.
pub(super) fn check_key(key: &str, path: &str) -> Result<(), SelectorError> {
    refuse(key_complaint(key, path).into_iter().collect())
}

fn key_complaint(key: &str, path: &str) -> Option<String> {
    let mistakes = names::qualified_name(key);
    (!mistakes.is_empty()).then(|| {
        format!(
            "{path}: Invalid value: {}: {}",
            quoted(key),
            mistakes.join("; ")
        )
    })
}

fn refuse(mut complaints: Vec<String>) -> Result<(), SelectorError> {
    match complaints.len() {
        0 => Ok(()),
        1 => Err(SelectorError(complaints.remove(0))),
        _ => Err(SelectorError(format!("[{}]", complaints.join(", ")))),
    }
}

/// Key, number of values and values of a requirement.
pub(super) fn check_requirement(
    key: &str,
    operator: Operator,
    values: &[String],
) -> Result<(), SelectorError> {
    let mut complaints: Vec<String> = key_complaint(key, "key").into_iter().collect();
    if let Some(detail) = wrong_count(operator, values.len()) {
        let shown = serde_json::Value::from(values.to_vec());
        complaints.push(format!("values: Invalid value: {shown}: {detail}"));
    }
    let numeric = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    for (index, value) in values.iter().enumerate() {
        if numeric && value.parse::<i64>().is_err() {
            complaints.push(format!(
                "values[{index}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be \
                 an integer",
                quoted(value)
            ));
        }
    }
    for (index, value) in values.iter().enumerate() {
        let mistakes = names::label_value(value);
        if !mistakes.is_empty() {
            complaints.push(format!(
                "values[{index}][{key}]: Invalid value: {}: {}",
                quoted(value),
                mistakes.join("; ")
            ));
        }
    }
    refuse(complaints)
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

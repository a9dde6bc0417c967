//! What a label's key and value may look like, and which values an operator takes.
//!
//! The checks return upstream's explanations as text; where the text is shown is for others to say.

use super::{Operator, SelectorError};

const NAME_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                         and end with an alphanumeric character";
const NAME_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
                              alphanumeric characters, '-' or '.', and must start and end with an \
                              alphanumeric character";
const SUBDOMAIN_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// Everything wrong with a label key (a qualified name). Empty if it is fine.
pub fn key_mistakes(key: &str) -> Vec<String> {
    let example = "e.g. 'MyName',  or 'my.name',  or '123-abc'";
    let pattern = format!("({example}, regex used for validation is '{NAME_PATTERN}')");
    let mut mistakes = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                mistakes.push("prefix part must be non-empty".to_owned());
            } else {
                let found = subdomain_mistakes(prefix);
                mistakes.extend(found.into_iter().map(|m| format!("prefix part {m}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {NAME_RULE} {pattern} with an optional DNS subdomain prefix and \
                 '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        mistakes.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX {
        mistakes.push(format!(
            "name part must be no more than {NAME_MAX} characters"
        ));
    }
    if !is_name(name) {
        mistakes.push(format!("name part {NAME_RULE} {pattern}"));
    }
    mistakes
}

/// Everything wrong with a label value. Empty if it is fine.
pub fn value_mistakes(value: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if value.len() > NAME_MAX {
        mistakes.push(format!("must be no more than {NAME_MAX} characters"));
    }
    if !value.is_empty() && !is_name(value) {
        mistakes.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
             or 'my_value',  or '12345', regex used for validation is '({NAME_PATTERN})?')"
        ));
    }
    mistakes
}

fn subdomain_mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        mistakes.push(format!("must be no more than {SUBDOMAIN_MAX} characters"));
    }
    if !text.split('.').all(is_dns_label) {
        mistakes.push(format!(
            "{SUBDOMAIN_RULE} (e.g. 'example.com', regex used for validation is \
             '{SUBDOMAIN_PATTERN}')"
        ));
    }
    mistakes
}

fn bounded_by_alphanumerics(text: &str, inner: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter()
        .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| inner(*byte))
}

fn is_name(text: &str) -> bool {
    bounded_by_alphanumerics(text, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
    })
}

fn is_dns_label(text: &str) -> bool {
    bounded_by_alphanumerics(text, |b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The key as a check of its own, shown at `path`.
pub(super) fn check_key(key: &str, path: &str) -> Result<(), SelectorError> {
    refuse(key_complaint(key, path).into_iter().collect())
}

fn key_complaint(key: &str, path: &str) -> Option<String> {
    let mistakes = key_mistakes(key);
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
        let mistakes = value_mistakes(value);
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
        assert_eq!(key_mistakes(key).len(), mistakes, "{key}");
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
        assert!(value_mistakes("").is_empty());
        assert!(value_mistakes("a_b.c-d").is_empty());
        assert_eq!(value_mistakes("-a").len(), 1);
        assert_eq!(
            value_mistakes(&"v".repeat(64)),
            ["must be no more than 63 characters"]
        );
    }
}

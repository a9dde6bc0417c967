//! `LabelSelector` objects (`matchLabels` and `matchExpressions`) as selectors.

use serde_json::Value;

use super::{Operator, Requirement, Selector, SelectorError};

/// Reads a `LabelSelector`; see [`Selector::from_object`].
pub(super) fn from_object(object: &Value) -> Result<Selector, SelectorError> {
    if object.is_null() {
        return Ok(Selector::nothing());
    }
    let mut requirements = Vec::new();
    if let Some(labels) = object.get("matchLabels").and_then(Value::as_object) {
        for (key, value) in labels {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, [value])?);
        }
    }
    if let Some(expressions) = object.get("matchExpressions").and_then(Value::as_array) {
        for expression in expressions {
            requirements.push(from_expression(expression)?);
        }
    }
    Ok(Selector::of(requirements))
}

fn from_expression(expression: &Value) -> Result<Requirement, SelectorError> {
    let text = |name: &str| {
        expression
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let operator = match text("operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            return Err(SelectorError(format!(
                "\"{other}\" is not a valid label selector operator"
            )));
        }
    };
    let values = expression.get("values").and_then(Value::as_array);
    let values = values.into_iter().flatten().filter_map(Value::as_str);
    Requirement::new(text("key"), operator, values.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: &Value, printed: &str) {
        let selector = Selector::from_object(object).unwrap();
        assert_eq!(selector.to_string(), printed, "{object}");
    }

    #[test]
    fn objects_become_requirements() {
        check(&json!({}), "");
        check(&json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2");
        check(
            &json!({"matchLabels": {"z": "1"}, "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "b", "operator": "NotIn", "values": ["x"]},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist", "values": []}]}),
            "a in (x,y),b notin (x),c,!d,z=1",
        );
    }

    #[test]
    fn empty_selects_everything_and_null_nothing() {
        assert!(Selector::from_object(&json!({})).unwrap().is_everything());
        let nothing = Selector::from_object(&Value::Null).unwrap();
        assert!(!nothing.matches(|_| Some("x")));
        assert!(!nothing.matches(|_| None));
    }

    #[test]
    fn unknown_operators_are_rejected() {
        let object = json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]});
        assert_eq!(
            Selector::from_object(&object).unwrap_err().to_string(),
            "\"Gt\" is not a valid label selector operator"
        );
    }
}

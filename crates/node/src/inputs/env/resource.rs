//! `resourceFieldRef` of the downward API.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use crate::json::text;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported container resource : {0}")]
pub(in crate::inputs) struct ResourceError(String);

/// The value of a reference such as `limits.cpu`, in units of the divisor, rounded up. A limit that is not set is the
/// node's allocatable amount.
pub(in crate::inputs) fn value(
    container: &Value,
    reference: &Value,
    allocatable: &Value,
) -> Result<String, ResourceError> {
    let path = text(reference, "resource");
    let (list, name) = path
        .split_once('.')
        .filter(|(list, name)| ["limits", "requests"].contains(list) && is_supported(name))
        .ok_or_else(|| ResourceError(path.to_owned()))?;
    let set = &container["resources"][list][name];
    let amount = match (set, list) {
        (Value::Null, "limits") => &allocatable[name],
        (set, _) => set,
    };
    Ok(divide(name, Quantity::read(amount), &reference["divisor"]).to_string())
}

fn is_supported(name: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-")
}

fn divide(name: &str, amount: Quantity, divisor: &Value) -> i64 {
    let divisor = match Quantity::read(divisor) {
        zero if zero.is_zero() => Quantity::from_units(1, zero.format()),
        divisor => divisor,
    };
    let (amount, divisor) = match name {
        "cpu" => (amount.milli_value(), divisor.milli_value()),
        _ => (amount.value(), divisor.value()),
    };
    let whole = amount / divisor;
    whole + i64::from(amount % divisor > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(resource: &str, divisor: &str, expected: &str) {
        let container = json!({"resources": {
            "limits": {"memory": "1500Ki"},
            "requests": {"cpu": "250m", "memory": 1024, "hugepages-2Mi": "4Mi"},
        }});
        let allocatable = json!({"cpu": "2", "memory": "8Gi", "ephemeral-storage": "1G"});
        let reference = json!({"resource": resource, "divisor": divisor});
        let found = value(&container, &reference, &allocatable);
        assert_eq!(found.unwrap(), expected, "{resource} / {divisor}");
    }

    #[test]
    fn amounts_are_whole_divisors_rounded_up() {
        check("requests.cpu", "1", "1");
        check("requests.cpu", "1m", "250");
        check("requests.cpu", "100m", "3");
        check("requests.memory", "0", "1024");
        check("limits.memory", "1Mi", "2");
        check("limits.memory", "1", "1536000");
        check("requests.hugepages-2Mi", "1Mi", "4");
        check("requests.ephemeral-storage", "1", "0");
    }

    #[test]
    fn an_unset_limit_is_the_nodes_allocatable_amount() {
        check("limits.cpu", "1", "2");
        check("limits.ephemeral-storage", "1M", "1000");
    }

    #[test]
    fn other_resources_are_rejected() {
        let found = value(&json!({}), &json!({"resource": "limits.gpu"}), &json!({}));
        assert_eq!(
            found.unwrap_err().to_string(),
            "unsupported container resource : limits.gpu"
        );
    }
}

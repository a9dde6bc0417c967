//! Validates maps of quantities, such as a node's capacity.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::check::{NOT_NEGATIVE, POSITIVE};
use crate::field::{ErrorList as _, Errors, Path};

/// Resources whose quantities must be integers.
const WHOLE: [&str; 10] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "count",
];

pub fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

/// Validates the amount of the resource `name`.
pub fn check_amount(errors: &mut Errors, name: &str, value: &Value, path: &Path) {
    let Some(amount) = quantity(value) else {
        return;
    };
    if amount.sign() < 0 {
        errors.invalid(path, amount.to_string(), NOT_NEGATIVE);
    }
    if is_counted(name) && !amount.is_whole() {
        errors.invalid(path, amount.to_string(), "must be an integer");
    }
}

/// The same, for an amount that must be positive.
pub fn check_positive(errors: &mut Errors, name: &str, value: &Value, path: &Path) {
    check_amount(errors, name, value, path);
    if let Some(amount) = quantity(value).filter(|amount| amount.sign() <= 0) {
        errors.invalid(path, amount.to_string(), POSITIVE);
    }
}

/// Includes extended resources, which device plugins provide.
fn is_counted(name: &str) -> bool {
    let extended = name
        .split_once('/')
        .is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"));
    extended || WHOLE.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::check;
    use super::*;

    #[test]
    fn amounts() {
        let path = Path::new("status").child("capacity").child("x");
        let judge = |name: &str, value: Value, expected: &[&str]| {
            let mut errors = Errors::new();
            check_amount(&mut errors, name, &value, &path);
            check(&errors, expected);
        };
        judge("cpu", json!("1500m"), &[]);
        judge("pods", json!(110), &[]);
        judge(
            "cpu",
            json!("-1"),
            &["status.capacity.x: Invalid value: \"-1\": must be greater than or equal to 0"],
        );
        judge(
            "example.com/gpu",
            json!("500m"),
            &["status.capacity.x: Invalid value: \"500m\": must be an integer"],
        );
    }
}

//! The quality of service class of a pod, from the requests and limits of its containers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

const COMPUTE: [&str; 2] = ["cpu", "memory"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No requests and no limits.
    BestEffort,
    Burstable,
    /// Every container has limits equal to its requests.
    Guaranteed,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Self::BestEffort => "BestEffort",
            Self::Burstable => "Burstable",
            Self::Guaranteed => "Guaranteed",
        }
    }
}

/// The class of the pod with this `spec`.
pub fn class(spec: &Value) -> Class {
    let resources = &spec["resources"];
    if has_any(resources, "requests") || has_any(resources, "limits") {
        return class_of(std::iter::once(resources));
    }
    let lists = ["containers", "initContainers"];
    let containers = lists.iter().filter_map(|list| spec[list].as_array());
    class_of(
        containers
            .flatten()
            .map(|container| &container["resources"]),
    )
}

fn has_any(resources: &Value, list: &str) -> bool {
    resources[list]
        .as_object()
        .is_some_and(|list| !list.is_empty())
}

fn class_of<'a>(all: impl Iterator<Item = &'a Value>) -> Class {
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut every_limit_set = true;
    for resources in all {
        sum(resources, "requests", &mut requests);
        every_limit_set &= sum(resources, "limits", &mut limits) == COMPUTE.len();
    }
    if requests.is_empty() && limits.is_empty() {
        return Class::BestEffort;
    }
    let equal = requests
        .iter()
        .all(|(name, amount)| limits.get(name) == Some(amount));
    if every_limit_set && equal && requests.len() == limits.len() {
        Class::Guaranteed
    } else {
        Class::Burstable
    }
}

/// Adds the positive compute amounts of one list, and returns how many there were.
fn sum<'a>(resources: &'a Value, list: &str, total: &mut BTreeMap<&'a str, Quantity>) -> usize {
    let mut found = 0;
    for (name, amount) in resources[list].as_object().into_iter().flatten() {
        let amount = Quantity::read(amount);
        if COMPUTE.contains(&name.as_str()) && amount > Quantity::ZERO {
            let entry = total.entry(name).or_insert(Quantity::ZERO);
            *entry = *entry + amount;
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(resources: &Value, expected: &str) {
        let spec = json!({"containers": [{"name": "c", "resources": resources}]});
        assert_eq!(class(&spec).name(), expected, "{spec}");
    }

    #[test]
    fn the_class_follows_requests_and_limits() {
        check(&json!({}), "BestEffort");
        check(&json!({"requests": {"cpu": "1"}}), "Burstable");
        check(
            &json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
            "Burstable",
        );
        let both = json!({"cpu": "1", "memory": "1Gi"});
        check(&json!({"limits": both, "requests": both}), "Guaranteed");
        check(
            &json!({"limits": both, "requests": {"cpu": "500m", "memory": "1Gi"}}),
            "Burstable",
        );
        check(&json!({"requests": {"example.com/gpu": "1"}}), "BestEffort");
    }

    #[test]
    fn one_container_without_limits_makes_the_pod_burstable() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let spec = json!({"containers": [
            {"name": "a", "resources": {"limits": both, "requests": both}},
            {"name": "b", "resources": {}},
        ]});
        assert_eq!(class(&spec), Class::Burstable);
    }
}

//! The requests and limits of a pod as a whole, exact and by resource name, for quotas and limit ranges. The scheduler
//! has whole numbers of its own (`schedule::resources`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Quantity>;

/// What of a pod's resources to sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestsOrLimits {
    Requests,
    Limits,
}

impl RequestsOrLimits {
    fn field(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// The amounts in a map of quantities.
pub fn amounts(map: &Value) -> Amounts {
    let entries = map.as_object().into_iter().flatten();
    entries
        .map(|(name, amount)| (name.clone(), Quantity::read(amount)))
        .collect()
}

pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = total.entry(name.clone()).or_default();
        *entry = *entry + *amount;
    }
}

/// Raises each amount to at least the other's.
pub fn raise_to(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = total.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

/// Whether the pod sets requests or limits of its own, beside those of its containers.
pub fn has_pod_level(spec: &Value) -> bool {
    let set = |field| !amounts(&spec["resources"][field]).is_empty();
    set("requests") || set("limits")
}

/// Whether an init container runs beside the main ones. `Container::is_sidecar` of typed containers is the same rule.
pub fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// The most that the containers of a pod use together, without the pod's overhead. Init containers run one after the
/// other, beside the sidecars that started before them.
pub fn total(spec: &Value, which: RequestsOrLimits) -> Amounts {
    let field = which.field();
    let of = |container: &Value| amounts(&container["resources"][field]);
    let list = |name| spec[name].as_array().into_iter().flatten();
    let mut total = Amounts::new();
    for container in list("containers") {
        add(&mut total, &of(container));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut own = of(container);
        if is_sidecar(container) {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        raise_to(&mut starting, &own);
    }
    raise_to(&mut total, &starting);
    let of_pod = amounts(&spec["resources"][field]);
    total.extend(of_pod.into_iter().filter(|(name, _)| is_pod_level(name)));
    total
}

/// The same with the overhead of the pod's runtime class, which does not limit what had no limit.
pub fn total_with_overhead(spec: &Value, which: RequestsOrLimits) -> Amounts {
    let mut total = total(spec, which);
    let mut overhead = amounts(&spec["overhead"]);
    if which == RequestsOrLimits::Limits {
        overhead.retain(|name, _| total.get(name).is_some_and(|limit| !limit.is_zero()));
    }
    add(&mut total, &overhead);
    total
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: &Value, which: RequestsOrLimits, expected: &[(&str, &str)]) {
        let found = total_with_overhead(spec, which);
        let found: Vec<(&str, String)> = found
            .iter()
            .map(|(name, amount)| (name.as_str(), amount.to_string()))
            .collect();
        let expected: Vec<(&str, String)> = expected
            .iter()
            .map(|(name, amount)| (*name, (*amount).to_owned()))
            .collect();
        assert_eq!(found, expected, "{spec}");
    }

    fn container(requests: &Value) -> Value {
        json!({"resources": {"requests": requests, "limits": requests}})
    }

    #[test]
    fn containers_add_up_and_init_containers_run_in_turn() {
        let mut sidecar = container(&json!({"cpu": "100m"}));
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({
            "containers": [container(&json!({"cpu": "1", "a.b/c": 1})), container(&json!({"cpu": "500m"}))],
            "initContainers": [
                container(&json!({"cpu": "2", "memory": "1Gi"})), sidecar,
                container(&json!({"memory": "2Gi", "cpu": "1600m"})),
            ],
        });
        let expected = [("a.b/c", "1"), ("cpu", "2"), ("memory", "2Gi")];
        check(&spec, RequestsOrLimits::Requests, &expected);
    }

    #[test]
    fn overhead_is_requested_and_raises_limits_that_exist() {
        let spec = json!({
            "containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}],
            "overhead": {"cpu": "250m", "memory": "1Mi"},
        });
        check(
            &spec,
            RequestsOrLimits::Requests,
            &[("cpu", "1250m"), ("memory", "1Mi")],
        );
        check(&spec, RequestsOrLimits::Limits, &[("cpu", "1250m")]);
    }

    #[test]
    fn amounts_of_the_pod_replace_those_of_its_containers() {
        let spec = json!({
            "containers": [container(&json!({"cpu": "1", "ephemeral-storage": "1Gi"}))],
            "resources": {"requests": {"cpu": "3", "ephemeral-storage": "9Gi"}},
        });
        let expected = [("cpu", "3"), ("ephemeral-storage", "1Gi")];
        check(&spec, RequestsOrLimits::Requests, &expected);
    }
}

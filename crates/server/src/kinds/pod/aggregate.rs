//! The sum of the containers' requests.

use std::collections::BTreeMap;

pub(crate) use kennel_core::pod::resources::is_sidecar;
use kennel_core::quantity::Quantity;
use serde_json::Value;

use crate::tree::{list, map};

type Amounts = BTreeMap<String, Quantity>;

/// The larger of two sums: regular containers and sidecars, or an init container and the sidecars that
/// started before it.
pub(crate) fn container_requests(spec: &Value) -> Amounts {
    let mut total = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut total, &requests(container));
    }
    let mut sidecars = Amounts::new();
    let mut init_peak = Amounts::new();
    for container in list(spec, "initContainers") {
        let mut running = requests(container);
        if is_sidecar(container) {
            add(&mut total, &running);
            add(&mut sidecars, &running);
            running.clone_from(&sidecars);
        } else {
            add(&mut running, &sidecars);
        }
        raise(&mut init_peak, &running);
    }
    raise(&mut total, &init_peak);
    total
}

fn requests(container: &Value) -> Amounts {
    let requests = map(container, "resources.requests").iter();
    requests
        .map(|(name, amount)| (name.clone(), Quantity::read(amount)))
        .collect()
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = total.entry(name.clone()).or_insert(Quantity::ZERO);
        *entry = *entry + *amount;
    }
}

fn raise(peak: &mut Amounts, seen: &Amounts) {
    for (name, amount) in seen {
        let entry = peak.entry(name.clone()).or_insert(*amount);
        if *amount > *entry {
            *entry = *amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sidecars_count_beside_containers_and_below_later_inits() {
        let cpu = |name: &str, amount: &str| json!({"name": name, "resources": {"requests": {"cpu": amount}}});
        let mut sidecar = cpu("s", "100m");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "containers": [cpu("a", "100m"), cpu("b", "200m")],
            "initContainers": [sidecar, cpu("i", "500m")],
        });
        assert_eq!(container_requests(&spec)["cpu"].to_string(), "600m");
    }
}

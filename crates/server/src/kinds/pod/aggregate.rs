//! What all containers of a pod request together.

use std::collections::BTreeMap;

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::read::{entries, list, quantity, text};

type Amounts = BTreeMap<String, Quantity>;

/// The sum over regular containers and sidecars, or what an init container needs while it runs
/// beside the sidecars started before it, whichever is more.
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

/// Whether an init container keeps running beside the regular ones.
pub(crate) fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn requests(container: &Value) -> Amounts {
    let Some(resources) = container.get("resources") else {
        return Amounts::new();
    };
    entries(resources, "requests")
        .map(|(name, amount)| (name.to_owned(), quantity(amount)))
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

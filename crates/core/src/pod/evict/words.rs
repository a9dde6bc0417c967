//! What an evicted pod is told.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Candidate, ContainerUse, EVICTED, Met, Signal};
use crate::pod::status::Verdict;
use crate::quantity::Quantity;

/// Why a pod had to go: what was short, and which of its containers used more than they asked for.
pub fn low(met: &Met, pod: &Value, candidate: &Candidate) -> Verdict {
    let signal = met.threshold.signal;
    let resource = signal.resource();
    let bound = met.threshold.quantity(met.reading.capacity);
    let available = signal.amount(met.reading.available);
    let mut message = format!(
        "The node was low on resource: {resource}. Threshold quantity: {bound}, available: {available}. "
    );
    for used in candidate.containers.iter().flatten() {
        message.push_str(&offence(signal, pod, used).unwrap_or_default());
    }
    Verdict {
        reason: EVICTED.to_owned(),
        message,
    }
}

fn offence(signal: Signal, pod: &Value, container: &ContainerUse) -> Option<String> {
    let used = match signal {
        Signal::Memory => container.memory,
        Signal::NodeDisk | Signal::ImageDisk => container.layer + container.logs,
        _ => return None,
    };
    let resource = signal.resource();
    let mut containers = pod["spec"]["containers"].as_array()?.iter();
    let spec = containers.find(|spec| spec["name"] == container.name.as_str())?;
    let request = &spec["resources"]["requests"][resource];
    let request = if request.is_null() {
        Quantity::ZERO
    } else {
        Quantity::read(request)
    };
    let used = signal.amount(used);
    let mut text = String::new();
    let name = &container.name;
    write!(
        text,
        "Container {name} was using {used}, request is {request}, has larger consumption of {resource}. "
    )
    .ok()?;
    (used > request).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod::evict::{Reading, defaults};

    #[test]
    fn the_message_says_what_was_short_and_who_used_it() {
        let met = Met {
            threshold: defaults()[0],
            reading: Reading {
                available: 85640 << 10,
                capacity: 1 << 30,
            },
        };
        let pod = json!({"spec": {"containers": [
            {"name": "a", "resources": {"requests": {"memory": "64Mi"}}},
            {"name": "b"}, {"name": "c", "resources": {"requests": {"memory": "64Mi"}}}]}});
        let used = |name: &str, memory| ContainerUse {
            name: name.to_owned(),
            memory,
            ..ContainerUse::default()
        };
        let containers = vec![used("a", 200 << 20), used("b", 1 << 10), used("c", 1)];
        let candidate = Candidate {
            containers: Some(containers),
            ..Candidate::default()
        };
        assert_eq!(
            low(&met, &pod, &candidate),
            Verdict {
                reason: "Evicted".to_owned(),
                message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: \
                    85640Ki. Container a was using 200Mi, request is 64Mi, has larger consumption of \
                    memory. Container b was using 1Ki, request is 0, has larger consumption of memory. "
                    .to_owned(),
            }
        );
    }
}

//! The message of an eviction.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Candidate, ContainerUsage, Signal, ThresholdMet, evicted};
use crate::pod::status::PodFailure;
use crate::quantity::Quantity;

/// Names the resource that was short and the containers that used more than their requests.
pub fn low_on_resource(crossed: &ThresholdMet, pod: &Value, candidate: &Candidate) -> PodFailure {
    let signal = crossed.threshold.signal;
    let resource = signal.resource();
    let bound = crossed.threshold.quantity(crossed.reading.capacity);
    let available = signal.amount(crossed.reading.available);
    let mut message = format!(
        "The node was low on resource: {resource}. Threshold quantity: {bound}, available: {available}. "
    );
    for used in candidate.containers.iter().flatten() {
        message.push_str(&above_request(signal, pod, used).unwrap_or_default());
    }
    PodFailure {
        disruption: Some(message.clone()),
        ..evicted(message)
    }
}

fn above_request(signal: Signal, pod: &Value, container: &ContainerUsage) -> Option<String> {
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
    use crate::pod::eviction::{Reading, defaults};

    #[test]
    fn the_message_names_the_resource_and_the_containers() {
        let crossed = ThresholdMet {
            threshold: defaults()[0],
            reading: Reading {
                available: 85640 << 10,
                capacity: 1 << 30,
            },
        };
        let pod = json!({"spec": {"containers": [
            {"name": "a", "resources": {"requests": {"memory": "64Mi"}}},
            {"name": "b"}, {"name": "c", "resources": {"requests": {"memory": "64Mi"}}}]}});
        let used = |name: &str, memory| ContainerUsage {
            name: name.to_owned(),
            memory,
            ..ContainerUsage::default()
        };
        let containers = vec![used("a", 200 << 20), used("b", 1 << 10), used("c", 1)];
        let candidate = Candidate {
            containers: Some(containers),
            ..Candidate::default()
        };
        let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: \
            85640Ki. Container a was using 200Mi, request is 64Mi, has larger consumption of \
            memory. Container b was using 1Ki, request is 0, has larger consumption of memory. ";
        assert_eq!(
            low_on_resource(&crossed, &pod, &candidate),
            PodFailure {
                reason: "Evicted".to_owned(),
                message: message.to_owned(),
                disruption: Some(message.to_owned()),
            }
        );
    }
}

//! The pod status that a kubelet writes.
//!
//! Conditions that other clients set are kept unchanged; a condition whose status does not change keeps its
//! transition time.

mod conditions;
mod containers;
mod ephemeral;
mod phase;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use kennel_types::{Monotonic, PodSpec, Timestamp};
use serde_json::{Map, Value, json};

use super::{Observed, Tracker};
pub use conditions::{KUBELET_CONDITIONS, is_kubelet_condition};

#[derive(Clone, Copy, Debug)]
pub struct StatusInput<'a> {
    /// The pod as the API server has it, with the last status.
    pub pod: &'a Value,
    pub spec: &'a PodSpec,
    pub observed: &'a Observed,
    pub tracker: &'a Tracker,
    pub host_ips: &'a [IpAddr],
    /// The prefix of container ids, such as `containerd`.
    pub runtime: &'a str,
    /// Set when the node rejected, evicted or ended the pod.
    pub failure: Option<&'a PodFailure>,
    pub now: Monotonic,
    pub wall_time: Timestamp,
}

/// Why a node rejected or ended a pod: the status's reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    /// Such as `Evicted` or `OutOfcpu`.
    pub reason: String,
    pub message: String,
    /// The message of the condition `DisruptionTarget`, for a pod that the node ended in favour of others.
    pub disruption: Option<String>,
}

pub fn status(input: &StatusInput<'_>) -> Value {
    let phase = phase::phase(input);
    let mut status = Map::new();
    let mut set = |key: &str, value: Value| {
        if !value.is_null() {
            status.insert(key.to_owned(), value);
        }
    };
    let old = &input.pod["status"];
    set("phase", json!(phase.as_str()));
    set(
        "observedGeneration",
        input.pod["metadata"]["generation"].clone(),
    );
    let start_time = match &old["startTime"] {
        Value::Null => json!(input.wall_time.to_string()),
        old => old.clone(),
    };
    set("startTime", start_time);
    set("qosClass", old["qosClass"].clone());
    if let Some(failure) = input.failure {
        set("reason", json!(failure.reason));
        set("message", json!(failure.message));
    }
    set_addresses(input, &mut set);
    set("conditions", conditions::conditions(input, phase));
    let init = &input.spec.init_containers;
    if !init.is_empty() {
        let statuses = containers::statuses(input, init, true);
        set("initContainerStatuses", statuses);
    }
    let statuses = containers::statuses(input, &input.spec.containers, false);
    set("containerStatuses", statuses);
    let ephemeral = &input.spec.ephemeral_containers;
    if !ephemeral.is_empty() {
        let statuses = ephemeral::statuses(input, ephemeral);
        set("ephemeralContainerStatuses", statuses);
    }
    Value::Object(status)
}

fn set_addresses(input: &StatusInput<'_>, set: &mut impl FnMut(&str, Value)) {
    let list = |addresses: &[IpAddr]| -> Value {
        addresses
            .iter()
            .map(|address| json!({"ip": address}))
            .collect()
    };
    if let Some(first) = input.host_ips.first() {
        set("hostIP", json!(first));
        set("hostIPs", list(input.host_ips));
    }
    let pod_ips = match input.observed.sandbox.as_ref() {
        Some(_) if input.spec.host_network => input.host_ips,
        Some(sandbox) => &sandbox.addresses,
        None => &[],
    };
    if let Some(first) = pod_ips.first() {
        set("podIP", json!(first));
        set("podIPs", list(pod_ips));
    }
}

//! What to tell the API of a pod: the status that a kubelet would write.
//!
//! Conditions that others set are carried along untouched; a condition that stays as it was keeps its time.

mod conditions;
mod containers;
mod phase;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{Instant, Memory, Observed, Spec};
pub use conditions::OURS;
pub use phase::Phase;

/// All that a status depends on.
#[derive(Clone, Copy, Debug)]
pub struct Story<'a> {
    /// The pod, as the API has it.
    pub pod: &'a Value,
    /// Its spec.
    pub spec: &'a Spec,
    /// What runs.
    pub observed: &'a Observed,
    /// What was.
    pub memory: &'a Memory,
    /// The node's own addresses.
    pub host: &'a [IpAddr],
    /// What the runtime is called in container ids, such as `containerd`.
    pub runtime: &'a str,
    /// Why the node ended the pod, if it did.
    pub verdict: Option<&'a Verdict>,
    /// The time, monotonic.
    pub now: Instant,
    /// The time, as statuses have it.
    pub stamp: &'a str,
}

/// Why a node ended or refused a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Such as `Evicted` or `OutOfcpu`.
    pub reason: String,
    /// The details.
    pub message: String,
}

/// The status to write.
pub fn status(story: &Story<'_>) -> Value {
    let phase = phase::of(story);
    let mut status = Map::new();
    let mut set = |key: &str, value: Value| {
        if !matches!(&value, Value::Null) {
            status.insert(key.to_owned(), value);
        }
    };
    let old = &story.pod["status"];
    set("phase", json!(phase.name()));
    set(
        "observedGeneration",
        story.pod["metadata"]["generation"].clone(),
    );
    set("startTime", or(&old["startTime"], || json!(story.stamp)));
    set("qosClass", old["qosClass"].clone());
    set("nominatedNodeName", Value::Null);
    if let Some(verdict) = story.verdict {
        set("reason", json!(verdict.reason));
        set("message", json!(verdict.message));
    }
    addresses(story, &mut set);
    set("conditions", conditions::of(story, phase));
    let init = &story.spec.init_containers;
    if !init.is_empty() {
        set("initContainerStatuses", containers::of(story, init, true));
    }
    set(
        "containerStatuses",
        containers::of(story, &story.spec.containers, false),
    );
    Value::Object(status)
}

fn or(old: &Value, new: impl FnOnce() -> Value) -> Value {
    match old {
        Value::Null => new(),
        old => old.clone(),
    }
}

fn addresses(story: &Story<'_>, set: &mut impl FnMut(&str, Value)) {
    let list = |addresses: &[IpAddr]| -> Value {
        addresses
            .iter()
            .map(|address| json!({"ip": address}))
            .collect()
    };
    if let Some(first) = story.host.first() {
        set("hostIP", json!(first));
        set("hostIPs", list(story.host));
    }
    let shared = story.pod["spec"]["hostNetwork"] == true;
    let sandbox = story.observed.sandbox.as_ref();
    let own = match sandbox {
        Some(_) if shared => story.host,
        Some(sandbox) => &sandbox.addresses,
        None => &[],
    };
    if let Some(first) = own.first() {
        set("podIP", json!(first));
        set("podIPs", list(own));
    }
}

//! `/stats/summary`, in the form of the kubelet (`stats/v1alpha1`).
//!
//! One field is ours: `windowNanoSeconds`, the time that `usageNanoCores` is the average of.

use std::collections::HashMap;
use std::sync::Arc;

use kennel_core::pod::eviction::Reading;
use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::{Comparison, ContainerUsage, PodUsage, Rate, pods};
use crate::pods::CachedPod;

/// What a summary is made of.
pub(in crate::kubelet_api) struct Contents<'a> {
    pub(in crate::kubelet_api) node: &'a str,
    pub(in crate::kubelet_api) pods: Vec<Arc<CachedPod>>,
    pub(in crate::kubelet_api) compared: &'a Comparison,
    /// Sizes of writable layers in bytes, by container id; empty if they were not asked for.
    pub(in crate::kubelet_api) disks: HashMap<String, u64>,
}

pub(in crate::kubelet_api) fn summary(contents: &Contents<'_>) -> Value {
    let (compared, latest) = (contents.compared, &contents.compared.latest);
    let mut node = json!({"nodeName": contents.node});
    if let Some(nanos) = latest.cpu {
        node["cpu"] = cpu(latest.time, nanos, compared.of_node());
    }
    if let Some(Reading {
        available,
        capacity,
    }) = latest.memory
    {
        node["memory"] = memory(latest.time, capacity.saturating_sub(available));
        node["memory"]["availableBytes"] = available.into();
    }
    let pods = pods(&contents.pods, latest);
    let pods: Vec<Value> = pods.iter().map(|pod| of_pod(contents, pod)).collect();
    json!({"node": node, "pods": pods})
}

fn of_pod(contents: &Contents<'_>, pod: &PodUsage<'_>) -> Value {
    let (compared, id) = (contents.compared, &pod.cached.pod.id);
    let time = compared.latest.time;
    let containers = pod.containers.iter();
    let described: Vec<Value> = containers
        .clone()
        .map(|container| of_container(contents, container))
        .collect();
    let mut of_pod = json!({
        "podRef": {"name": id.name, "namespace": id.namespace, "uid": id.uid},
        "containers": described,
    });
    let started = &pod.cached.status["startTime"];
    if started.is_string() {
        of_pod["startTime"] = started.clone();
    }
    if !pod.containers.is_empty() {
        let rates = containers.clone().filter_map(|one| rate(compared, one));
        let used = containers.clone().map(|one| one.usage.cpu).sum();
        of_pod["cpu"] = cpu(time, used, Rate::sum(rates));
        of_pod["memory"] = memory(time, containers.map(|one| one.usage.memory).sum());
    }
    of_pod
}

fn of_container(contents: &Contents<'_>, container: &ContainerUsage<'_>) -> Value {
    let (compared, usage) = (contents.compared, container.usage);
    let time = compared.latest.time;
    let mut of_container = json!({
        "name": usage.container,
        "cpu": cpu(time, usage.cpu, rate(compared, container)),
        "memory": memory(time, usage.memory),
    });
    if let Some(started) = container.started() {
        of_container["startTime"] = json!(started);
    }
    if let Some(bytes) = contents.disks.get(&usage.id) {
        of_container["rootfs"] = json!({"time": time, "usedBytes": bytes});
    }
    of_container
}

fn rate(compared: &Comparison, container: &ContainerUsage<'_>) -> Option<Rate> {
    compared.of_container(container.usage, container.started())
}

fn cpu(time: Timestamp, nanos: u64, rate: Option<Rate>) -> Value {
    let mut cpu = json!({"time": time, "usageCoreNanoSeconds": nanos});
    if let Some(rate) = rate {
        cpu["usageNanoCores"] = rate.nano_cores.into();
        let window = u64::try_from(rate.window.as_nanos()).unwrap_or(u64::MAX);
        cpu["windowNanoSeconds"] = window.into();
    }
    cpu
}

fn memory(time: Timestamp, working_set: u64) -> Value {
    json!({"time": time, "workingSetBytes": working_set})
}

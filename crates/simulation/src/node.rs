//! What a simulated node writes about itself: its Node object, its status, its Lease and its events. The
//! [`fleet`](crate::fleet) decides when.

use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_client::{api, clock};
use kennel_types::{ConditionStatus, ConditionType, Node, NodeStatus};
use serde_json::{Value, json};

use super::{Simulation, address};
use crate::seeded_random::SeededRandom;

/// The kubelet's lease duration.
const LEASE_SECONDS: u32 = 40;
const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_GROUP: &str = "coordination.k8s.io/v1";
const NODES: &str = "/api/v1/nodes";

/// Creates the Node object or, if it exists, updates its labels and status. Returns its uid. Only a node that has
/// just booted replaces the boot id of an existing object.
pub(super) async fn register(
    writer: &Writer,
    object: &Value,
    booted: bool,
) -> Result<String, Failure> {
    match writer.send(&Call::create(NODES, object.to_string())).await {
        Ok(answer) => return Ok(answer.written().uid),
        Err(failure) if failure.is(409) => {}
        Err(failure) => return Err(failure),
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{NODES}/{name}");
    let stored = writer.send(&Call::get(path.as_str())).await?.tree()?;
    let stored: Node = serde_json::from_value(stored).unwrap_or_default();
    let labels = &object["metadata"]["labels"];
    let stored_labels = stored.metadata.labels.unwrap_or_default();
    let differs = |(key, value): (&String, &Value)| {
        stored_labels.get(key).map(String::as_str) != value.as_str()
    };
    let mut wanted = labels.as_object().into_iter().flatten();
    if wanted.any(differs) {
        let patch = json!({"metadata": {"labels": labels}});
        let call = Call::patch(path.as_str(), Content::Merge, &patch);
        writer.send(&call).await?;
    }
    let mut status = object["status"].clone();
    if !booted && let Some(info) = status["nodeInfo"].as_object_mut() {
        info.remove("bootID");
    }
    let changed = changed_conditions(&stored.status);
    status["conditions"] = conditions(&changed, &clock::now_rfc3339());
    patch_status(writer, name, &status).await?;
    Ok(stored.metadata.uid.unwrap_or_default())
}

/// Writes the node's conditions. Those in `changed` differ from what the API has.
pub(super) async fn report_status(
    writer: &Writer,
    name: &str,
    changed: &[ConditionType],
) -> Result<(), Failure> {
    let conditions = conditions(changed, &clock::now_rfc3339());
    patch_status(writer, name, &json!({ "conditions": conditions })).await
}

async fn patch_status(writer: &Writer, name: &str, status: &Value) -> Result<(), Failure> {
    let path = format!("{NODES}/{name}/status");
    let patch = json!({ "status": status });
    let call = Call::patch(path, Content::Strategic, &patch);
    writer.send(&call).await.map(drop)
}

/// Renews the node's lease; creates it if there is none.
pub(super) async fn renew_lease(writer: &Writer, name: &str, uid: &str) -> Result<(), Failure> {
    let leases = api::group_path(LEASE_GROUP, LEASE_NAMESPACE, "leases");
    let now = clock::now_micros();
    let renewal = json!({"spec": {"renewTime": now}});
    let call = Call::patch(format!("{leases}/{name}"), Content::Merge, &renewal);
    match writer.send(&call).await {
        Err(failure) if failure.is(404) => {
            let lease = lease(name, uid, &now).to_string();
            match writer.send(&Call::create(leases, lease)).await {
                // An earlier, slow renewal created it just now.
                Err(failure) if failure.is(409) => Ok(()),
                result => result.map(drop),
            }
        }
        result => result.map(drop),
    }
}

fn lease(name: &str, uid: &str, now: &str) -> Value {
    json!({
        "apiVersion": LEASE_GROUP,
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        },
    })
}

/// Posts an event, without retries beyond the writer's own.
pub(super) async fn post_event(writer: &Writer, event: &Value) -> Result<(), Failure> {
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let path = api::core_path(namespace, "events");
    let call = Call::create(path, event.to_string());
    writer.send(&call).await.map(drop)
}

/// The kubelet's event for a node that rebooted.
pub(super) fn rebooted_event(name: &str, boot_id: &str) -> Value {
    let now = clock::now_rfc3339();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{name}.{:x}", clock::now_nanos()), "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name},
        "type": "Warning",
        "reason": "Rebooted",
        "message": format!("Node {name} has been rebooted, boot id: {boot_id}"),
        "source": {"component": "kubelet", "host": name},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "reportingComponent": "kubelet",
        "reportingInstance": name,
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The Node object of the node with this number.
pub(super) fn object(simulation: &Simulation, number: u32, boot_id: &str, now: &str) -> Value {
    let name = simulation.node_name(number);
    let random = SeededRandom::new(simulation.seed);
    let mut labels = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture(),
    });
    for (key, value) in &simulation.labels {
        labels[key] = value.as_str().into();
    }
    let mut resources =
        json!({"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"});
    let mut taints = Vec::new();
    for rule in simulation.scenario.node_rules(&name, random) {
        for (key, value) in &rule.labels {
            labels[key] = value.as_str().into();
        }
        if !rule.zones.is_empty() {
            let zone = &rule.zones[number as usize % rule.zones.len()];
            labels["topology.kubernetes.io/zone"] = zone.as_str().into();
        }
        for (key, amount) in &rule.capacity {
            resources[key] = amount.0.as_str().into();
        }
        taints.extend(rule.taints.iter().map(|taint| json!(taint)));
    }
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status(number, &name, &resources, boot_id, now),
    });
    if simulation.control_plane && number == simulation.first {
        let key = "node-role.kubernetes.io/control-plane";
        taints.push(json!({"key": key, "effect": "NoSchedule"}));
    }
    if !taints.is_empty() {
        node["spec"]["taints"] = taints.into();
    }
    node
}

fn status(number: u32, name: &str, resources: &Value, boot_id: &str, now: &str) -> Value {
    let machine_id = SeededRandom::new(0).named(name).uuid();
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": address::node_address(number).to_string()},
            {"type": "Hostname", "address": name},
        ],
        "conditions": conditions(&CONDITIONS.map(|(r#type, ..)| r#type), now),
        "nodeInfo": {
            "architecture": architecture(),
            "operatingSystem": "linux",
            "osImage": "Kennel simulated node",
            "kernelVersion": "simulated",
            "containerRuntimeVersion": concat!("simulated://", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": kennel_types::version::GIT_VERSION,
            "kubeProxyVersion": "",
            "machineID": machine_id.replace('-', ""),
            "systemUUID": machine_id,
            "bootID": boot_id,
        },
    })
}

/// Type, status, reason and message, in the kubelet's words.
const CONDITIONS: [(ConditionType, ConditionStatus, &str, &str); 4] = [
    (
        ConditionType::MemoryPressure,
        ConditionStatus::False,
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        ConditionType::DiskPressure,
        ConditionStatus::False,
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        ConditionType::PidPressure,
        ConditionStatus::False,
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    (
        ConditionType::Ready,
        ConditionStatus::True,
        "KubeletReady",
        "kubelet is posting ready status",
    ),
];

/// The conditions whose status in the API is not what the node reports.
pub(super) fn changed_conditions(status: &NodeStatus) -> Vec<ConditionType> {
    let conditions = CONDITIONS.into_iter();
    let changed = conditions.filter(|(r#type, expected, ..)| {
        let stored = status.condition(r#type);
        stored.is_none_or(|stored| stored.status != *expected)
    });
    changed.map(|(r#type, ..)| r#type).collect()
}

/// All conditions with a new heartbeat; those that change get a new transition time.
fn conditions(changed: &[ConditionType], now: &str) -> Value {
    let conditions = CONDITIONS.into_iter();
    let condition = conditions.map(|(r#type, status, reason, message)| {
        let mut condition = json!({"type": r#type.as_str(), "status": status.as_str(),
            "reason": reason, "message": message, "lastHeartbeatTime": now});
        if changed.contains(&r#type) {
            condition["lastTransitionTime"] = now.into();
        }
        condition
    });
    condition.collect()
}

#[cfg(test)]
mod tests;

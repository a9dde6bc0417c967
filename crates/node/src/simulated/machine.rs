//! What a simulated node tells the API about itself: its Node object, its status and its Lease. When to
//! tell it is for the [`world`](super::world) to say.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_client::{api, clock};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::Simulation;
use super::address;
use super::shape;
use crate::dice::Dice;

/// How long a lease lasts: upstream's own figure.
const LEASE_SECONDS: u32 = 40;
const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_GROUP: &str = "coordination.k8s.io/v1";
const NODES: &str = "/api/v1/nodes";

/// All nodes.
pub(super) fn nodes(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<Node>(&()))
}

/// The leases of nodes.
pub(super) fn leases(client: &Client) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<Lease>(&());
    Api::namespaced_with(client.clone(), LEASE_NAMESPACE, &kind)
}

/// Makes the Node object, or, if there is one, brings it up to date. Returns its uid. A node that has
/// just booted says so; one that was there before keeps the boot that it had.
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
    let labels = &object["metadata"]["labels"];
    let missing = |(key, value): (&String, &Value)| stored["metadata"]["labels"][key] != *value;
    if labels
        .as_object()
        .is_some_and(|labels| labels.iter().any(missing))
    {
        let patch = json!({"metadata": {"labels": labels}});
        let call = Call::patch(path.as_str(), Content::Merge, &patch);
        writer.send(&call).await?;
    }
    let mut status = object["status"].clone();
    if !booted && let Some(info) = status["nodeInfo"].as_object_mut() {
        info.remove("bootID");
    }
    let seen: shape::NodeStatus =
        serde_json::from_value(stored["status"].clone()).unwrap_or_default();
    status["conditions"] = conditions(&wrong(&seen), &clock::now_rfc3339());
    patch_status(writer, name, &status).await?;
    let uid = stored["metadata"]["uid"].as_str().unwrap_or_default();
    Ok(uid.to_owned())
}

/// Tells how the node is. `wrong`: the conditions that the API shows otherwise.
pub(super) async fn report(
    writer: &Writer,
    name: &str,
    wrong: &[&'static str],
) -> Result<(), Failure> {
    let conditions = conditions(wrong, &clock::now_rfc3339());
    patch_status(writer, name, &json!({ "conditions": conditions })).await
}

async fn patch_status(writer: &Writer, name: &str, status: &Value) -> Result<(), Failure> {
    let path = format!("{NODES}/{name}/status");
    let patch = json!({ "status": status });
    let call = Call::patch(path, Content::Strategic, &patch);
    writer.send(&call).await.map(drop)
}

/// Renews the node's lease; makes it if there is none.
pub(super) async fn renew(writer: &Writer, name: &str, uid: &str) -> Result<(), Failure> {
    let leases = api::group_path(LEASE_GROUP, LEASE_NAMESPACE, "leases");
    let now = clock::now_micros();
    let renewal = json!({"spec": {"renewTime": now}});
    let call = Call::patch(format!("{leases}/{name}"), Content::Merge, &renewal);
    match writer.send(&call).await {
        Err(failure) if failure.is(404) => {
            let lease = lease(name, uid, &now).to_string();
            match writer.send(&Call::create(leases, lease)).await {
                // Made just now, by an earlier heartbeat that was slow.
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

/// Tells about the node with an event, once.
pub(super) async fn tell(writer: &Writer, event: &Value) -> Result<(), Failure> {
    let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let path = api::core_path(namespace, "events");
    writer
        .send(&Call::create(path, event.to_string()))
        .await
        .map(drop)
}

/// The event of a reboot.
pub(super) fn rebooted(name: &str, boot_id: &str) -> Value {
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

/// An id that follows from what the dice are for.
pub(super) fn uuid(dice: Dice) -> String {
    let (high, low) = (dice.value(), dice.numbered(1).value());
    let text = format!("{high:016x}{low:016x}");
    let part = |from: usize, to: usize| &text[from..to];
    let (first, second, last) = (part(0, 8), part(8, 12), part(20, 32));
    // A version and a variant stand where ids have theirs.
    format!(
        "{first}-{second}-4{}-8{}-{last}",
        part(13, 16),
        part(17, 20)
    )
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The Node object of this number.
pub(super) fn node(simulation: &Simulation, number: u32, boot_id: &str, now: &str) -> Value {
    let name = simulation.name(number);
    let dice = Dice::new(simulation.seed);
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
    for rule in simulation.scenario.of_node(&name, dice) {
        for (key, value) in &rule.labels {
            labels[key] = value.as_str().into();
        }
        if let Some(zone) =
            (!rule.zones.is_empty()).then(|| &rule.zones[number as usize % rule.zones.len()])
        {
            labels["topology.kubernetes.io/zone"] = zone.as_str().into();
        }
        for (key, amount) in &rule.capacity {
            resources[key] = amount.0.as_str().into();
        }
        taints.extend(rule.taints.iter().map(
            |taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect.name()}),
        ));
    }
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "podCIDR": address::pod_range(number),
            "podCIDRs": [address::pod_range(number)],
        },
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
    let machine = uuid(Dice::new(0).named(name));
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": address::of_node(number).to_string()},
            {"type": "Hostname", "address": name},
        ],
        "conditions": conditions(&CONDITIONS.map(|[kind, ..]| kind), now),
        "nodeInfo": {
            "architecture": architecture(),
            "operatingSystem": "linux",
            "osImage": "Kennel simulated node",
            "kernelVersion": "simulated",
            "containerRuntimeVersion": concat!("simulated://", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": concat!("v1.36.0-kennel.", env!("CARGO_PKG_VERSION")),
            "kubeProxyVersion": "",
            "machineID": machine.replace('-', ""),
            "systemUUID": machine,
            "bootID": boot_id,
        },
    })
}

/// Type, status, reason and message, in the kubelet's words.
const CONDITIONS: [[&str; 4]; 4] = [
    [
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ],
    [
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ],
    [
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ],
    [
        "Ready",
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    ],
];

/// The conditions that a node's status shows otherwise than the node sees itself.
pub(super) fn wrong(status: &shape::NodeStatus) -> Vec<&'static str> {
    let shown = |[kind, expected, ..]: &&[&str; 4]| {
        let mut all = status.conditions.iter();
        all.any(|condition| condition.r#type == *kind && condition.status == *expected)
    };
    let wrong = CONDITIONS.iter().filter(|condition| !shown(condition));
    wrong.map(|[kind, ..]| *kind).collect()
}

/// All conditions with a new heartbeat; those that change say since when.
fn conditions(changed: &[&str], now: &str) -> Value {
    let condition = |[kind, status, reason, message]: [&str; 4]| {
        let mut condition = json!({"type": kind, "status": status, "reason": reason,
            "message": message, "lastHeartbeatTime": now});
        if changed.contains(&kind) {
            condition["lastTransitionTime"] = now.into();
        }
        condition
    };
    CONDITIONS.into_iter().map(condition).collect()
}

#[cfg(test)]
mod tests;

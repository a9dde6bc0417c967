//! What a simulated node tells the API about itself: its Node object and its Lease.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kennel_client::{api, clock};
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};

use super::{Simulation, address};

/// How long a lease lasts: upstream's own figure.
const LEASE_SECONDS: u32 = 40;
const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_GROUP: &str = "coordination.k8s.io/v1";

/// All nodes.
pub(super) fn nodes(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<Node>(&()))
}

/// The leases of nodes.
pub(super) fn leases(client: &Client) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<Lease>(&());
    Api::namespaced_with(client.clone(), LEASE_NAMESPACE, &kind)
}

/// Makes the Node object, or, if there is one, tells that it is ready. Returns its uid.
pub(super) async fn register(client: &Client, object: &Value) -> Result<String, Error> {
    let nodes = nodes(client);
    let typed = serde_json::from_value(object.clone()).map_err(Error::SerdeError)?;
    let stored = match nodes.create(&PostParams::default(), &typed).await {
        Err(error) if api::code(&error) == Some(409) => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let status = json!({"status": object["status"]});
            let path = api::cluster_path("nodes");
            api::merge(client, &path, name, Some("status"), &status).await?;
            nodes.get(name).await?
        }
        result => result?,
    };
    Ok(stored.uid().unwrap_or_default())
}

/// Renews the node's lease; makes it if there is none.
pub(super) async fn renew(client: &Client, name: &str, uid: &str) -> Result<(), Error> {
    let path = api::group_path(LEASE_GROUP, LEASE_NAMESPACE, "leases");
    let now = clock::now_micros();
    let renewal = json!({"spec": {"renewTime": now}});
    match api::merge(client, &path, name, None, &renewal).await {
        Err(error) if api::code(&error) == Some(404) => {
            match api::create(client, &path, &lease(name, uid, &now)).await {
                // Made just now, by an earlier heartbeat that was slow.
                Err(error) if api::code(&error) == Some(409) => Ok(()),
                result => result,
            }
        }
        result => result,
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

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The Node object of this number.
pub(super) fn node(simulation: &Simulation, number: u32, now: &str) -> Value {
    let name = simulation.name(number);
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture(),
            },
        },
        "spec": {
            "podCIDR": address::pod_range(number),
            "podCIDRs": [address::pod_range(number)],
        },
        "status": {
            "capacity": resources(),
            "allocatable": resources(),
            "addresses": [
                {"type": "InternalIP", "address": address::of_node(number).to_string()},
                {"type": "Hostname", "address": name},
            ],
            "conditions": conditions(now),
            "nodeInfo": {
                "architecture": architecture(),
                "operatingSystem": "linux",
                "osImage": "Kennel simulated node",
                "kernelVersion": "simulated",
                "containerRuntimeVersion": concat!("simulated://", env!("CARGO_PKG_VERSION")),
                "kubeletVersion": concat!("v1.36.0-kennel.", env!("CARGO_PKG_VERSION")),
                "kubeProxyVersion": "",
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
            },
        },
    });
    for (key, value) in &simulation.labels {
        node["metadata"]["labels"][key] = value.as_str().into();
    }
    node
}

fn resources() -> Value {
    json!({"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"})
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

fn conditions(now: &str) -> Value {
    let condition = |[kind, status, reason, message]: [&str; 4]| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
               "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    CONDITIONS.into_iter().map(condition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_can_be_found_by_its_labels_and_is_ready() {
        let simulation = Simulation::of(3).label("zone", "a");
        let object = node(&simulation, 3, "2026-01-02T03:04:05Z");
        let typed: Node = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(typed.labels()["kubernetes.io/hostname"], "sim-3");
        assert_eq!(typed.labels()["zone"], "a");
        assert_eq!(object["status"]["addresses"][0]["address"], "172.16.0.3");
        let ready = &object["status"]["conditions"][3];
        assert_eq!(
            (&ready["type"], &ready["status"]),
            (&json!("Ready"), &json!("True"))
        );
        assert_eq!(typed.spec.unwrap().pod_cidr.unwrap(), "10.0.3.0/24");
    }
}

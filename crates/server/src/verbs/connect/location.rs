//! Finds the backend of a request in the store: the pod, its container, its node, and the address of the
//! node's agent. Errors have upstream's wording.

use std::net::IpAddr;

use kennel_types::Node;
use kennel_types::node::NodeAddressType;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::agent_client::Agent;
use crate::api::Api;
use crate::registry;
use crate::status::{ApiError, Result};

/// Container statuses are not read.
type Pod = kennel_types::Pod<IgnoredAny>;

/// The types of node addresses, the preferred first: those inside the cluster.
const PREFERRED: [NodeAddressType; 5] = [
    NodeAddressType::InternalIp,
    NodeAddressType::InternalDns,
    NodeAddressType::Hostname,
    NodeAddressType::ExternalIp,
    NodeAddressType::ExternalDns,
];

/// The stored pod of this name.
pub(super) fn find_pod(api: &Api, namespace: &str, name: &str) -> Result<Pod> {
    find(api, "pods", Some(namespace), name)
}

fn find<T: DeserializeOwned>(
    api: &Api,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<T> {
    let row = registry::core(plural);
    let stored = api.stored(row, namespace, name)?;
    serde_json::from_slice(&stored.value).map_err(ApiError::internal)
}

fn all_containers(pod: &Pod) -> impl Iterator<Item = &str> {
    let spec = &pod.spec;
    let all = spec.init_containers.iter().chain(&spec.containers);
    all.chain(&spec.ephemeral_containers)
        .map(|c| c.name.as_str())
}

/// The container that the request names, or the only one.
pub(super) fn container(pod: &Pod, name: &str, asked: Option<&str>) -> Result<String> {
    if let Some(asked) = asked {
        if all_containers(pod).any(|container| container == asked) {
            return Ok(asked.to_owned());
        }
        let why = format!("container {asked} is not valid for pod {name}");
        return Err(ApiError::bad_request(why));
    }
    if let [only] = pod.spec.containers.as_slice() {
        return Ok(only.name.clone());
    }
    let all: Vec<&str> = all_containers(pod).collect();
    let all = all.join(" ");
    let why = format!("a container name must be specified for pod {name}, choose one of: [{all}]");
    Err(ApiError::bad_request(why))
}

/// The agent of the node that the pod is bound to.
pub(super) fn agent_of_pod(api: &Api, pod: &Pod, name: &str) -> Result<Agent> {
    match pod.spec.node_name.as_deref() {
        None | Some("") => {
            let why = format!("pod {name} does not have a host assigned");
            Err(ApiError::bad_request(why))
        }
        Some(node) => agent_of(api, node),
    }
}

/// The pod's address, and the first port that it declares.
pub(super) fn pod_address(pod: &Pod) -> Result<(IpAddr, Option<u16>)> {
    let address = pod.status.pod_ip.as_deref().unwrap_or_default();
    let address = address.parse().ok().filter(is_global_unicast);
    let address = address.ok_or_else(|| ApiError::bad_request("address not allowed"))?;
    let mut ports = pod.spec.containers.iter().flat_map(|c| &c.ports);
    Ok((address, ports.next().map(|port| port.container_port)))
}

/// Whether a pod may have this address. Loopback and link-local addresses would reach this machine or its
/// network instead.
fn is_global_unicast(address: &IpAddr) -> bool {
    let is_link_local = match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let address = address.to_canonical();
    !(is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

/// The agent of a node.
pub(in crate::verbs) fn agent_of(api: &Api, name: &str) -> Result<Agent> {
    agent_at(&find(api, "nodes", None, name)?, name)
}

fn agent_at(node: &Node, name: &str) -> Result<Agent> {
    let addresses = &node.status.addresses;
    let of_type = |wanted: &NodeAddressType| addresses.iter().find(|a| a.r#type == *wanted);
    let Some(address) = PREFERRED.iter().find_map(of_type) else {
        let known: Vec<&str> = addresses.iter().map(|a| a.address.as_str()).collect();
        let known = known.join(" ");
        let why = format!("no preferred addresses found; known addresses: [{known}]");
        return Err(ApiError::without_reason(why));
    };
    let port = node.status.daemon_endpoints.kubelet_endpoint.port;
    // Upstream would try 10250. The addresses of simulated nodes may belong to other machines.
    if port == 0 {
        let why = format!(
            "node {name} has no agent to ask: its status.daemonEndpoints.kubeletEndpoint names no port"
        );
        return Err(ApiError::without_reason(why));
    }
    Ok(Agent {
        node: name.to_owned(),
        host: address.address.clone(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(containers: &Value) -> Pod {
        serde_json::from_value(json!({"spec": containers})).unwrap()
    }

    #[test]
    fn a_container_is_named_or_the_only_one() {
        let one = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]});
        let two = json!({"containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}], "ephemeralContainers": [{"name": "e"}]});
        let choice = "a container name must be specified for pod p, choose one of: [i a b e]";
        for (spec, asked, expected) in [
            (&one, None, Ok("a")),
            (&one, Some("i"), Ok("i")),
            (&two, Some("e"), Ok("e")),
            (&two, None, Err(choice)),
            (&one, Some("x"), Err("container x is not valid for pod p")),
        ] {
            let found = container(&pod(spec), "p", asked).map_err(|e| e.message);
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{asked:?}");
        }
    }

    fn check_agent(status: &Value, expected: &str) {
        let node: Node = serde_json::from_value(json!({"status": status})).unwrap();
        let found = agent_at(&node, "n");
        let shown = found.map_or_else(|e| e.message, |agent| agent.authority());
        assert_eq!(shown, expected, "{status}");
    }

    #[test]
    fn agents_are_found_by_their_nodes_addresses() {
        let port = json!({"kubeletEndpoint": {"Port": 10250}});
        let address = |kind: &str, address: &str| json!({"type": kind, "address": address});
        let (name, inside) = (address("Hostname", "n"), address("InternalIP", "192.0.2.1"));
        let both = json!({"addresses": [name, inside], "daemonEndpoints": port});
        check_agent(&both, "192.0.2.1:10250");
        let only = json!({"addresses": [name], "daemonEndpoints": port});
        check_agent(&only, "n:10250");
        let six = address("InternalIP", "2001:db8::1");
        let six = json!({"addresses": [six], "daemonEndpoints": port});
        check_agent(&six, "[2001:db8::1]:10250");
        let none = json!({"addresses": [address("Other", "x")], "daemonEndpoints": port});
        let missing = "no preferred addresses found; known addresses: [x]";
        check_agent(&none, missing);
        let mute = json!({"addresses": [name]});
        let silent = "node n has no agent to ask: \
                      its status.daemonEndpoints.kubeletEndpoint names no port";
        check_agent(&mute, silent);
    }

    #[test]
    fn only_addresses_that_a_pod_can_have_are_connected_to() {
        for (address, allowed) in [
            ("10.1.2.3", true),
            ("2001:db8::1", true),
            ("127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("", false),
        ] {
            let pod = json!({"status": {"podIP": address}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(pod_address(&pod).is_ok(), allowed, "{address}");
        }
    }
}

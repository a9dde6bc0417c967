//! Where a request must go: the container it means, the node that has it, the address of that node's agent.
//! Read from what is stored, with upstream's words for what is missing. It asks nobody.

use std::net::IpAddr;

use serde::Deserialize;

use crate::api::Api;
use crate::object;
use crate::registry;
use crate::status::{ApiError, Result};

/// Addresses are tried in this order: those inside the cluster first.
const PREFERRED: [&str; 5] = [
    "InternalIP",
    "InternalDNS",
    "Hostname",
    "ExternalIP",
    "ExternalDNS",
];

/// A pod, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: String,
    init_containers: Vec<Container>,
    containers: Vec<Container>,
    ephemeral_containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    ports: Vec<Port>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    container_port: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    #[serde(rename = "podIP")]
    pod_ip: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Node {
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeStatus {
    addresses: Vec<Address>,
    daemon_endpoints: Endpoints,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Endpoints {
    kubelet_endpoint: Endpoint,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    #[serde(rename = "Port")]
    port: u16,
}

/// An agent, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agent {
    /// The node it is the agent of: what its certificate must say.
    pub(super) node: String,
    /// An address or a name.
    pub(super) host: String,
    /// Its port.
    pub(super) port: u16,
}

impl Pod {
    /// The pod of this name.
    pub(super) fn find(api: &Api, namespace: &str, name: &str) -> Result<Self> {
        let row = registry::find("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
        let found = api.store.get(&object::key(row, Some(namespace), name));
        let stored = found.ok_or_else(|| ApiError::not_found(row, name))?;
        serde_json::from_slice(&stored.value).map_err(ApiError::internal)
    }

    fn all_containers(&self) -> impl Iterator<Item = &str> {
        let PodSpec {
            init_containers,
            containers,
            ephemeral_containers,
            ..
        } = &self.spec;
        let all = init_containers.iter().chain(containers);
        all.chain(ephemeral_containers).map(|c| c.name.as_str())
    }

    /// The container that is meant: the one that is named, or the only one.
    pub(super) fn container(&self, name: &str, asked: Option<&str>) -> Result<String> {
        if let Some(asked) = asked {
            if self.all_containers().any(|container| container == asked) {
                return Ok(asked.to_owned());
            }
            let why = format!("container {asked} is not valid for pod {name}");
            return Err(ApiError::bad_request(why));
        }
        if let [only] = self.spec.containers.as_slice() {
            return Ok(only.name.clone());
        }
        let all: Vec<&str> = self.all_containers().collect();
        let all = all.join(" ");
        let why =
            format!("a container name must be specified for pod {name}, choose one of: [{all}]");
        Err(ApiError::bad_request(why))
    }

    /// The agent of the node that the pod is bound to.
    pub(super) fn agent(&self, api: &Api, name: &str) -> Result<Agent> {
        if self.spec.node_name.is_empty() {
            let why = format!("pod {name} does not have a host assigned");
            return Err(ApiError::bad_request(why));
        }
        Agent::of(api, &self.spec.node_name)
    }

    /// The pod's own address, and the first port it says it has.
    pub(super) fn address(&self) -> Result<(IpAddr, Option<u16>)> {
        let address = self.status.pod_ip.parse().ok().filter(is_global_unicast);
        let address = address.ok_or_else(|| ApiError::bad_request("address not allowed"))?;
        let mut ports = self.spec.containers.iter().flat_map(|c| &c.ports);
        Ok((address, ports.next().map(|port| port.container_port)))
    }
}

/// An address that could be a pod's, and not one of this machine or its neighbours alone.
fn is_global_unicast(address: &IpAddr) -> bool {
    let is_link_local = match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let address = address.to_canonical();
    !(is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

impl Agent {
    /// The agent of a node.
    pub(super) fn of(api: &Api, node: &str) -> Result<Self> {
        let row = registry::find("", "v1", "nodes").ok_or_else(ApiError::no_such_resource)?;
        let found = api.store.get(&object::key(row, None, node));
        let stored = found.ok_or_else(|| ApiError::not_found(row, node))?;
        let read: Node = serde_json::from_slice(&stored.value).map_err(ApiError::internal)?;
        read.agent(node)
    }

    /// Its address as it stands in URLs.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

impl Node {
    fn agent(&self, name: &str) -> Result<Agent> {
        let addresses = &self.status.addresses;
        let of_kind = |kind: &&str| addresses.iter().find(|a| a.kind == *kind);
        let Some(address) = PREFERRED.iter().find_map(of_kind) else {
            let known: Vec<&str> = addresses.iter().map(|a| a.address.as_str()).collect();
            let known = known.join(" ");
            let why = format!("no preferred addresses found; known addresses: [{known}]");
            return Err(ApiError::unexplained(why));
        };
        let port = self.status.daemon_endpoints.kubelet_endpoint.port;
        // Upstream would try 10250. Kennel's simulated nodes have addresses, which may be somebody else's.
        if port == 0 {
            let why = format!(
                "node {name} has no agent to ask: its status.daemonEndpoints.kubeletEndpoint names no port"
            );
            return Err(ApiError::unexplained(why));
        }
        Ok(Agent {
            node: name.to_owned(),
            host: address.address.clone(),
            port,
        })
    }
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
            let found = pod(spec).container("p", asked).map_err(|e| e.message);
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{asked:?}");
        }
    }

    fn check_agent(status: &Value, expected: &str) {
        let node: Node = serde_json::from_value(json!({"status": status})).unwrap();
        let found = node.agent("n");
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
    fn only_addresses_that_can_be_a_pods_are_gone_to() {
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
            assert_eq!(pod.address().is_ok(), allowed, "{address}");
        }
    }
}

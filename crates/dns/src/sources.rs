//! Clients for which names outside the zone are resolved: this machine, the nodes, their pods, and networks that the user names. For
//! all others this is no resolver, so that nobody can use it to hide or to amplify traffic.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::stream::StreamExt as _;
use kennel_client::Error;
use kennel_client::feed::{self, Change};
use kennel_core::network::Network;
use kennel_types::Node;
use kube::api::Api;
use kube::runtime::watcher::Config;
use kube::{Client, ResourceExt as _};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Sources {
    allowed: Vec<Network>,
    /// The addresses of each node, and the networks of its pods.
    nodes: RwLock<BTreeMap<Arc<str>, Vec<Network>>>,
}

impl Sources {
    /// Allows these networks beside those of nodes.
    pub(crate) fn new(allowed: Vec<Network>) -> Self {
        Self {
            allowed,
            nodes: RwLock::default(),
        }
    }

    /// Whether names outside the zone are resolved for this address.
    pub(crate) fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let covers = |network: &Network| network.contains(address);
        if address.is_loopback() || self.allowed.iter().any(covers) {
            return true;
        }
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes.values().flatten().any(covers)
    }

    pub(crate) fn put_node(&self, node: &Node) {
        let addresses = node.status.addresses.iter();
        let addresses = addresses.filter_map(|one| one.address.parse::<IpAddr>().ok());
        let pods = node.spec.pod_cidrs.iter();
        let pods = pods.filter_map(|cidr| cidr.parse().ok());
        let all = addresses.map(Network::from).chain(pods).collect();
        self.write().insert(node.name_any().into(), all);
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<Arc<str>, Vec<Network>>> {
        self.nodes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the nodes up to date.
    pub(crate) async fn run(&self, client: Client) -> Result<Infallible, Error> {
        const CONSEQUENCE: &str = "names outside the cluster are not resolved for nodes and pods";
        let nodes = Api::<Node>::all(client);
        let mut nodes = feed::watch_optional(nodes, Config::default(), "nodes", CONSEQUENCE);
        loop {
            match nodes.next().await {
                None => return Err(Error::WatchEnded("nodes")),
                Some(Change::Applied(node)) => self.put_node(&node),
                Some(Change::Gone(id)) => drop(self.write().remove(&id.name)),
                Some(Change::Synced) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kennel_types::node::{NodeAddress, NodeAddressType, NodeSpec, NodeStatus};

    use super::*;

    #[test]
    fn n3_recursion_is_for_pods_nodes_and_this_machine() {
        let sources = Sources::new(vec!["198.51.100.0/24".parse().unwrap()]);
        let mut node = Node {
            spec: NodeSpec {
                pod_cidrs: vec!["10.128.3.0/24".to_owned()],
                ..NodeSpec::default()
            },
            status: NodeStatus {
                addresses: vec![
                    NodeAddress {
                        r#type: NodeAddressType::InternalIp,
                        address: "192.0.2.7".into(),
                    },
                    NodeAddress {
                        r#type: NodeAddressType::Hostname,
                        address: "n1".into(),
                    },
                ],
                ..NodeStatus::default()
            },
            ..Node::default()
        };
        node.metadata.name = Some("n1".into());
        sources.put_node(&node);
        for (address, allowed) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.7", true),
            ("::ffff:192.0.2.7", true),
            ("10.128.3.200", true),
            ("10.128.4.200", false),
            ("198.51.100.9", true),
            ("192.0.2.8", false),
            ("203.0.113.1", false),
        ] {
            assert_eq!(
                sources.allow(address.parse().unwrap()),
                allowed,
                "{address}"
            );
        }
        // A node that left takes its rights along.
        sources.write().remove("n1");
        assert!(!sources.allow("192.0.2.7".parse().unwrap()));
    }
}

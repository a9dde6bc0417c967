//! What the nodes of the cluster publish of their networks.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kennel_client::feed::Change;
use kennel_core::cidr::Cidr;
use kennel_core::pod_network::{Member, object};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Members by the names of their nodes.
    by_name: BTreeMap<String, Member>,
    /// The range of all pods, which every object has.
    clusters: BTreeMap<String, Cidr>,
    synced: bool,
}

impl Members {
    pub(super) fn on_change(&mut self, change: Change<ConfigMap>) {
        match change {
            Change::Applied(stored) => {
                let name = stored.metadata.name.unwrap_or_default();
                match object::parse(&name, &stored.data.unwrap_or_default()) {
                    Some((member, cluster)) => {
                        self.clusters.insert(name.clone(), cluster);
                        self.by_name.insert(name, member);
                    }
                    None => self.remove(&name),
                }
            }
            Change::Gone(id) => self.remove(&id.name),
            Change::Synced => self.synced = true,
        }
    }

    fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
        self.clusters.remove(name);
    }

    /// Whether all members are known.
    pub(super) fn is_synced(&self) -> bool {
        self.synced
    }

    /// A node's own entry, and the range of all pods.
    pub(super) fn own(&self, node: &str) -> Option<(&Member, Cidr)> {
        Some((self.by_name.get(node)?, *self.clusters.get(node)?))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Member> {
        self.by_name.values()
    }
}

//! A node's writes of Node objects: its own, without the fields that would attract other pods.

use kennel_core::certificates::serving::CONFIRMED_ADDRESSES;
use serde_json::Value;

use super::{NodeRestriction, NodeWrite, labels};
use crate::api::Api;
use crate::registry::Part;
use crate::status::Result;
use crate::tree::{at, has, map, same};

/// The addresses that an administrator has confirmed.
fn confirmed(node: &Value) -> Option<&Value> {
    map(node, "metadata.annotations").get(CONFIRMED_ADDRESSES)
}

/// The ranges of a node's pods. Other nodes route them to it, and the server takes their addresses for pods'.
const POD_RANGES: [&str; 2] = ["spec.podCIDR", "spec.podCIDRs"];

/// The node's own `Node`.
pub(crate) struct NodeRule;

impl NodeRestriction for NodeRule {
    fn write(&self, write: NodeWrite<'_>) -> Result<()> {
        let NodeWrite { node, name, .. } = write;
        if name == node {
            return Ok(());
        }
        write.refuse(&format!(
            "node {node:?} is not allowed to modify node {name:?}"
        ))
    }

    fn create(&self, _: &Api, write: NodeWrite<'_>, new: &Value) -> Result<()> {
        self.write(write)?;
        let node = write.node;
        if has(new, "spec.configSource") {
            return write.refuse(&format!(
                "node {node:?} is not allowed to create pods with a non-nil configSource"
            ));
        }
        if POD_RANGES.iter().any(|field| has(new, field)) {
            return write.refuse(&format!("node {node:?} is not allowed to set podCIDRs"));
        }
        if confirmed(new).is_some() {
            return write.refuse(&format!(
                "node {node:?} is not allowed to set the annotation {CONFIRMED_ADDRESSES}"
            ));
        }
        match labels::forbidden(new, &Value::Null) {
            Some(labels) => write.refuse(&format!(
                "node {node:?} is not allowed to set the following labels: {labels}"
            )),
            None => Ok(()),
        }
    }

    fn update(&self, write: NodeWrite<'_>, _: Part, new: &Value, old: &Value) -> Result<()> {
        self.write(write)?;
        let node = write.node;
        let changes = |field: &str| !same(at(new, field), at(old, field));
        if has(new, "spec.configSource") && changes("spec.configSource") {
            return write.refuse(&format!(
                "node {node:?} is not allowed to update configSource to a new non-nil configSource"
            ));
        }
        if changes("spec.taints") {
            return write.refuse(&format!("node {node:?} is not allowed to modify taints"));
        }
        if POD_RANGES.into_iter().any(changes) {
            return write.refuse(&format!("node {node:?} is not allowed to modify podCIDRs"));
        }
        // With an owner that does not exist, the garbage collector would delete the node, and the node
        // could register again with other taints and labels.
        if changes("metadata.ownerReferences") {
            return write.refuse(&format!(
                "node {node:?} is not allowed to modify ownerReferences"
            ));
        }
        if confirmed(new) != confirmed(old) {
            return write.refuse(&format!(
                "node {node:?} is not allowed to modify the annotation {CONFIRMED_ADDRESSES}"
            ));
        }
        match labels::forbidden(new, old) {
            Some(labels) => write.refuse(&format!("is not allowed to modify labels: {labels}")),
            None => Ok(()),
        }
    }
}

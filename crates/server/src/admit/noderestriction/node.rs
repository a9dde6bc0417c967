//! A node's writes of Node objects: its own, without what would bring it other pods.

use serde_json::Value;

use super::{Write, labels};
use crate::kinds::tree::{at, has, same};
use crate::status::Result;

pub(super) fn check_name(write: Write<'_>) -> Result<()> {
    let Write { node, name, .. } = write;
    if name == node {
        return Ok(());
    }
    write.refuse(&format!(
        "node {node:?} is not allowed to modify node {name:?}"
    ))
}

pub(super) fn check_create(write: Write<'_>, new: &Value) -> Result<()> {
    check_name(write)?;
    let node = write.node;
    if has(new, "spec.configSource") {
        return write.refuse(&format!(
            "node {node:?} is not allowed to create pods with a non-nil configSource"
        ));
    }
    match labels::forbidden(new, &Value::Null) {
        Some(labels) => write.refuse(&format!(
            "node {node:?} is not allowed to set the following labels: {labels}"
        )),
        None => Ok(()),
    }
}

pub(super) fn check_update(write: Write<'_>, new: &Value, old: &Value) -> Result<()> {
    check_name(write)?;
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
    // With an owner that does not exist, the collector would delete the node, and it could come back
    // with other taints and labels.
    if changes("metadata.ownerReferences") {
        return write.refuse(&format!(
            "node {node:?} is not allowed to modify ownerReferences"
        ));
    }
    match labels::forbidden(new, old) {
        Some(labels) => write.refuse(&format!("is not allowed to modify labels: {labels}")),
        None => Ok(()),
    }
}

//! Binds a pod to a node.

use kennel_types::ConditionStatus;
use serde_json::{Value, json};

use crate::tree;
use crate::tree::{list, text, text_entries};

/// Why a pod cannot be bound, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("pod {0} is being deleted, cannot be assigned to a host")]
    Deleting(String),
    #[error("pod {pod} is already assigned to node \"{node}\"")]
    Bound { pod: String, node: String },
    #[error("pod {0} has non-empty .spec.schedulingGates")]
    Gated(String),
}

/// Binds a pod to `node` at the time `now`, and adds the labels and annotations of the binding, whose
/// metadata is `metadata`.
pub fn bind(pod: &mut Value, node: &str, metadata: &Value, now: &str) -> Result<(), BindError> {
    let name = tree::text(pod, "metadata.name");
    if tree::is_deleting(pod) {
        return Err(BindError::Deleting(name.to_owned()));
    }
    let bound = tree::text(pod, "spec.nodeName");
    if !bound.is_empty() {
        return Err(BindError::Bound {
            pod: name.to_owned(),
            node: bound.to_owned(),
        });
    }
    if !list(pod, "spec.schedulingGates").is_empty() {
        return Err(BindError::Gated(name.to_owned()));
    }
    tree::set(pod, "spec.nodeName", Value::from(node));
    for kind in ["annotations", "labels"] {
        for (key, value) in text_entries(metadata, kind) {
            let metadata = &mut pod["metadata"];
            if !metadata.get(kind).is_some_and(Value::is_object) {
                metadata[kind] = json!({});
            }
            metadata[kind][key] = Value::from(value);
        }
    }
    tree::remove(pod, "status.nominatedNodeName");
    scheduled(pod, now);
    Ok(())
}

fn scheduled(pod: &mut Value, now: &str) {
    let mut condition =
        json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now});
    let conditions = tree::list_mut(pod, "status.conditions");
    let found = conditions
        .iter_mut()
        .find(|c| text(c, "type") == "PodScheduled");
    if let Some(present) = found {
        if text(present, "status") == ConditionStatus::True.as_str() {
            tree::copy_from_old(&mut condition, present, "lastTransitionTime");
        }
        *present = condition;
        return;
    }
    match tree::at_mut(pod, "status.conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => tree::set(pod, "status.conditions", json!([condition])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_pod_is_scheduled() {
        let mut pod =
            json!({"metadata": {"name": "p"}, "spec": {}, "status": {"phase": "Pending"}});
        let metadata = json!({"annotations": {"a": "b"}});
        assert_eq!(
            bind(&mut pod, "n1", &metadata, "2026-01-01T00:00:00Z"),
            Ok(())
        );
        assert_eq!(
            pod,
            json!({
                "metadata": {"name": "p", "annotations": {"a": "b"}},
                "spec": {"nodeName": "n1"},
                "status": {"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
            })
        );
        let refused = bind(&mut pod, "n2", &metadata, "2026-01-01T00:00:00Z");
        assert_eq!(
            refused.unwrap_err().to_string(),
            "pod p is already assigned to node \"n1\""
        );
    }

    #[test]
    fn deleted_and_gated_pods_are_not_bound() {
        let mut pod = json!({"metadata": {"name": "p", "deletionTimestamp": "x"}, "spec": {}});
        assert!(bind(&mut pod, "n1", &Value::Null, "now").is_err());
        let mut pod =
            json!({"metadata": {"name": "p"}, "spec": {"schedulingGates": [{"name": "g"}]}});
        assert!(bind(&mut pod, "n1", &Value::Null, "now").is_err());
    }
}

//! Removes the taint of nodes that wait for their daemons (R12.3).

use kennel_client::api;
use kennel_client::write::{Call, Content, Writer};
use kennel_core::daemonset::required;
use kennel_types::Node;
use serde_json::json;

use super::{Failed, send};

/// Removes the taint from a node as it was last observed. 404 counts as success.
///
/// A JSON patch, which fails if the taints are others by now or the node was replaced by one of the same name, but does
/// not conflict with the kubelet's heartbeats.
pub(in super::super) async fn remove(writer: &Writer, node: &Node) -> Result<(), Failed> {
    let Some(call) = request(node) else {
        return Ok(());
    };
    send(writer, &call, |failure| failure.is(404))
        .await
        .map(drop)
}

/// Nothing if the node does not have the taint.
fn request(node: &Node) -> Option<Call> {
    let taints = &node.spec.taints;
    let at = taints.iter().position(required::is_ours)?;
    let ours = format!("/spec/taints/{at}");
    let removed = match taints.len() {
        1 => "/spec/taints",
        _ => &ours,
    };
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": node.metadata.uid},
        {"op": "test", "path": format!("{ours}/key"), "value": taints[at].key},
        {"op": "test", "path": format!("{ours}/effect"), "value": taints[at].effect},
        {"op": "remove", "path": removed},
    ]);
    let name = node.metadata.name.as_deref().unwrap_or_default();
    Some(Call::patch(
        api::node_path(name),
        Content::JsonPatch,
        &patch,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn patch(taints: &Value) -> Option<Value> {
        let node = json!({"metadata": {"name": "n1", "uid": "u"}, "spec": {"taints": taints}});
        let call = request(&serde_json::from_value(node).unwrap())?;
        assert_eq!(call.path, "/api/v1/nodes/n1");
        Some(serde_json::from_str(&call.body).unwrap())
    }

    #[test]
    fn r12_3_only_our_taint_is_removed_and_only_from_the_node_that_was_observed() {
        let ours = json!({"key": required::TAINT, "effect": "NoSchedule"});
        let other = json!({"key": required::TAINT, "effect": "NoExecute"});
        let both = patch(&json!([other, ours])).unwrap();
        assert_eq!(
            both,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/spec/taints/1/key", "value": required::TAINT},
                {"op": "test", "path": "/spec/taints/1/effect", "value": "NoSchedule"},
                {"op": "remove", "path": "/spec/taints/1"},
            ])
        );
        assert_eq!(patch(&json!([ours])).unwrap()[3]["path"], "/spec/taints");
        assert_eq!(patch(&json!([other])), None);
        assert_eq!(patch(&json!(null)), None);
    }
}

//! What a cluster decides for a new node: that nothing is placed on it before it has been found ready.

use serde_json::{Value, json};

/// The taint of nodes that are not ready, which the node lifecycle controller takes away.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Gives a new node the taint, unless it comes with it.
pub(super) fn admit(node: &mut Value) {
    let is_it = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    let taints = &mut node["spec"]["taints"];
    if taints.as_array().is_some_and(|list| list.iter().any(is_it)) {
        return;
    }
    super::append(taints, json!({"key": NOT_READY, "effect": "NoSchedule"}));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(taints: &Value, expected: &Value) {
        let mut node = json!({"metadata": {"name": "n"}});
        if !taints.is_null() {
            node["spec"] = json!({"taints": taints});
        }
        admit(&mut node);
        assert_eq!(node["spec"]["taints"], *expected, "{taints}");
    }

    #[test]
    fn a_new_node_is_not_ready_yet() {
        let added = json!({"key": NOT_READY, "effect": "NoSchedule"});
        check(&json!(null), &json!([added]));
        let given = json!({"key": "a", "effect": "NoExecute"});
        check(&json!([given]), &json!([given, added]));
        let own = json!([{"key": NOT_READY, "effect": "NoSchedule", "value": "mine"}]);
        check(&own, &own);
        let other = json!({"key": NOT_READY, "effect": "NoExecute"});
        check(&json!([other]), &json!([other, added]));
    }
}

//! Admission of nodes: a new node is tainted not-ready until the node lifecycle controller finds it ready.

use serde_json::{Value, json};

use super::{Admission, Write};
use crate::status::Result;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The admission of nodes.
pub(crate) struct NodeAdmission;

impl Admission for NodeAdmission {
    fn create(&self, _: Write<'_>, node: &mut Value) -> Result<()> {
        taint_not_ready(node);
        Ok(())
    }
}

fn taint_not_ready(node: &mut Value) {
    let is_present = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    let taints = &mut node["spec"]["taints"];
    if taints
        .as_array()
        .is_some_and(|list| list.iter().any(is_present))
    {
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
        taint_not_ready(&mut node);
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

//! Admission of nodes: a new node is tainted not-ready until the node lifecycle controller finds it ready, and
//! daemons-not-ready until the DaemonSet controller finds its required daemons available (R12.1).

use kennel_core::certificates::NODE_USER;
use kennel_core::daemonset::NodeView;
use kennel_core::daemonset::fit::Rules;
use kennel_core::daemonset::required;
use kennel_core::daemonset::view::Readiness;
use kennel_core::taint::{Taint, TaintEffect};
use serde_json::{Value, json};

use super::{Admission, Write};
use crate::api::Api;
use crate::registry;
use crate::status::Result;
use crate::tree::text_map;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The admission of nodes.
pub(crate) struct NodeAdmission;

impl Admission for NodeAdmission {
    fn create(&self, write: Write<'_>, node: &mut Value) -> Result<()> {
        taint_not_ready(node);
        let view = view(node);
        if !required::waits(&view) && is_awaited(write.api, &view) {
            super::append(&mut node["spec"]["taints"], json!(required::taint()));
        }
        Ok(())
    }

    /// A machine whose Node was deleted must join again.
    fn revoked_user(&self, name: &str) -> Option<String> {
        Some(format!("{NODE_USER}{name}"))
    }
}

/// Whether a required DaemonSet should run on this node. Nodes join rarely, and few DaemonSets are required: only those
/// are parsed.
fn is_awaited(api: &Api, node: &NodeView) -> bool {
    let row = registry::served("apps", "daemonsets");
    let mut stored = api.all(row).into_iter();
    stored.any(|stored| {
        let text = std::str::from_utf8(&stored.value);
        let named = text.is_ok_and(|text| text.contains(required::ANNOTATION));
        named && awaits(&super::read(&stored), node)
    })
}

/// Whether a node waits for a DaemonSet.
fn awaits(daemon_set: &Value, node: &NodeView) -> bool {
    let metadata = &daemon_set["metadata"];
    let is_required = metadata["annotations"][required::ANNOTATION] == "true";
    let stays = metadata["deletionTimestamp"].is_null();
    let rules = || Rules::of_template(&daemon_set["spec"]["template"], true);
    is_required && stays && required::should_run(&rules(), node)
}

fn view(node: &Value) -> NodeView {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let taint = |taint: &Value| <Taint as serde::Deserialize>::deserialize(taint).ok();
    NodeView {
        name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
        labels: text_map(node, "metadata.labels"),
        taints: taints.filter_map(taint).collect(),
        unschedulable: false,
        ready: Readiness::NotReady,
        ready_changed: None,
    }
}

fn taint_not_ready(node: &mut Value) {
    let own = Taint::new(NOT_READY, TaintEffect::NoSchedule);
    let is_present =
        |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == own.effect.as_str();
    let taints = &mut node["spec"]["taints"];
    if taints
        .as_array()
        .is_some_and(|list| list.iter().any(is_present))
    {
        return;
    }
    super::append(taints, json!(own));
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

    #[test]
    fn r12_1_a_node_waits_for_the_required_daemon_sets_that_select_it() {
        let mut node = json!({"metadata": {"name": "n1", "labels": {"zone": "a"}}});
        taint_not_ready(&mut node);
        let view = view(&node);
        let check = |annotation: &str, spec: Value, expected: bool| {
            let set = json!({
                "metadata": {"annotations": {required::ANNOTATION: annotation}},
                "spec": {"template": {"spec": spec}}});
            assert_eq!(awaits(&set, &view), expected, "{set}");
        };
        check("true", json!({}), true);
        check("false", json!({}), false);
        check("true", json!({"nodeSelector": {"zone": "a"}}), true);
        check("true", json!({"nodeSelector": {"zone": "b"}}), false);
        assert!(!awaits(&json!({"spec": {}}), &view));
        let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {required::ANNOTATION: "true"}}});
        assert!(!awaits(&leaving, &view));
    }
}

//! Required DaemonSets (`docs/spec/rollouts.md`, R12): a node that joins waits for its daemons before ordinary pods are
//! placed there.
//!
//! The API server taints such a node when it registers, or its kubelet does. The planner has the taint removed.

use std::collections::BTreeMap;

use kennel_types::Timestamp;

use super::fit::{Rule, Rules};
use super::view::{DaemonSetView, NodeView, PodView};
use crate::taint::{Taint, TaintEffect, Toleration};

/// Annotation of a DaemonSet: `"true"` if nodes wait for it.
pub const ANNOTATION: &str = "kennel.dev/required";
/// Where only a snapshot is known: a node carries the taint because some DaemonSet is required.
pub const SOME_REQUIRED: bool = true;
/// The values that the annotation may have.
pub const ALLOWED: &str = "must be \"true\" or \"false\"";
/// The key of the taint of nodes that wait. Its effect is `NoSchedule`.
pub const TAINT: &str = "kennel.dev/daemons-not-ready";
/// The keys of taints that pass by themselves begin so: those of the node's conditions, and those of a cloud provider
/// that has not initialised the node yet.
const PASSING: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

/// Whether these annotations of a DaemonSet say that nodes wait for it.
pub fn is_required(annotations: &BTreeMap<String, String>) -> bool {
    annotations
        .get(ANNOTATION)
        .is_some_and(|value| value == "true")
}

/// Whether this is a value that the annotation may have.
pub fn is_allowed(value: &str) -> bool {
    ["true", "false"].contains(&value)
}

pub fn taint() -> Taint {
    Taint::new(TAINT, TaintEffect::NoSchedule)
}

/// The toleration that DaemonSet pods get while some DaemonSet is required (R12.2).
pub fn toleration() -> Toleration {
    Toleration {
        key: TAINT.to_owned(),
        operator: "Exists".to_owned(),
        effect: TaintEffect::NoSchedule,
        ..Toleration::default()
    }
}

pub fn is_ours(taint: &Taint) -> bool {
    taint.key == TAINT && taint.effect == TaintEffect::NoSchedule
}

/// Whether a node waits for its daemons.
pub fn waits(node: &NodeView) -> bool {
    node.taints.iter().any(is_ours)
}

/// Whether a daemon should run on a node once the taints that pass by themselves are gone. A node that joins is not ready
/// at first, which most daemons do not tolerate; it waits for them nevertheless.
pub fn should_run(rules: &Rules, node: &NodeView) -> bool {
    let passes = |rule: &Rule<'_>| {
        matches!(rule, Rule::Taint(taint)
            if is_ours(taint) || PASSING.iter().any(|prefix| taint.key.starts_with(prefix)))
    };
    rules
        .checks(node)
        .all(|(rule, holds)| holds || passes(&rule))
}

/// Whether a required DaemonSet is missing on a node: it should run there, and none of these pods is available there.
pub fn is_missing(
    daemon_set: &DaemonSetView,
    pods: &[PodView],
    node: &NodeView,
    now: Timestamp,
) -> bool {
    let is_available = |pod: &PodView| {
        let at = pod.available_at(daemon_set.min_ready_seconds);
        pod.controller.as_ref() == Some(&daemon_set.uid)
            && pod.bound_to.as_ref() == Some(&node.name)
            && !pod.terminating
            && !pod.terminal()
            && at.is_some_and(|at| at <= now)
    };
    let rules = Rules::of_template(&daemon_set.template, SOME_REQUIRED);
    is_required(&daemon_set.annotations)
        && !daemon_set.terminating
        && should_run(&rules, node)
        && !pods.iter().any(is_available)
}

/// Whether a daemon's own tolerations let its pod onto a node that waits.
pub fn tolerates(rules: &Rules) -> bool {
    rules
        .tolerations()
        .iter()
        .any(|own| own.tolerates(&taint()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::node;
    use super::*;

    #[test]
    fn r12_a_daemon_set_is_required_by_its_annotation() {
        let with = |value: &str| [(ANNOTATION.to_owned(), value.to_owned())].into();
        assert!(is_required(&with("true")));
        for other in ["false", "", "True", "yes"] {
            assert!(!is_required(&with(other)), "{other}");
        }
        assert!(!is_required(&BTreeMap::new()));
        assert!(is_allowed("true") && is_allowed("false") && !is_allowed("yes"));
    }

    #[test]
    fn r12_3_taints_of_a_node_that_is_not_ready_yet_do_not_excuse_a_daemon() {
        let check = |spec: Value, taints: &[&str], expected: bool| {
            let mut view = node("n1");
            view.labels = [("zone".to_owned(), "a".to_owned())].into();
            view.taints = taints
                .iter()
                .map(|key| Taint::new(key, TaintEffect::NoSchedule))
                .collect();
            let rules = Rules::of_template(&json!({ "spec": spec }), true);
            assert_eq!(
                should_run(&rules, &view),
                expected,
                "{spec} with {taints:?}"
            );
        };
        check(json!({}), &[], true);
        check(json!({}), &[TAINT], true);
        check(json!({}), &["node.kubernetes.io/not-ready", TAINT], true);
        let cloud = "node.cloudprovider.kubernetes.io/uninitialized";
        check(json!({}), &[cloud, "node.kubernetes.io/unreachable"], true);
        check(json!({}), &["gpu"], false);
        let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
        check(tolerant, &["gpu"], true);
        check(json!({"nodeSelector": {"zone": "a"}}), &[TAINT], true);
        check(json!({"nodeSelector": {"zone": "b"}}), &[TAINT], false);
        check(json!({"nodeName": "n2"}), &[TAINT], false);
    }

    #[test]
    fn r12_2_a_template_tolerates_the_taint_or_not() {
        let of = |tolerations: Value, some_required: bool| {
            let template = json!({"spec": {"tolerations": tolerations}});
            tolerates(&Rules::of_template(&template, some_required))
        };
        assert!(!of(json!([]), false));
        assert!(of(json!([]), true));
        assert!(of(json!([{"operator": "Exists"}]), false));
        assert!(of(json!([{"key": TAINT, "operator": "Exists"}]), false));
        assert!(!of(
            json!([{"key": TAINT, "operator": "Exists", "effect": "NoExecute"}]),
            false
        ));
    }
}

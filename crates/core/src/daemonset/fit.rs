//! Node eligibility (rule 2.2), with the rules compiled once per template.
//!
//! Only a node's name, labels and taints matter (rule 2.1): not whether it is cordoned, ready or full.

use std::collections::BTreeMap;

use kennel_types::PodSpec;
use serde_json::Value;

use super::required;
use super::view::NodeView;
use crate::affinity::NodeSelector;
use crate::taint::{Taint, TaintEffect, Toleration};

/// The taints of nodes that are not ready.
pub const NOT_READY_TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// The eligibility of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// `shouldRun`: a pod should be created there.
    pub run: bool,
    /// `shouldContinueRunning`: a pod that runs there may stay.
    pub keep: bool,
}

/// One requirement that a node has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<'a> {
    /// Its name is this.
    Name(&'a str),
    /// It has this label.
    Label(&'a str, &'a str),
    /// Required affinity matches it.
    Affinity(&'a NodeSelector),
    /// This taint of it is tolerated.
    Taint(&'a Taint),
}

impl Rule<'_> {
    /// Whether a running pod may stay on a node that does not meet this.
    pub fn spares_running_pods(&self) -> bool {
        matches!(self, Self::Taint(taint) if taint.effect == TaintEffect::NoSchedule)
    }
}

/// The requirements of a pod spec on its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    node_name: Option<String>,
    node_selector: BTreeMap<String, String>,
    required: Option<NodeSelector>,
    tolerations: Vec<Toleration>,
}

impl Rules {
    /// The requirements of a pod spec, without the tolerations that DaemonSet pods get.
    pub fn of(spec: &PodSpec) -> Self {
        let (selector, affinity) = (&spec.node_selector, &spec.affinity);
        Self::parse(
            spec.node_name.as_deref(),
            selector,
            affinity,
            &spec.tolerations,
        )
    }

    /// As [`of`](Self::of), of a spec that is not decoded.
    pub fn of_pod_spec(spec: &Value) -> Self {
        let (selector, affinity) = (&spec["nodeSelector"], &spec["affinity"]);
        Self::parse(
            spec["nodeName"].as_str(),
            selector,
            affinity,
            &spec["tolerations"],
        )
    }

    fn parse(name: Option<&str>, selector: &Value, affinity: &Value, tolerations: &Value) -> Self {
        let labels = selector.as_object().into_iter().flatten();
        let labels = labels.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
        Self {
            node_name: name.filter(|n| !n.is_empty()).map(str::to_owned),
            node_selector: labels.collect(),
            required: required_affinity(affinity).map(NodeSelector::parse),
            tolerations: parse_tolerations(tolerations),
        }
    }

    /// The requirements of a DaemonSet's template, with the automatic tolerations (rule 2.3, and R12.2 if some DaemonSet is
    /// required).
    pub fn of_template(template: &Value, some_required: bool) -> Self {
        let spec = template.get("spec").unwrap_or(&Value::Null);
        let mut rules = Self::of_pod_spec(spec);
        rules.tolerations = daemon_tolerations(spec, some_required);
        rules
    }

    /// The node that required affinity pins this pod to, if it names just one.
    pub fn pinned(&self) -> Option<&str> {
        self.required.as_ref().and_then(NodeSelector::pinned)
    }

    /// As [`pinned`](Self::pinned), and removes a required affinity that says nothing else.
    pub fn take_pin(&mut self) -> Option<String> {
        let pin = self.pinned()?.to_owned();
        self.required = self.required.take().filter(|r| !r.only_pins());
        Some(pin)
    }

    pub fn tolerations(&self) -> &[Toleration] {
        &self.tolerations
    }

    /// The keys of the node labels that the eligibility depends on.
    pub fn label_keys(&self) -> impl Iterator<Item = &str> {
        let selector = self.node_selector.keys().map(String::as_str);
        let required = self.required.iter().flat_map(NodeSelector::label_keys);
        selector.chain(required)
    }

    /// Whether the eligibility depends on taints: not if everything is tolerated.
    pub fn reads_taints(&self) -> bool {
        let any =
            |t: &Toleration| t.key.is_empty() && t.effect.is_empty() && t.operator == "Exists";
        !self.tolerations.iter().any(any)
    }

    /// Whether the name and labels of a node do not matter.
    pub fn select_all(&self) -> bool {
        self.node_name.is_none() && self.node_selector.is_empty() && self.required.is_none()
    }

    /// Whether node name, node selector and required affinity allow this node.
    pub fn selects(&self, node: &NodeView) -> bool {
        self.selecting(node).all(|(_, holds)| holds)
    }

    /// Each requirement on this node, in the order of rule 2.2, and whether the node meets it.
    pub fn checks<'a>(&'a self, node: &'a NodeView) -> impl Iterator<Item = (Rule<'a>, bool)> {
        self.selecting(node).chain(self.tolerating(node))
    }

    fn selecting<'a>(&'a self, node: &'a NodeView) -> impl Iterator<Item = (Rule<'a>, bool)> {
        let name = self.node_name.iter();
        let name = name.map(|name| (Rule::Name(name), **name == *node.name));
        let labels = self.node_selector.iter().map(|(key, value)| {
            let holds = node.labels.get(key) == Some(value);
            (Rule::Label(key, value), holds)
        });
        let required = self.required.iter();
        let affinity = required.map(|s| (Rule::Affinity(s), s.matches(&node.name, &node.labels)));
        name.chain(labels).chain(affinity)
    }

    fn tolerating<'a>(&'a self, node: &'a NodeView) -> impl Iterator<Item = (Rule<'a>, bool)> {
        let tolerated = |taint: &Taint| self.tolerations.iter().any(|t| t.tolerates(taint));
        let taints = node.taints.iter().filter(|taint| taint.effect.repels());
        taints.map(move |taint| (Rule::Taint(taint), tolerated(taint)))
    }

    /// Whether a pod should run on this node once it is ready: the taints of a node that is not ready do not count (R2.1).
    pub fn selects_ready(&self, node: &NodeView) -> bool {
        let passes = |rule: &Rule<'_>| matches!(rule, Rule::Taint(taint) if NOT_READY_TAINTS.contains(&taint.key.as_str()));
        self.checks(node)
            .all(|(rule, holds)| holds || passes(&rule))
    }

    /// Rule 2.2.
    pub fn judge(&self, node: &NodeView) -> Fit {
        let mut fit = Fit {
            run: true,
            keep: true,
        };
        for (rule, _) in self.checks(node).filter(|(_, holds)| !holds) {
            fit.run = false;
            if !rule.spares_running_pods() {
                return Fit::default();
            }
        }
        fit
    }
}

/// The required node affinity in a pod's affinity.
fn required_affinity(affinity: &Value) -> Option<&Value> {
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    Some(required).filter(|required| !required.is_null())
}

/// Those that cannot be decoded tolerate nothing.
pub fn parse_tolerations(list: &Value) -> Vec<Toleration> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|item| serde::Deserialize::deserialize(item).ok())
        .collect()
}

/// Key, effect, and whether only `hostNetwork` pods get it (rule 2.3.1).
static AUTOMATIC: [(&str, TaintEffect, bool); 7] = [
    (
        "node.kubernetes.io/not-ready",
        TaintEffect::NoExecute,
        false,
    ),
    (
        "node.kubernetes.io/unreachable",
        TaintEffect::NoExecute,
        false,
    ),
    (
        "node.kubernetes.io/disk-pressure",
        TaintEffect::NoSchedule,
        false,
    ),
    (
        "node.kubernetes.io/memory-pressure",
        TaintEffect::NoSchedule,
        false,
    ),
    (
        "node.kubernetes.io/pid-pressure",
        TaintEffect::NoSchedule,
        false,
    ),
    (
        "node.kubernetes.io/unschedulable",
        TaintEffect::NoSchedule,
        false,
    ),
    (
        "node.kubernetes.io/network-unavailable",
        TaintEffect::NoSchedule,
        true,
    ),
];

/// The tolerations of a template's pods: those of the template, merged with the automatic ones (rule 2.3.2, and R12.2 if
/// some DaemonSet is required).
pub fn daemon_tolerations(spec: &Value, some_required: bool) -> Vec<Toleration> {
    let on_host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let mut tolerations = parse_tolerations(&spec["tolerations"]);
    let applies = |(_, _, host_network_only): &&(&str, TaintEffect, bool)| {
        !host_network_only || on_host_network
    };
    let upstream = AUTOMATIC
        .iter()
        .filter(applies)
        .map(|(key, effect, _)| Toleration {
            key: (*key).to_owned(),
            operator: "Exists".to_owned(),
            effect: effect.clone(),
            ..Toleration::default()
        });
    let ours = some_required.then(required::toleration);
    for automatic in upstream.chain(ours) {
        match tolerations.iter_mut().find(|t| t.same_rule(&automatic)) {
            Some(own) => *own = automatic,
            None => tolerations.push(automatic),
        }
    }
    tolerations
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BOTH: (bool, bool) = (true, true);
    const KEEP: (bool, bool) = (false, true);
    const NEITHER: (bool, bool) = (false, false);

    fn check(spec: &Value, taints: &[(&str, &str)], expected: (bool, bool)) {
        let node = NodeView {
            name: "n1".into(),
            labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
            taints: taints
                .iter()
                .map(|(key, effect)| Taint::new(key, *effect))
                .collect(),
            unschedulable: true,
            ready: crate::daemonset::view::Readiness::Ready,
            ready_changed: None,
        };
        let fit = Rules::of_template(&json!({ "spec": spec }), false).judge(&node);
        assert_eq!((fit.run, fit.keep), expected, "{spec} with {taints:?}");
    }

    #[test]
    fn s2_2_1_node_name() {
        check(&json!({"nodeName": "n1"}), &[], BOTH);
        check(&json!({"nodeName": ""}), &[], BOTH);
        check(&json!({"nodeName": "n2"}), &[], NEITHER);
    }

    #[test]
    fn s2_2_2_node_selector() {
        check(&json!({"nodeSelector": {"zone": "a"}}), &[], BOTH);
        check(&json!({"nodeSelector": {"zone": "b"}}), &[], NEITHER);
        check(
            &json!({"nodeSelector": {"zone": "a", "disk": "ssd"}}),
            &[],
            NEITHER,
        );
    }

    #[test]
    fn s2_2_3_required_affinity() {
        let affinity = |value: &str| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions":
                    [{"key": "zone", "operator": "In", "values": [value]}]}]}}}})
        };
        check(&affinity("a"), &[], BOTH);
        check(&affinity("b"), &[], NEITHER);
    }

    #[test]
    fn s2_2_4_and_5_taints() {
        let tolerant = json!({"tolerations": [{"key": "x", "operator": "Exists"}]});
        check(&tolerant, &[("x", "NoSchedule"), ("x", "NoExecute")], BOTH);
        check(&json!({}), &[("x", "PreferNoSchedule")], BOTH);
        check(&json!({}), &[("x", "NoSchedule")], KEEP);
        check(&json!({}), &[("x", "NoExecute")], NEITHER);
        check(&tolerant, &[("x", "NoExecute"), ("y", "NoSchedule")], KEEP);
    }

    #[test]
    fn s2_3_1_automatic_tolerations() {
        for (key, effect, host_network_only) in &AUTOMATIC {
            let effect = effect.as_str();
            check(&json!({"hostNetwork": true}), &[(key, effect)], BOTH);
            let plain = if *host_network_only { KEEP } else { BOTH };
            check(&json!({}), &[(key, effect)], plain);
        }
    }

    #[test]
    fn s2_1_2_and_2_4_1_cordoned_nodes_run_their_pods() {
        // The node in `check` is cordoned; only its taint could matter, and that is tolerated.
        check(&json!({}), &[], BOTH);
        let cordon = ("node.kubernetes.io/unschedulable", "NoSchedule");
        check(&json!({}), &[cordon], BOTH);
    }

    #[test]
    fn s2_4_3_taints_that_are_not_tolerated_automatically() {
        let out_of_service = ("node.kubernetes.io/out-of-service", "NoExecute");
        check(&json!({}), &[out_of_service], NEITHER);
        for key in [
            "node.cloudprovider.kubernetes.io/uninitialized",
            "node.cloudprovider.kubernetes.io/shutdown",
            "node-role.kubernetes.io/control-plane",
            "node.kubernetes.io/network-unavailable",
        ] {
            check(&json!({}), &[(key, "NoSchedule")], KEEP);
        }
    }

    #[test]
    fn s2_4_2_not_ready_nodes_keep_but_do_not_run() {
        let key = "node.kubernetes.io/not-ready";
        check(&json!({}), &[(key, "NoExecute"), (key, "NoSchedule")], KEEP);
    }

    #[test]
    fn s2_3_2_identical_tolerations_are_replaced_in_place() {
        let spec = json!({"tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 5},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]});
        let merged = daemon_tolerations(&spec, false);
        assert_eq!(merged.len(), 7);
        assert_eq!(merged[0].toleration_seconds, None);
        assert!(merged[1].effect.is_empty());
        assert_eq!(merged[2].key, "node.kubernetes.io/unreachable");
    }
}

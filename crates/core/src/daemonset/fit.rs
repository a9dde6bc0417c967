//! May this node run that pod? The rules of eligibility, compiled once per template.
//!
//! Reads a node's name, labels and taints and nothing else of it (rule 2.1): not whether it is
//! cordoned, ready or full.

use std::collections::BTreeMap;

use serde_json::Value;

use super::view::NodeView;
use crate::affinity::NodeSelector;
use crate::taint::{NO_EXECUTE, NO_SCHEDULE, Taint, Toleration};

/// The answer for one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// A pod should be started there.
    pub run: bool,
    /// A pod that runs there may stay.
    pub keep: bool,
}

/// One thing that is asked of a node.
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
    /// May a pod that runs stay where this does not hold?
    pub fn spares_running_pods(&self) -> bool {
        matches!(self, Self::Taint(taint) if taint.effect == NO_SCHEDULE)
    }
}

/// What a pod spec asks of its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    node_name: Option<String>,
    node_selector: BTreeMap<String, String>,
    required: Option<NodeSelector>,
    tolerations: Vec<Toleration>,
}

impl Rules {
    /// From a pod spec as it is.
    pub fn of_pod_spec(spec: &Value) -> Self {
        let node_name = spec.get("nodeName").and_then(Value::as_str);
        let labels = spec.get("nodeSelector").and_then(Value::as_object);
        Self {
            node_name: node_name.filter(|n| !n.is_empty()).map(str::to_owned),
            node_selector: labels
                .into_iter()
                .flatten()
                .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                .collect(),
            required: required_affinity(spec).map(NodeSelector::parse),
            tolerations: tolerations_of(spec),
        }
    }

    /// From a DaemonSet's template: the pod spec with the automatic tolerations (rule 2.3).
    pub fn of_template(template: &Value) -> Self {
        let spec = template.get("spec").unwrap_or(&Value::Null);
        let mut rules = Self::of_pod_spec(spec);
        rules.tolerations = daemon_tolerations(spec);
        rules
    }

    /// The node that required affinity pins this pod to, if it names just one.
    pub fn pinned(&self) -> Option<&str> {
        self.required.as_ref().and_then(NodeSelector::pinned)
    }

    /// As [`pinned`](Self::pinned); if that is all that required affinity says, it is taken out of it.
    pub fn take_pin(&mut self) -> Option<String> {
        let pin = self.pinned()?.to_owned();
        self.required = self.required.take().filter(|r| !r.only_pins());
        Some(pin)
    }

    /// What the pod puts up with.
    pub fn tolerations(&self) -> &[Toleration] {
        &self.tolerations
    }

    /// The keys of the node labels that the answer depends on.
    pub fn label_keys(&self) -> impl Iterator<Item = &str> {
        let selector = self.node_selector.keys().map(String::as_str);
        let required = self.required.iter().flat_map(NodeSelector::label_keys);
        selector.chain(required)
    }

    /// Does the answer depend on taints? Not if everything is tolerated.
    pub fn reads_taints(&self) -> bool {
        let any =
            |t: &Toleration| t.key.is_empty() && t.effect.is_empty() && t.operator == "Exists";
        !self.tolerations.iter().any(any)
    }

    /// Do name and labels of nodes not matter at all?
    pub fn select_all(&self) -> bool {
        self.node_name.is_none() && self.node_selector.is_empty() && self.required.is_none()
    }

    /// Do node name, node selector and required affinity allow this node?
    pub fn selects(&self, node: &NodeView) -> bool {
        self.selecting(node).all(|(_, holds)| holds)
    }

    /// Each thing that is asked of this node, in the order of rule 2.2, and whether it holds.
    pub fn checks<'a>(&'a self, node: &'a NodeView) -> impl Iterator<Item = (Rule<'a>, bool)> {
        self.selecting(node).chain(self.bearing(node))
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

    fn bearing<'a>(&'a self, node: &'a NodeView) -> impl Iterator<Item = (Rule<'a>, bool)> {
        let repels = |t: &&Taint| t.effect == NO_SCHEDULE || t.effect == NO_EXECUTE;
        let borne = |taint: &Taint| self.tolerations.iter().any(|t| t.tolerates(taint));
        let taints = node.taints.iter().filter(repels);
        taints.map(move |taint| (Rule::Taint(taint), borne(taint)))
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

/// The required node affinity of a pod spec.
pub fn required_affinity(spec: &Value) -> Option<&Value> {
    spec.get("affinity")?
        .get("nodeAffinity")?
        .get("requiredDuringSchedulingIgnoredDuringExecution")
        .filter(|required| !required.is_null())
}

fn tolerations_of(spec: &Value) -> Vec<Toleration> {
    let list = spec.get("tolerations").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|item| serde::Deserialize::deserialize(item).ok())
        .collect()
}

/// Key, effect, and whether only pods on the host's network get it (rule 2.3.1).
const AUTOMATIC: [(&str, &str, bool); 7] = [
    ("node.kubernetes.io/not-ready", NO_EXECUTE, false),
    ("node.kubernetes.io/unreachable", NO_EXECUTE, false),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE, false),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE, false),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE, false),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE, false),
    ("node.kubernetes.io/network-unavailable", NO_SCHEDULE, true),
];

/// The tolerations of a template's pods: its own, merged with the automatic ones (rule 2.3.2).
pub fn daemon_tolerations(spec: &Value) -> Vec<Toleration> {
    let on_host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let mut tolerations = tolerations_of(spec);
    for (key, effect, host_network_only) in AUTOMATIC {
        if host_network_only && !on_host_network {
            continue;
        }
        let automatic = Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            effect: effect.to_owned(),
            ..Toleration::default()
        };
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
                .map(|(key, effect)| Taint {
                    key: (*key).to_owned(),
                    value: String::new(),
                    effect: (*effect).to_owned(),
                })
                .collect(),
            unschedulable: true,
        };
        let fit = Rules::of_template(&json!({ "spec": spec })).judge(&node);
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
        for (key, effect, host_network_only) in AUTOMATIC {
            check(&json!({"hostNetwork": true}), &[(key, effect)], BOTH);
            let plain = if host_network_only { KEEP } else { BOTH };
            check(&json!({}), &[(key, effect)], plain);
        }
    }

    #[test]
    fn s2_1_2_and_2_4_1_cordoned_nodes_run_their_pods() {
        // The node of these tests is cordoned; only its taint could matter, and that is tolerated.
        check(&json!({}), &[], BOTH);
        let cordon = ("node.kubernetes.io/unschedulable", "NoSchedule");
        check(&json!({}), &[cordon], BOTH);
    }

    #[test]
    fn s2_4_3_what_is_not_tolerated_by_itself() {
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
        let merged = daemon_tolerations(&spec);
        assert_eq!(merged.len(), 7);
        assert_eq!(merged[0].toleration_seconds, None);
        assert_eq!(merged[1].effect, "");
        assert_eq!(merged[2].key, "node.kubernetes.io/unreachable");
    }
}

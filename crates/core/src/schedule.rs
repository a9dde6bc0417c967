//! Which node a pending pod goes to.
//!
//! The seed of the scheduler: node name, node selector, required affinity, taints and cordons. A
//! pod pinned to one node is decided by looking at that node alone. It does not yet know of
//! resources, host ports, pod affinity, spreading, priorities or preemption, and it says nothing
//! about why a pod fits nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::daemonset::fit::Rules;
use crate::daemonset::view::NodeView;
use crate::taint::{NO_EXECUTE, NO_SCHEDULE, Taint, first_untolerated};

/// What a pod must tolerate to be placed on a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Where a pod is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Uid of the pod.
    pub pod: Arc<str>,
    /// Name of the node.
    pub node: Arc<str>,
}

/// May a pod with these rules be placed on this node now?
pub fn admits(rules: &Rules, node: &NodeView) -> bool {
    let cordon = || Taint {
        key: UNSCHEDULABLE.to_owned(),
        value: String::new(),
        effect: NO_SCHEDULE.to_owned(),
    };
    let tolerated = |taints: &[Taint]| {
        first_untolerated(taints, rules.tolerations(), &[NO_SCHEDULE, NO_EXECUTE]).is_none()
    };
    rules.selects(node)
        && tolerated(&node.taints)
        && (!node.unschedulable || tolerated(&[cordon()]))
}

/// The pods that wait for a node, and the nodes there are.
#[derive(Debug, Default)]
pub struct Scheduler {
    nodes: BTreeMap<Arc<str>, NodeView>,
    /// By uid.
    pending: BTreeMap<Arc<str>, Pending>,
    /// Uids of pending pods by the one node they may go to; `None` for those with a choice.
    by_pin: BTreeMap<Option<Arc<str>>, BTreeSet<Arc<str>>>,
}

#[derive(Debug)]
struct Pending {
    rules: Rules,
    pin: Option<Arc<str>>,
    /// A binding has been asked for and not failed: do not ask again.
    binding: bool,
}

impl Scheduler {
    /// A scheduler that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A pod waits for a node.
    pub fn pod(&mut self, uid: &Arc<str>, rules: Rules) -> Option<Binding> {
        let known = self.pending.get(uid);
        if known.is_some_and(|pod| pod.binding || pod.rules == rules) {
            return None;
        }
        self.pod_gone(uid);
        let pin: Option<Arc<str>> = rules.pinned().map(Into::into);
        self.by_pin
            .entry(pin.clone())
            .or_default()
            .insert(uid.clone());
        let binding = false;
        self.pending.insert(
            uid.clone(),
            Pending {
                rules,
                pin,
                binding,
            },
        );
        self.try_pod(uid)
    }

    /// A pod no longer waits: it is bound, gone, or not ours.
    pub fn pod_gone(&mut self, uid: &str) {
        let Some(pod) = self.pending.remove(uid) else {
            return;
        };
        if let Some(pods) = self.by_pin.get_mut(&pod.pin) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_pin.remove(&pod.pin);
            }
        }
    }

    /// A binding failed; [`Self::retry`] tries again.
    pub fn failed(&mut self, uid: &str) {
        if let Some(pod) = self.pending.get_mut(uid) {
            pod.binding = false;
        }
    }

    /// Looks at a pod again.
    pub fn retry(&mut self, uid: &Arc<str>) -> Option<Binding> {
        self.try_pod(uid)
    }

    /// A node is there or has changed: pods that wait for it, or for any, may go there.
    pub fn node(&mut self, view: NodeView) -> Vec<Binding> {
        let name = view.name.clone();
        if self.nodes.get(&name) == Some(&view) {
            return Vec::new();
        }
        self.nodes.insert(name.clone(), view);
        let waiting = [Some(name), None]
            .iter()
            .filter_map(|pin| self.by_pin.get(pin))
            .flatten()
            .cloned()
            .collect::<Vec<_>>();
        waiting.iter().filter_map(|uid| self.try_pod(uid)).collect()
    }

    /// A node is gone.
    pub fn node_gone(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    fn try_pod(&mut self, uid: &Arc<str>) -> Option<Binding> {
        let pod = self.pending.get_mut(uid).filter(|pod| !pod.binding)?;
        let node = match &pod.pin {
            Some(pin) => self.nodes.get(pin).filter(|node| admits(&pod.rules, node)),
            None => self.nodes.values().find(|node| admits(&pod.rules, node)),
        }?;
        pod.binding = true;
        Some(Binding {
            pod: uid.clone(),
            node: node.name.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(name: &str, taint: Option<&str>) -> NodeView {
        NodeView {
            name: name.into(),
            labels: BTreeMap::from([("zone".to_owned(), name.to_owned())]),
            taints: taint
                .into_iter()
                .map(|effect| Taint {
                    key: "x".into(),
                    value: String::new(),
                    effect: effect.into(),
                })
                .collect(),
            unschedulable: false,
        }
    }

    fn pinned(name: &str) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields":
                [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}})
    }

    fn place(scheduler: &mut Scheduler, uid: &str, spec: &Value) -> Option<String> {
        let binding = scheduler.pod(&uid.into(), Rules::of_pod_spec(spec));
        binding.map(|b| b.node.to_string())
    }

    fn with_nodes(nodes: &[NodeView]) -> Scheduler {
        let mut scheduler = Scheduler::new();
        for node in nodes {
            scheduler.node(node.clone());
        }
        scheduler
    }

    #[test]
    fn pods_go_where_they_may() {
        let nodes = [
            node("a", Some("NoSchedule")),
            node("b", None),
            node("c", Some("NoExecute")),
        ];
        let check = |spec: Value, expected: Option<&str>| {
            let found = place(&mut with_nodes(&nodes), "p", &spec);
            assert_eq!(found.as_deref(), expected, "{spec}");
        };
        check(json!({}), Some("b"));
        check(json!({"tolerations": [{"operator": "Exists"}]}), Some("a"));
        check(json!({"nodeSelector": {"zone": "c"}}), None);
        check(pinned("b"), Some("b"));
        check(pinned("a"), None);
        check(pinned("d"), None);
    }

    #[test]
    fn cordoned_nodes_take_only_pods_that_tolerate_it() {
        let cordoned = NodeView {
            unschedulable: true,
            ..node("a", None)
        };
        let mut scheduler = with_nodes(&[cordoned]);
        assert_eq!(place(&mut scheduler, "p", &json!({})), None);
        let daemon = json!({"tolerations": [
            {"key": UNSCHEDULABLE, "operator": "Exists", "effect": "NoSchedule"}]});
        assert_eq!(place(&mut scheduler, "q", &daemon).as_deref(), Some("a"));
    }

    #[test]
    fn waiting_pods_are_tried_when_a_node_changes() {
        let mut scheduler = with_nodes(&[node("a", Some("NoSchedule"))]);
        assert_eq!(place(&mut scheduler, "pinned", &pinned("a")), None);
        assert_eq!(place(&mut scheduler, "elsewhere", &pinned("b")), None);
        assert_eq!(place(&mut scheduler, "any", &json!({})), None);
        let bindings = scheduler.node(node("a", None));
        let pods: Vec<&str> = bindings.iter().map(|b| &*b.pod).collect();
        assert_eq!(pods, ["pinned", "any"]);
        assert_eq!(scheduler.node(node("a", None)), []);
    }

    #[test]
    fn a_binding_is_asked_for_once_until_it_fails() {
        let mut scheduler = with_nodes(&[node("a", None)]);
        assert!(place(&mut scheduler, "p", &json!({})).is_some());
        assert!(place(&mut scheduler, "p", &json!({})).is_none());
        assert_eq!(scheduler.retry(&"p".into()), None);
        scheduler.failed("p");
        assert!(scheduler.retry(&"p".into()).is_some());
        scheduler.failed("p");
        scheduler.pod_gone("p");
        assert_eq!(scheduler.retry(&"p".into()), None);
    }
}

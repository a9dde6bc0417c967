//! Watch events, and how the scheduler's rules read the objects in them.

use std::sync::Arc;

use kennel_core::schedule::{NodeInfo, Place, PodRequirements, PodView, Resources, Scheduler};
use kennel_types::{ConditionStatus, ConditionType, Identity, Namespace, Node, Timestamp};
use kube::ResourceExt as _;

use super::NAME;
use crate::frame::{Update, Watches};
use crate::informers::{Informers, Pod};
use crate::view;

pub(super) enum Event {
    Namespace(Update<Arc<Namespace>>),
    Node(Update<Arc<Node>>),
    Pod(Update<Arc<Pod>>),
}

pub(super) fn watches(informers: &mut Informers) -> Watches<Event> {
    let mut watches = Watches::default();
    watches.add(
        "namespaces",
        informers.namespaces.subscribe(),
        Event::Namespace,
    );
    watches.add("nodes", informers.nodes.subscribe(), Event::Node);
    watches.add("pods", informers.pods.subscribe(), Event::Pod);
    watches
}

impl Event {
    pub(super) fn apply(self, scheduler: &mut Scheduler) {
        match self {
            Self::Namespace(Update::Applied(namespace)) => {
                let labels = namespace.metadata.labels.clone().unwrap_or_default();
                scheduler.namespace(&namespace.name_any().into(), labels);
            }
            Self::Namespace(Update::Gone(id)) => scheduler.namespace_gone(&id.name),
            Self::Node(Update::Applied(node)) => scheduler.node(NodeInfo {
                view: view::node(&node),
                allocatable: Resources::from(&node.status.allocatable),
            }),
            Self::Node(Update::Gone(id)) => scheduler.node_gone(&id.name),
            Self::Pod(Update::Applied(pod)) => apply_pod(&pod, scheduler),
            Self::Pod(Update::Gone(id)) => scheduler.pod_gone(&id.uid),
        }
    }
}

fn apply_pod(pod: &Pod, scheduler: &mut Scheduler) {
    let meta = &pod.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    let Some(place) = place(pod) else {
        return scheduler.pod_gone(uid);
    };
    // Most changes of bound pods do not concern a scheduler.
    if let Place::Bound(node) = &place {
        let generation = meta.generation.unwrap_or_default();
        let (labels, terminating) = (meta.labels.as_ref(), meta.deletion_timestamp.is_some());
        if scheduler.is_up_to_date(uid, node, generation, labels, terminating) {
            return;
        }
    }
    scheduler.pod(pod_view(pod, place));
}

/// Where a pod is. Nothing, if it neither uses resources of a node nor waits for this scheduler.
fn place(pod: &Pod) -> Option<Place> {
    let spec = &pod.spec;
    if pod.status.phase.is_terminal() {
        return None;
    }
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(Place::Bound(node.into()));
    }
    let ours = matches!(spec.scheduler_name.as_deref(), None | Some("" | NAME))
        && pod.metadata.deletion_timestamp.is_none();
    let place = if spec.scheduling_gates.is_empty() {
        Place::Pending
    } else {
        Place::Gated
    };
    ours.then_some(place)
}

/// What a pod requires of a node, and the node that it is pinned to.
pub fn requirements(pod: &Pod) -> (PodRequirements, Option<Arc<str>>) {
    let meta = &pod.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    PodRequirements::of(namespace, meta.labels.as_ref(), &pod.spec)
}

fn pod_view(pod: &Pod, place: Place) -> PodView {
    let (meta, status) = (&pod.metadata, &pod.status);
    let (requirements, pin) = requirements(pod);
    let condition = |kind: &ConditionType, status: ConditionStatus| {
        let condition = pod.status.condition(kind);
        condition.filter(|condition| condition.status == status)
    };
    let unscheduled = condition(&ConditionType::PodScheduled, ConditionStatus::False);
    let since = unscheduled.and_then(|condition| condition.last_transition_time);
    let created = meta.creation_timestamp.as_ref();
    PodView {
        id: Identity::of(meta),
        requirements,
        pin,
        created: created.map_or(Timestamp::EPOCH, Timestamp::from),
        generation: meta.generation.unwrap_or_default(),
        place,
        terminating: meta.deletion_timestamp.is_some(),
        disrupted: condition(&ConditionType::DisruptionTarget, ConditionStatus::True).is_some(),
        nominated: status.nominated_node_name.as_deref().map(Into::into),
        unscheduled_since: since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kennel_core::schedule::HostPort;
    use serde_json::{Value, json};

    fn check(spec: &Value, phase: &str, expected: Option<&Place>) {
        let object = json!({"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}});
        let pod: Pod = serde_json::from_value(object).unwrap();
        assert_eq!(place(&pod).as_ref(), expected, "{spec} {phase}");
    }

    #[test]
    fn only_pods_of_this_scheduler_and_bound_pods_matter() {
        let gates = json!([{"name": "wait"}]);
        check(&json!({}), "Pending", Some(&Place::Pending));
        check(
            &json!({"schedulerName": "default-scheduler"}),
            "",
            Some(&Place::Pending),
        );
        check(&json!({"schedulerName": "other"}), "Pending", None);
        check(
            &json!({"nodeName": "n1"}),
            "Running",
            Some(&Place::Bound("n1".into())),
        );
        check(
            &json!({"nodeName": "n1", "schedulerName": "other"}),
            "",
            Some(&Place::Bound("n1".into())),
        );
        check(&json!({"nodeName": "n1"}), "Succeeded", None);
        check(&json!({}), "Failed", None);
        check(
            &json!({"schedulingGates": gates}),
            "Pending",
            Some(&Place::Gated),
        );
        check(
            &json!({"schedulingGates": []}),
            "Pending",
            Some(&Place::Pending),
        );
    }

    #[test]
    fn a_pods_demand_comes_from_its_spec() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 3,
                         "creationTimestamp": "1970-01-01T00:00:07Z", "labels": {"a": "b"}},
            "spec": {"priority": 7, "preemptionPolicy": "Never", "overhead": {"cpu": "1m"},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}},
                    "ports": [{"containerPort": 1, "hostPort": 80, "protocol": "UDP"}]}],
                "initContainers": [{"name": "s", "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"nominatedNodeName": "n1", "conditions": [
                {"type": "PodScheduled", "status": "False",
                 "lastTransitionTime": "1970-01-01T00:00:09Z"}]}}))
        .unwrap();
        let view = pod_view(&pod, Place::Pending);
        assert_eq!(view.requirements.requests.cpu, 2001);
        assert_eq!(view.requirements.ports, [HostPort::new("", "UDP", 80)]);
        assert_eq!(
            (view.requirements.priority, view.requirements.preempts),
            (7, false)
        );
        assert_eq!(
            (view.created, view.unscheduled_since),
            (Timestamp::from_secs(7), Some(Timestamp::from_secs(9)))
        );
        assert_eq!(view.nominated.as_deref(), Some("n1"));
    }
}

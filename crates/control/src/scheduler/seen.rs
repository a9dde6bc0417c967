//! From what the watches see to what the scheduler is told.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kennel_client::feed::{Change, Identity};
use kennel_core::schedule::{
    Asked, Container, Demand, HostPort, Machine, Place, PodRef, PodView, Scheduler,
};
use kube::ResourceExt as _;

use super::NAME;
use crate::informers::Informers;
use crate::shape::{self, Namespace, Node, Pod};
use crate::view;

/// How many changes are taken at once: enough that a wave of them costs one round, few enough that
/// answers to writes are not kept waiting.
const ROUND: usize = 256;

/// What the watches see.
pub(super) enum Seen {
    Namespace(Change<Arc<Namespace>>),
    Node(Change<Arc<Node>>),
    Pod(Change<Arc<Pod>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watch {
    Namespaces,
    Nodes,
    Pods,
}

impl Watch {
    pub(super) const ALL: [Self; 3] = [Self::Namespaces, Self::Nodes, Self::Pods];
}

/// All that concerns the scheduler, in rounds.
pub(super) fn rounds(informers: &mut Informers) -> BoxStream<'static, Vec<Seen>> {
    let namespaces = informers.namespaces().map(Seen::Namespace).boxed();
    let nodes = informers.nodes().map(Seen::Node).boxed();
    let pods = informers.pods().map(Seen::Pod).boxed();
    let all = stream::select_all([namespaces, nodes, pods]);
    all.ready_chunks(ROUND).boxed()
}

impl Seen {
    /// Tells the scheduler. The answer is the watch that has now delivered all there was, if one has.
    pub(super) fn tell(self, scheduler: &mut Scheduler) -> Option<Watch> {
        match self {
            Self::Namespace(Change::Applied(namespace)) => {
                let labels = namespace.metadata.labels.clone().unwrap_or_default();
                scheduler.namespace(&namespace.name_any().into(), labels);
            }
            Self::Namespace(Change::Gone(id)) => scheduler.namespace_gone(&id.name),
            Self::Namespace(Change::Synced) => return Some(Watch::Namespaces),
            Self::Node(Change::Applied(node)) => scheduler.node(Machine {
                view: view::node(&node),
                allocatable: node.status.allocatable.clone(),
            }),
            Self::Node(Change::Gone(id)) => scheduler.node_gone(&id.name),
            Self::Node(Change::Synced) => return Some(Watch::Nodes),
            Self::Pod(Change::Applied(pod)) => tell_of_pod(&pod, scheduler),
            Self::Pod(Change::Gone(id)) => scheduler.pod_gone(&id.uid),
            Self::Pod(Change::Synced) => return Some(Watch::Pods),
        }
        None
    }
}

fn tell_of_pod(pod: &Pod, scheduler: &mut Scheduler) {
    let meta = &pod.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    let Some(place) = place(pod) else {
        return scheduler.pod_gone(uid);
    };
    // Most news of bound pods is none for a scheduler.
    if let Place::On(node) = &place {
        let generation = meta.generation.unwrap_or_default();
        let (labels, terminating) = (meta.labels.as_ref(), meta.deletion_timestamp.is_some());
        if scheduler.knows(uid, node, generation, labels, terminating) {
            return;
        }
    }
    scheduler.pod(pod_view(pod, place));
}

/// Where a pod is; nothing if it neither takes room nor waits for us to find it some.
fn place(pod: &Pod) -> Option<Place> {
    let spec = &pod.spec;
    if matches!(pod.status.phase.as_deref(), Some("Failed" | "Succeeded")) {
        return None;
    }
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(Place::On(node.into()));
    }
    let ours = matches!(spec.scheduler_name.as_deref(), None | Some("" | NAME))
        && pod.metadata.deletion_timestamp.is_none();
    let place = if spec.scheduling_gates.is_empty() {
        Place::Waits
    } else {
        Place::Gated
    };
    ours.then_some(place)
}

/// What a pod asks of a node, and the node that it is pinned to.
pub fn demand(pod: &Pod) -> (Demand, Option<Arc<str>>) {
    let (meta, spec) = (&pod.metadata, &pod.spec);
    let containers: Vec<Container<'_>> = spec.containers.iter().map(container).collect();
    let init_containers: Vec<Container<'_>> = spec.init_containers.iter().map(container).collect();
    Demand::compile(Asked {
        namespace: meta.namespace.as_deref().unwrap_or_default(),
        labels: meta.labels.as_ref(),
        rules: pod.rules(),
        affinity: &spec.affinity,
        containers: &containers,
        init_containers: &init_containers,
        overhead: &spec.overhead,
        whole: &spec.resources.requests,
        priority: spec.priority,
        preempts: spec.preemption_policy.as_deref() != Some("Never"),
    })
}

fn pod_view(pod: &Pod, place: Place) -> PodView {
    let (meta, status) = (&pod.metadata, &pod.status);
    let (demand, pin) = demand(pod);
    let Identity {
        namespace,
        name,
        uid,
    } = Identity::of(pod);
    let condition = |kind: &str, status: &str| {
        let mut conditions = pod.status.conditions.iter();
        conditions.find(|c| c.r#type == kind && c.status == status)
    };
    let unscheduled = condition("PodScheduled", "False");
    let since = unscheduled.and_then(|c| c.last_transition_time.as_ref());
    PodView {
        id: PodRef {
            namespace,
            name,
            uid,
        },
        demand,
        pin,
        created: meta
            .creation_timestamp
            .as_ref()
            .map_or(0, |t| t.0.as_second()),
        generation: meta.generation.unwrap_or_default(),
        place,
        terminating: meta.deletion_timestamp.is_some(),
        disrupted: condition("DisruptionTarget", "True").is_some(),
        nominated: status.nominated_node_name.as_deref().map(Into::into),
        unscheduled_since: since.map(|time| time.0.as_second()),
    }
}

fn container(container: &shape::Container) -> Container<'_> {
    let taken = container.ports.iter().filter(|port| port.host_port > 0);
    let port = |port: &shape::ContainerPort| {
        let address = port.host_ip.as_deref().unwrap_or_default();
        let protocol = port.protocol.as_deref().unwrap_or_default();
        HostPort::new(address, protocol, port.host_port.into())
    };
    Container {
        requests: &container.resources.requests,
        ports: taken.map(port).collect(),
        sidecar: container.restart_policy.as_deref() == Some("Always"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: &Value, phase: &str, expected: Option<&Place>) {
        let object = json!({"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}});
        let pod: Pod = serde_json::from_value(object).unwrap();
        assert_eq!(place(&pod).as_ref(), expected, "{spec} {phase}");
    }

    #[test]
    fn only_pods_that_wait_for_this_scheduler_or_take_room_matter() {
        let gates = json!([{"name": "wait"}]);
        check(&json!({}), "Pending", Some(&Place::Waits));
        check(
            &json!({"schedulerName": "default-scheduler"}),
            "",
            Some(&Place::Waits),
        );
        check(&json!({"schedulerName": "other"}), "Pending", None);
        check(
            &json!({"nodeName": "n1"}),
            "Running",
            Some(&Place::On("n1".into())),
        );
        check(
            &json!({"nodeName": "n1", "schedulerName": "other"}),
            "",
            Some(&Place::On("n1".into())),
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
            Some(&Place::Waits),
        );
    }

    #[test]
    fn a_pod_asks_for_what_its_spec_says() {
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
        let view = pod_view(&pod, Place::Waits);
        assert_eq!(view.demand.requests.cpu, 2001);
        assert_eq!(view.demand.ports, [HostPort::new("", "UDP", 80)]);
        assert_eq!((view.demand.priority, view.demand.preempts), (7, false));
        assert_eq!((view.created, view.unscheduled_since), (7, Some(9)));
        assert_eq!(view.nominated.as_deref(), Some("n1"));
    }
}

//! Watch events as the planner reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_core::daemonset::NodeView;
use kennel_core::daemonset::event::Event as PlannerEvent;
use kennel_types::{Namespace, Node};
use kube::api::DynamicObject;

use crate::frame::{Update, Watches};
use crate::informers::{Informers, Pod};
use crate::view;

pub(super) enum Event {
    Planner(PlannerEvent),
    /// A DaemonSet, with the object that its status is written into.
    DaemonSet(PlannerEvent, Arc<DynamicObject>),
    /// A node, with the object that a taint is removed from.
    Node(NodeView, Arc<Node>),
    /// A DaemonSet that cannot be decoded.
    Invalid,
}

pub(super) fn watches(informers: &mut Informers) -> Watches<Event> {
    let mut watches = Watches::default();
    watches.add("daemonsets", informers.daemon_sets.subscribe(), daemon_set);
    watches.add("nodes", informers.nodes.subscribe(), node);
    watches.add("pods", informers.pods.subscribe(), pod);
    watches.add(
        "controllerrevisions",
        informers.revisions.subscribe(),
        revision,
    );
    watches.add("namespaces", informers.namespaces.subscribe(), namespace);
    watches
}

fn daemon_set(update: Update<Arc<DynamicObject>>) -> Event {
    match update {
        Update::Applied(object) => match view::daemon_set(&object) {
            Ok(view) => Event::DaemonSet(PlannerEvent::DaemonSet(view), object),
            Err(error) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(name, %error, "ignoring a daemonset with an invalid selector");
                Event::Invalid
            }
        },
        Update::Gone(id) => Event::Planner(PlannerEvent::DaemonSetGone(id.uid)),
    }
}

fn node(update: Update<Arc<Node>>) -> Event {
    match update {
        Update::Applied(node) => Event::Node(view::node(&node), node),
        Update::Gone(id) => Event::Planner(PlannerEvent::NodeGone(id.name)),
    }
}

fn pod(update: Update<Arc<Pod>>) -> Event {
    Event::Planner(match update {
        Update::Applied(pod) => match view::pod(&pod) {
            Some(view) => PlannerEvent::Pod(view),
            None => PlannerEvent::PodGone(uid(pod.metadata.uid.as_deref())),
        },
        Update::Gone(id) => PlannerEvent::PodGone(id.uid),
    })
}

fn revision(update: Update<Arc<DynamicObject>>) -> Event {
    Event::Planner(match update {
        Update::Applied(object) => match view::revision(&object) {
            Some(revision) => PlannerEvent::Revision(revision),
            None => PlannerEvent::RevisionGone(uid(object.metadata.uid.as_deref())),
        },
        Update::Gone(id) => PlannerEvent::RevisionGone(id.uid),
    })
}

fn namespace(update: Update<Arc<Namespace>>) -> Event {
    Event::Planner(match update {
        Update::Applied(namespace) => PlannerEvent::Namespace {
            name: uid(namespace.metadata.name.as_deref()),
            annotations: namespace.metadata.annotations.clone().unwrap_or_default(),
        },
        Update::Gone(id) => PlannerEvent::Namespace {
            name: id.name,
            annotations: BTreeMap::new(),
        },
    })
}

fn uid(uid: Option<&str>) -> Arc<str> {
    uid.unwrap_or_default().into()
}

//! From what the watches see to what the planner is told.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use kennel_client::feed::Change;
use kennel_core::daemonset::event::Event;
use kube::api::DynamicObject;

use crate::informers::Informers;
use crate::shape::{Node, Pod};
use crate::view;

/// How many changes are taken at once: enough that a wave of them costs one round, few enough that
/// answers to writes are not kept waiting.
const ROUND: usize = 256;

/// What the watches see.
pub(super) enum Seen {
    Event(Event),
    /// A DaemonSet, with the object that its status is written into.
    DaemonSet(Event, Arc<DynamicObject>),
    /// A watch has delivered all there was.
    Synced(Watch),
    /// Something that cannot be used.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watch {
    DaemonSets,
    Nodes,
    Pods,
    Revisions,
}

impl Watch {
    pub(super) const ALL: [Self; 4] = [Self::DaemonSets, Self::Nodes, Self::Pods, Self::Revisions];
}

/// All that concerns DaemonSets, in rounds.
pub(super) fn rounds(informers: &mut Informers) -> BoxStream<'static, Vec<Seen>> {
    let sets = informers.daemon_sets().map(daemon_set).boxed();
    let nodes = informers.nodes().map(node).boxed();
    let pods = informers.pods().map(pod).boxed();
    let revisions = informers.revisions().map(revision).boxed();
    let all = stream::select_all([sets, nodes, pods, revisions]);
    all.ready_chunks(ROUND).boxed()
}

fn daemon_set(change: Change<Arc<DynamicObject>>) -> Seen {
    match change {
        Change::Applied(object) => match view::daemon_set(&object) {
            Ok(view) => Seen::DaemonSet(Event::DaemonSet(view), object),
            Err(error) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(name, %error, "a daemonset's selector makes no sense");
                Seen::Nothing
            }
        },
        Change::Gone(id) => Seen::Event(Event::DaemonSetGone(id.uid)),
        Change::Synced => Seen::Synced(Watch::DaemonSets),
    }
}

fn node(change: Change<Arc<Node>>) -> Seen {
    match change {
        Change::Applied(node) => Seen::Event(Event::Node(view::node(&node))),
        Change::Gone(id) => Seen::Event(Event::NodeGone(id.name)),
        Change::Synced => Seen::Synced(Watch::Nodes),
    }
}

fn pod(change: Change<Arc<Pod>>) -> Seen {
    match change {
        Change::Applied(pod) => match view::pod(&pod) {
            Some(view) => Seen::Event(Event::Pod(view)),
            None => Seen::Event(Event::PodGone(uid(pod.metadata.uid.as_deref()))),
        },
        Change::Gone(id) => Seen::Event(Event::PodGone(id.uid)),
        Change::Synced => Seen::Synced(Watch::Pods),
    }
}

fn revision(change: Change<Arc<DynamicObject>>) -> Seen {
    match change {
        Change::Applied(object) => match view::revision(&object) {
            Some(revision) => Seen::Event(Event::Revision(revision)),
            None => Seen::Event(Event::RevisionGone(uid(object.metadata.uid.as_deref()))),
        },
        Change::Gone(id) => Seen::Event(Event::RevisionGone(id.uid)),
        Change::Synced => Seen::Synced(Watch::Revisions),
    }
}

fn uid(uid: Option<&str>) -> Arc<str> {
    uid.unwrap_or_default().into()
}

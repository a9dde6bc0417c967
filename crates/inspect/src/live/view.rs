//! What the watches have shown: the nodes, and a picture for each DaemonSet.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_client::feed::Change;
use kennel_core::daemonset::{DaemonSetView, NodeView, PodView};
use kennel_core::picture::Nodes;
use kennel_core::rollout::history::{DatedRevision, History};
use kennel_core::rollout::outline::Outline;
use kennel_core::rollout::status::Status;
use kennel_types::event::Event;
use kennel_types::{Identity, Timestamp};

use super::connection::Connection;
use super::set::Set;
use super::source::{Annotations, Input, SeenPod, Shows};

/// Namespace and name.
type Key = (Arc<str>, Arc<str>);

/// See the [module](self).
#[derive(Default)]
pub struct View {
    connection: Connection,
    /// Becomes the connection with the next refresh: who sees that lists are complete sees what they have.
    connecting: Option<Connection>,
    nodes: Nodes,
    sets: BTreeMap<Key, Set>,
    namespaces: BTreeMap<Arc<str>, Annotations>,
    /// What came before its DaemonSet did, by the uid of that: watches are not ordered among each other.
    early: BTreeMap<Arc<str>, Early>,
    version: u64,
    /// Something beside the sets has changed since the version.
    changed: bool,
}

#[derive(Default)]
struct Early {
    pods: BTreeMap<Arc<str>, PodView>,
    revisions: BTreeMap<Arc<str>, DatedRevision>,
    events: BTreeMap<Arc<str>, Event>,
}

impl View {
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// In the order of namespaces and names.
    pub fn sets(&self) -> impl Iterator<Item = &Set> {
        self.sets.values()
    }

    pub fn set(&self, namespace: &str, name: &str) -> Option<&Set> {
        self.sets.get(&(namespace.into(), name.into()))
    }

    /// Grows with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What `kennel rollout status` says. It reads all nodes.
    pub fn status(&self, set: &Set, now: Timestamp) -> Status {
        self.status_and(set, now, |_| ()).0
    }

    /// The same, and what `read` makes of the outline: for those who need more that reads all nodes.
    pub fn status_and<R>(
        &self,
        set: &Set,
        now: Timestamp,
        read: impl FnOnce(&Outline<'_>) -> R,
    ) -> (Status, R) {
        let reason = |node: &str| {
            let reason = set.picture.reason(self.nodes.index(node)?)?;
            Some(reason.to_string())
        };
        set.picture.outline(&self.nodes, now, |outline| {
            (Status::of(outline, reason), read(outline))
        })
    }

    /// What `kennel rollout history` says.
    pub fn history(&self, set: &Set, now: Timestamp) -> History {
        let dated = set.dated_revisions();
        set.picture
            .without_nodes(now, |outline| History::of(outline, &dated))
    }

    pub(super) fn connect(&mut self, connection: Connection) {
        self.connecting = Some(connection);
    }

    /// Forgets everything but the nodes.
    pub(super) fn clear(&mut self) {
        self.sets.clear();
        self.early.clear();
        self.changed = true;
    }

    /// Judges what has changed. Returns the version.
    pub(super) fn refresh(&mut self, now: Timestamp) -> u64 {
        let next = self.version + 1;
        let mut changed = std::mem::take(&mut self.changed);
        if let Some(mut connection) = self.connecting.take() {
            connection.synced |= self.connection.synced;
            changed |= self.connection != connection;
            self.connection = connection;
        }
        for set in self.sets.values_mut() {
            let stale = set.picture.is_stale(now);
            let differs = stale && set.picture.refresh(&self.nodes, now);
            if differs || std::mem::take(&mut set.changed) {
                set.version = next;
                changed = true;
            }
        }
        self.version += u64::from(changed);
        self.version
    }

    pub(super) fn enter(&mut self, input: Input, now: Timestamp) {
        match input {
            Input::Set(Change::Applied(set)) => self.apply_set(set),
            Input::Set(Change::Gone(id)) => self.remove_set(&id),
            Input::Node(Change::Applied(node)) => self.apply_node(node),
            Input::Node(Change::Gone(id)) => self.remove_node(&id.name),
            Input::Pod(Change::Applied(Some(pod))) => self.apply_pod(pod, now),
            Input::Pod(Change::Gone(id)) => self.remove_pod(&id),
            Input::Revision(Change::Applied(Some(dated))) => self.apply_revision(dated),
            Input::Revision(Change::Gone(id)) => self.remove_revision(&id),
            Input::Namespace(Change::Applied((name, annotations))) => {
                self.apply_namespace(name, annotations);
            }
            Input::Namespace(Change::Gone(id)) => {
                self.namespaces.remove(&id.name);
            }
            Input::Event(Change::Applied((uid, event))) => self.apply_event(uid, event),
            Input::Event(Change::Gone(id)) => self.remove_event(&id),
            Input::Set(Change::Synced)
            | Input::Node(Change::Synced)
            | Input::Pod(Change::Applied(None) | Change::Synced)
            | Input::Revision(Change::Applied(None) | Change::Synced)
            | Input::Namespace(Change::Synced)
            | Input::Event(Change::Synced)
            | Input::Undecodable => {}
        }
    }

    fn apply_set(&mut self, view: DaemonSetView) {
        let key = (view.namespace.clone(), view.name.clone());
        let uid = view.uid.clone();
        if let Some(set) = self.sets.get_mut(&key)
            && set.picture.daemon_set().uid == uid
        {
            set.picture.set_daemon_set(view);
            set.changed = true;
            return;
        }
        let mut set = Set::new(view);
        if let Some(annotations) = self.namespaces.get(&key.0) {
            set.picture.set_namespace(annotations.clone());
        }
        let early = self.early.remove(&uid).unwrap_or_default();
        for pod in early.pods.into_values() {
            set.picture.apply_pod(pod);
        }
        for dated in early.revisions.into_values() {
            set.apply_revision(dated);
        }
        for (uid, event) in early.events {
            set.apply_event(uid, event);
        }
        self.sets.insert(key, set);
    }

    /// Its pods and revisions are still there, and another DaemonSet may adopt them: then they come again as changes.
    fn remove_set(&mut self, id: &Identity) {
        let key = (id.namespace.clone(), id.name.clone());
        let found = self.sets.get(&key);
        if found.is_some_and(|set| set.picture.daemon_set().uid == id.uid) {
            self.sets.remove(&key);
            self.changed = true;
        }
    }

    fn apply_node(&mut self, node: NodeView) {
        if let Some(index) = self.nodes.apply(node) {
            self.touch(index);
        }
    }

    fn remove_node(&mut self, name: &str) {
        if let Some(index) = self.nodes.remove(name) {
            self.touch(index);
        }
    }

    fn touch(&mut self, index: usize) {
        self.changed = true;
        for set in self.sets.values_mut() {
            set.picture.touch_node(index);
        }
    }

    fn apply_pod(&mut self, pod: SeenPod, now: Timestamp) {
        let SeenPod { view: pod, shows } = pod;
        let mut known = false;
        for set in of_namespace(&mut self.sets, &pod.namespace.clone()) {
            if pod.controller.as_ref() == Some(&set.picture.daemon_set().uid) {
                known = true;
                set.picture.apply_pod(pod.clone());
                // What fails may be replaced before the next refresh.
                if let Shows::Failure(cause) = &shows
                    && self.connection.synced
                {
                    set.note_failure(&self.nodes, &pod, cause.clone(), now);
                }
            } else {
                set.picture.remove_pod(&pod.uid);
            }
        }
        if let Some(owner) = pod.controller.clone().filter(|_| !known) {
            let early = self.early.entry(owner).or_default();
            early.pods.insert(pod.uid.clone(), pod);
        }
    }

    fn remove_pod(&mut self, id: &Identity) {
        for set in of_namespace(&mut self.sets, &id.namespace) {
            set.picture.remove_pod(&id.uid);
        }
        self.forget(|early| drop(early.pods.remove(&id.uid)));
    }

    fn apply_revision(&mut self, dated: DatedRevision) {
        let mut known = false;
        for set in of_namespace(&mut self.sets, &dated.revision.namespace.clone()) {
            if dated.revision.controller.as_ref() == Some(&set.picture.daemon_set().uid) {
                known = true;
                set.apply_revision(dated.clone());
            } else {
                set.remove_revision(&dated.revision.uid);
            }
        }
        if let Some(owner) = dated.revision.controller.clone().filter(|_| !known) {
            let early = self.early.entry(owner).or_default();
            early.revisions.insert(dated.revision.uid.clone(), dated);
        }
    }

    fn remove_revision(&mut self, id: &Identity) {
        for set in of_namespace(&mut self.sets, &id.namespace) {
            set.remove_revision(&id.uid);
        }
        self.forget(|early| drop(early.revisions.remove(&id.uid)));
    }

    fn apply_namespace(&mut self, name: Arc<str>, annotations: Annotations) {
        for set in of_namespace(&mut self.sets, &name) {
            set.picture.set_namespace(annotations.clone());
        }
        self.namespaces.insert(name, annotations);
    }

    fn apply_event(&mut self, uid: Arc<str>, event: Event) {
        let about: Arc<str> = event.involved_object.uid.as_str().into();
        let mut sets = self.sets.values_mut();
        if let Some(set) = sets.find(|set| set.picture.daemon_set().uid == about) {
            set.apply_event(uid, event);
        } else {
            let early = self.early.entry(about).or_default();
            early.events.insert(uid, event);
        }
    }

    fn remove_event(&mut self, id: &Identity) {
        for set in self.sets.values_mut() {
            set.remove_event(&id.uid);
        }
        self.forget(|early| drop(early.events.remove(&id.uid)));
    }

    /// Removes something that came before its DaemonSet.
    fn forget(&mut self, remove: impl Fn(&mut Early)) {
        for early in self.early.values_mut() {
            remove(early);
        }
        self.early.retain(|_, early| {
            !(early.pods.is_empty() && early.revisions.is_empty() && early.events.is_empty())
        });
    }
}

/// The sets of a namespace.
fn of_namespace<'a>(
    sets: &'a mut BTreeMap<Key, Set>,
    namespace: &Arc<str>,
) -> impl Iterator<Item = &'a mut Set> {
    let from = (namespace.clone(), Arc::from(""));
    let of = namespace.clone();
    sets.range_mut(from..)
        .take_while(move |((namespace, _), _)| *namespace == of)
        .map(|(_, set)| set)
}

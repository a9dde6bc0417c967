//! The node table: nodes that exist, and nodes that pods or creations still name.
//!
//! Ids are small, so that slots lie in a vector. An id is reused once its node is gone and nothing refers to it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Timestamp;

use super::super::fit::{Fit, Rules};
use super::super::rollout::seed;
use super::super::view::{NodeView, Readiness};
use super::chunked_vec::ChunkedVec;
use super::staged::{SignedTick, Tick};
use crate::ids::NodeId;

/// The fields that a pass over all nodes reads.
#[derive(Clone, Copy, Debug)]
struct Hot {
    seed: u32,
    exists: bool,
    /// It has no taint with effect `NoSchedule` or `NoExecute`.
    untainted: bool,
    ready: Readiness,
    /// Since when it is seen not ready; `Tick::MAX` if it is ready, or nobody knows when that ended.
    down_since: Tick,
    /// When it went down, while `down_since` is a time.
    went_down: SignedTick,
}

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    view: Option<NodeView>,
    /// Pods that name it, and creations for it that have not shown yet.
    references: u32,
    /// When it went down by its own condition, if that was before this process started.
    down_before_start: Option<Timestamp>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Nodes {
    entries: ChunkedVec<Entry>,
    /// Indexed like `entries`.
    hot: ChunkedVec<Hot>,
    by_name: HashMap<Arc<str>, NodeId>,
    free: Vec<NodeId>,
    /// Nodes that went down at a known time, by that time.
    down: BTreeSet<(SignedTick, NodeId)>,
    down_version: u64,
}

impl Nodes {
    /// An upper bound of all indexes.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn id(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn name(&self, id: NodeId) -> &Arc<str> {
        &self.entries[id.index()].name
    }

    pub(super) fn seed(&self, id: NodeId) -> u32 {
        self.hot[id.index()].seed
    }

    pub(super) fn view(&self, id: NodeId) -> Option<&NodeView> {
        self.entries[id.index()].view.as_ref()
    }

    /// All ids, unused ones included.
    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.entries.len()).map(NodeId::from_index)
    }

    /// Whether a node fits; `None` if there is no such node.
    pub(super) fn fit(&self, id: NodeId, rules: &Rules) -> Option<Fit> {
        let hot = self.hot[id.index()];
        if hot.exists && hot.untainted && rules.select_all() {
            // The fast path for nearly all nodes and DaemonSets.
            return Some(Fit {
                run: true,
                keep: true,
            });
        }
        self.view(id).map(|view| rules.judge(view))
    }

    /// Whether rules select a node, were it ready (R2.1).
    pub(super) fn is_selected(&self, id: NodeId, rules: &Rules) -> bool {
        let hot = self.hot[id.index()];
        if hot.exists && hot.untainted && rules.select_all() {
            return true;
        }
        self.view(id).is_some_and(|view| rules.selects_ready(view))
    }

    fn id_or_insert(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(id) = self.id(name) {
            return id;
        }
        let entry = Entry {
            name: name.clone(),
            view: None,
            references: 0,
            down_before_start: None,
        };
        let hot = Hot {
            seed: seed(name),
            exists: false,
            untainted: false,
            ready: Readiness::Ready,
            down_since: Tick::MAX,
            went_down: SignedTick::default(),
        };
        let id = if let Some(id) = self.free.pop() {
            self.entries[id.index()] = entry;
            self.hot[id.index()] = hot;
            id
        } else {
            self.entries.push(entry);
            self.hot.push(hot);
            NodeId::from_index(self.entries.len() - 1)
        };
        self.by_name.insert(name.clone(), id);
        id
    }

    /// Stores a node and returns its previous view. `inherited`: when a node that is not ready went down and how long ago,
    /// which counts if it is seen for the first time.
    pub(super) fn put(
        &mut self,
        view: NodeView,
        now: Tick,
        inherited: Option<(Timestamp, Duration)>,
    ) -> (NodeId, Option<NodeView>) {
        let id = self.id_or_insert(&view.name);
        self.note_readiness(id, view.ready, now, inherited);
        let hot = &mut self.hot[id.index()];
        hot.exists = true;
        hot.untainted = !view.taints.iter().any(|taint| taint.effect.repels());
        (id, self.entries[id.index()].view.replace(view))
    }

    pub(super) fn remove(&mut self, id: NodeId) {
        self.entries[id.index()].view = None;
        self.hot[id.index()].exists = false;
        self.note_readiness(id, Readiness::Ready, Tick::MAX, None);
    }

    fn note_readiness(
        &mut self,
        id: NodeId,
        ready: Readiness,
        now: Tick,
        inherited: Option<(Timestamp, Duration)>,
    ) {
        let hot = &mut self.hot[id.index()];
        let was_ready = hot.exists && hot.ready == Readiness::Ready;
        let inherited = inherited.filter(|_| !hot.exists);
        hot.ready = ready;
        let changed = if ready == Readiness::Ready {
            hot.down_since = Tick::MAX;
            self.entries[id.index()].down_before_start = None;
            self.down.remove(&(hot.went_down, id))
        } else if was_ready || inherited.is_some() {
            let ago = inherited.map_or(Duration::ZERO, |(_, ago)| ago);
            // The two minutes of R4.2 start over with a new controller.
            (hot.down_since, hot.went_down) = (now, SignedTick::new(now, ago));
            self.entries[id.index()].down_before_start = inherited.map(|(at, _)| at);
            self.down.insert((hot.went_down, id))
        } else {
            false
        };
        self.down_version += u64::from(changed);
    }

    /// Another number after each change of which nodes are down.
    pub(super) fn down_version(&self) -> u64 {
        self.down_version
    }

    pub(super) fn readiness(&self, id: NodeId) -> Readiness {
        self.hot[id.index()].ready
    }

    /// Since when a node is seen not ready, if it is known when it went down.
    pub(super) fn down_since(&self, id: NodeId) -> Option<Tick> {
        Some(self.hot[id.index()].down_since).filter(|since| *since != Tick::MAX)
    }

    /// When a node that has a [`down_since`](Self::down_since) went down.
    pub(super) fn went_down(&self, id: NodeId) -> SignedTick {
        self.hot[id.index()].went_down
    }

    /// The same by its own condition, if this process has not seen it.
    pub(super) fn down_before_start(&self, id: NodeId) -> Option<Timestamp> {
        self.entries[id.index()].down_before_start
    }

    /// The nodes that are down and went down at this time or later.
    pub(super) fn down_from(&self, from: SignedTick) -> impl Iterator<Item = NodeId> + '_ {
        let first = (from, NodeId::from_index(0));
        self.down.range(first..).map(|(_, node)| *node)
    }

    /// Counts a reference to a node by name.
    pub(super) fn refer(&mut self, name: &Arc<str>) -> NodeId {
        let id = self.id_or_insert(name);
        self.retain(id);
        id
    }

    /// Counts a reference.
    pub(super) fn retain(&mut self, id: NodeId) {
        self.entries[id.index()].references += 1;
    }

    /// Uncounts a reference.
    pub(super) fn release(&mut self, id: NodeId) {
        let references = &mut self.entries[id.index()].references;
        *references = references
            .checked_sub(1)
            .expect("every release follows a retain");
    }

    /// Frees an id if nothing needs it. True if so; the caller then resets its slots.
    pub(super) fn free_if_unused(&mut self, id: NodeId) -> bool {
        let entry = &self.entries[id.index()];
        let unused = entry.view.is_none()
            && entry.references == 0
            && self.by_name.get(&entry.name) == Some(&id);
        if unused {
            self.by_name.remove(&entry.name);
            self.free.push(id);
        }
        unused
    }
}

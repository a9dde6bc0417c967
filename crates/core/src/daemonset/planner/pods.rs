//! The pod table: each pod's view as the API shows it, and the few fields that slot decisions read.
//!
//! The second part is small and stored apart from the first, because a template change scans it for every pod.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::expectation::Expectation;
use super::super::view::{Before, Phase, PodView, Waiting};
use super::super::{GENERATION_LABEL, HASH_LABEL};
use super::chunked_vec::ChunkedVec;
use super::staged::SignedTick;
use super::symbols::{Symbol, Symbols};
use super::uid_index::UidIndex;
use crate::ids::{NodeId, PodId, SetId};

/// How the DaemonSet in [`Hot::set`] relates to a pod (rule 3.2). `None` exactly if there is no such DaemonSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Claim {
    #[default]
    None,
    /// Owned and selected.
    Member,
    /// Selected and without a controller: to be adopted.
    Orphan,
    /// Owned and no longer selected: to be released.
    Stray,
}

/// The kind of the latest write that was requested for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodWrite {
    Delete,
    /// Adoption or release.
    Claim,
    /// A new hash label.
    Relabel,
}

/// The fields of a pod that slot decisions read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    pub(super) created: Timestamp,
    /// Since when it is ready; `Timestamp::MAX` if that is unknown.
    pub(super) ready_at: Timestamp,
    pub(super) hash: Symbol,
    pub(super) generation: Symbol,
    pub(super) set: Option<SetId>,
    pub(super) node: Option<NodeId>,
    /// The next pod of the same slot.
    pub(super) next: Option<PodId>,
    /// Its position in the list of its controller's pods.
    owned_at: u32,
    pub(super) claim: Claim,
    pub(super) phase: Phase,
    pub(super) ready: bool,
    pub(super) bound: bool,
    pub(super) terminating: bool,
    /// [`Pods::expectation`] has an entry for it.
    pub(super) has_expectation: bool,
    pub(super) waiting: Waiting,
    pub(super) before: Before,
    pub(super) restarts: u32,
    pub(super) created_tick: SignedTick,
}

const _: () = assert!(size_of::<Hot>() <= 56);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Pods {
    hot: ChunkedVec<Hot>,
    views: ChunkedVec<Option<PodView>>,
    uids: UidIndex,
    free: Vec<PodId>,
    /// By the uid of the controller, whether the planner knows that DaemonSet or not.
    owned: HashMap<Arc<str>, Vec<PodId>>,
    /// Pods without a controller, by namespace.
    orphans: HashMap<Arc<str>, BTreeSet<PodId>>,
    /// The latest write requested for a pod; one at a time.
    expectations: HashMap<PodId, (PodWrite, Expectation)>,
}

impl Pods {
    pub(super) fn id(&self, uid: &str) -> Option<PodId> {
        self.uids.find(uid, |id| uid_of(&self.views, id))
    }

    pub(super) fn view(&self, id: PodId) -> &PodView {
        view_of(&self.views, id)
    }

    pub(super) fn hot(&self, id: PodId) -> &Hot {
        &self.hot[id.index()]
    }

    pub(super) fn hot_mut(&mut self, id: PodId) -> &mut Hot {
        &mut self.hot[id.index()]
    }

    pub(super) fn expectation(&self, id: PodId) -> Option<(PodWrite, Expectation)> {
        let has = self.hot(id).has_expectation;
        has.then(|| self.expectations[&id])
    }

    /// Its deletion was requested and is expected to show.
    pub(super) fn is_being_deleted(&self, id: PodId, now: Timestamp) -> bool {
        let expectation = self.expectation(id);
        matches!(expectation, Some((PodWrite::Delete, deletion)) if deletion.is_outstanding(now))
    }

    pub(super) fn set_expectation(&mut self, id: PodId, new: Option<(PodWrite, Expectation)>) {
        self.hot_mut(id).has_expectation = new.is_some();
        match new {
            Some(new) => self.expectations.insert(id, new),
            None => self.expectations.remove(&id),
        };
    }

    /// Pods whose controller has this uid.
    pub(super) fn owned_by(&self, uid: &str) -> &[PodId] {
        self.owned.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Pods of a namespace that have no controller.
    pub(super) fn orphans_in(&self, namespace: &str) -> Vec<PodId> {
        let orphans = self.orphans.get(namespace);
        orphans.into_iter().flatten().copied().collect()
    }

    /// Adds a pod that is not in any slot yet.
    pub(super) fn insert(
        &mut self,
        view: PodView,
        node: Option<NodeId>,
        seen: SeenAt,
        created_tick: SignedTick,
        symbols: &mut Symbols,
    ) -> PodId {
        let hot = Hot {
            ready_at: ready_at(&view, seen),
            node,
            created_tick,
            ..hot(&view, symbols)
        };
        let id = if let Some(id) = self.free.pop() {
            self.hot[id.index()] = hot;
            self.views[id.index()] = Some(view);
            id
        } else {
            self.hot.push(hot);
            self.views.push(Some(view));
            PodId::from_index(self.hot.len() - 1)
        };
        self.uids.insert(id, |id| uid_of(&self.views, id));
        self.index_owner(id);
        id
    }

    /// Replaces the view of a pod. If the change moves it to another slot, the caller has taken it out of its old one.
    pub(super) fn update(&mut self, id: PodId, view: PodView, seen: SeenAt, symbols: &mut Symbols) {
        let mut view = view;
        view.share_strings(self.view(id));
        let owner_changed = self.view(id).controller != view.controller;
        if owner_changed {
            self.unindex_owner(id);
        }
        let old = self.views[id.index()]
            .replace(view)
            .expect("an id in use has a view");
        if owner_changed {
            self.index_owner(id);
        }
        let view = self.view(id);
        let relabelled = old.labels != view.labels;
        let fresh = Hot {
            ready_at: if old.ready_since == view.ready_since {
                self.hot(id).ready_at
            } else {
                ready_at(view, seen)
            },
            phase: view.phase,
            ready: view.ready_since.is_some(),
            bound: view.bound_to.is_some(),
            terminating: view.terminating,
            created: view.created,
            waiting: view.health.waiting,
            before: view.health.before,
            restarts: view.health.restarts,
            ..*self.hot(id)
        };
        self.hot[id.index()] = fresh;
        if relabelled {
            let Hot {
                hash, generation, ..
            } = hot(self.view(id), symbols);
            let place = self.hot_mut(id);
            (place.hash, place.generation) = (hash, generation);
        }
    }

    /// Removes a pod that the caller has taken out of its slot.
    pub(super) fn remove(&mut self, id: PodId) {
        self.unindex_owner(id);
        self.set_expectation(id, None);
        let view = self.views[id.index()]
            .take()
            .expect("an id in use has a view");
        self.uids.remove(id, &view.uid);
        self.free.push(id);
    }

    fn index_owner(&mut self, id: PodId) {
        let view = self.view(id);
        if let Some(controller) = view.controller.clone() {
            let list = self.owned.entry(controller).or_default();
            let at = u32::try_from(list.len()).expect("there are fewer than four billion pods");
            list.push(id);
            self.hot_mut(id).owned_at = at;
        } else {
            let namespace = view.namespace.clone();
            self.orphans.entry(namespace).or_default().insert(id);
        }
    }

    fn unindex_owner(&mut self, id: PodId) {
        let view = self.view(id);
        if let Some(controller) = view.controller.clone() {
            let at = self.hot(id).owned_at;
            let list = self.owned.get_mut(&controller);
            let list = list.expect("a pod with a controller is in that controller's list");
            list.swap_remove(at as usize);
            if let Some(moved) = list.get(at as usize).copied() {
                self.hot_mut(moved).owned_at = at;
            } else if list.is_empty() {
                self.owned.remove(&controller);
            }
        } else {
            let namespace = view.namespace.clone();
            let orphans = self.orphans.get_mut(&namespace);
            let orphans = orphans.expect("a pod without a controller is in its namespace's list");
            orphans.remove(&id);
            if orphans.is_empty() {
                self.orphans.remove(&namespace);
            }
        }
    }
}

fn view_of(views: &ChunkedVec<Option<PodView>>, id: PodId) -> &PodView {
    let view = views[id.index()].as_ref();
    view.expect("an id in use has a view")
}

fn uid_of(views: &ChunkedVec<Option<PodView>>, id: PodId) -> &str {
    &view_of(views, id).uid
}

/// When a pod is seen, by the planner's own time and by the wall clock, which kubelets write.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenAt {
    pub(super) now: Timestamp,
    pub(super) wall: Timestamp,
}

/// Since when a pod is ready, by the planner's own time. A transition in the future, by a kubelet's clock that is ahead,
/// counts from now.
fn ready_at(view: &PodView, seen: SeenAt) -> Timestamp {
    match view.ready_since {
        None | Some(Timestamp::MAX) => Timestamp::MAX,
        Some(since) => {
            let ago = seen.wall.millis_since(since).max(0);
            seen.now.saturating_add_millis(-ago)
        }
    }
}

fn hot(view: &PodView, symbols: &mut Symbols) -> Hot {
    let label = |key: &str| view.labels.get(key).map(String::as_str);
    Hot {
        created: view.created,
        ready_at: Timestamp::MAX,
        hash: symbols.intern(label(HASH_LABEL)),
        generation: symbols.intern(label(GENERATION_LABEL)),
        set: None,
        node: None,
        next: None,
        owned_at: 0,
        claim: Claim::None,
        phase: view.phase,
        ready: view.ready_since.is_some(),
        bound: view.bound_to.is_some(),
        terminating: view.terminating,
        has_expectation: false,
        waiting: view.health.waiting,
        before: view.health.before,
        restarts: view.health.restarts,
        created_tick: SignedTick::default(),
    }
}

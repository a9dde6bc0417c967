//! The pods: what the API shows of them, and what the slots read of them all the time.
//!
//! The second is kept small and apart from the first, since one goes over all of it when a template
//! changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::event::Millis;
use super::super::view::{Phase, PodView};
use super::super::wait::Wait;
use super::super::{GENERATION_LABEL, HASH_LABEL};
use super::chunks::Chunks;
use super::nodes::NodeId;
use super::sets::SetId;
use super::symbols::{Symbol, Symbols};
use super::uids::Uids;

/// A pod's number.
pub(super) type PodId = u32;
/// No pod, no node, no DaemonSet.
pub(super) const NOBODY: u32 = u32::MAX;

/// What a pod is to the DaemonSet in [`Hot::set`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing.
    #[default]
    None,
    /// One of its own.
    Member,
    /// An orphan that it adopts.
    Orphan,
    /// Its labels do not match any more: it is let go.
    Stray,
}

/// What was asked for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodWrite {
    /// That it be deleted.
    Delete,
    /// That it be adopted or released.
    Claim,
    /// That it get another hash label.
    Relabel,
}

/// What slots read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    pub(super) created: i64,
    /// Since when it is ready; `Millis::MAX` if nobody knows.
    pub(super) ready_at: Millis,
    pub(super) hash: Symbol,
    pub(super) generation: Symbol,
    pub(super) set: SetId,
    pub(super) node: NodeId,
    /// The next pod of the same slot.
    pub(super) next: PodId,
    /// Where it is in the list of its controller's pods.
    owned_at: u32,
    pub(super) claim: Claim,
    pub(super) phase: Phase,
    pub(super) ready: bool,
    pub(super) bound: bool,
    pub(super) terminating: bool,
    /// There is a [`Wait`] for it.
    pub(super) waits: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Pods {
    pub(super) hot: Chunks<Hot>,
    views: Chunks<Option<PodView>>,
    uids: Uids,
    free: Vec<PodId>,
    /// By the uid of their controller, whether we know that one or not.
    owned: HashMap<Arc<str>, Vec<PodId>>,
    /// Those without a controller, by namespace.
    orphans: HashMap<Arc<str>, BTreeSet<PodId>>,
    /// What was asked for, one thing at a time.
    waits: HashMap<PodId, (PodWrite, Wait)>,
}

impl Pods {
    pub(super) fn number(&self, uid: &str) -> Option<PodId> {
        self.uids.find(uid, |id| uid_of(&self.views, id))
    }

    pub(super) fn view(&self, id: PodId) -> &PodView {
        view_of(&self.views, id)
    }

    pub(super) fn hot(&self, id: PodId) -> &Hot {
        &self.hot[id as usize]
    }

    pub(super) fn hot_mut(&mut self, id: PodId) -> &mut Hot {
        &mut self.hot[id as usize]
    }

    pub(super) fn wait(&self, id: PodId) -> Option<(PodWrite, Wait)> {
        let waits = self.hot(id).waits;
        waits.then(|| self.waits.get(&id).copied()).flatten()
    }

    pub(super) fn set_wait(&mut self, id: PodId, wait: Option<(PodWrite, Wait)>) {
        self.hot_mut(id).waits = wait.is_some();
        match wait {
            Some(wait) => self.waits.insert(id, wait),
            None => self.waits.remove(&id),
        };
    }

    /// Pods that name this controller.
    pub(super) fn owned_by(&self, uid: &str) -> &[PodId] {
        self.owned.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Pods of a namespace that have no controller.
    pub(super) fn orphans_in(&self, namespace: &str) -> Vec<PodId> {
        let orphans = self.orphans.get(namespace);
        orphans.into_iter().flatten().copied().collect()
    }

    /// A new pod, without a slot as yet.
    pub(super) fn insert(
        &mut self,
        view: PodView,
        node: NodeId,
        now: Millis,
        symbols: &mut Symbols,
    ) -> PodId {
        let hot = Hot {
            ready_at: ready_at(&view, now),
            owned_at: 0,
            set: NOBODY,
            node,
            next: NOBODY,
            claim: Claim::None,
            waits: false,
            ..hot(&view, symbols)
        };
        let id = if let Some(id) = self.free.pop() {
            self.hot[id as usize] = hot;
            self.views[id as usize] = Some(view);
            id
        } else {
            self.hot.push(hot);
            self.views.push(Some(view));
            PodId::try_from(self.hot.len() - 1).expect("fewer than four billion pods")
        };
        self.uids.insert(id, |id| uid_of(&self.views, id));
        self.list(id);
        id
    }

    /// A pod has changed. If its slot is another one now, it has been taken out of the old one.
    pub(super) fn update(&mut self, id: PodId, view: PodView, now: Millis, symbols: &mut Symbols) {
        let mut view = view;
        view.share(self.view(id));
        let relist = self.view(id).controller != view.controller;
        if relist {
            self.unlist(id);
        }
        let old = self.views[id as usize]
            .replace(view)
            .expect("a number in use has a pod");
        if relist {
            self.list(id);
        }
        let view = self.view(id);
        let relabelled = old.labels != view.labels;
        let fresh = Hot {
            ready_at: if old.ready_since == view.ready_since {
                self.hot(id).ready_at
            } else {
                ready_at(view, now)
            },
            phase: view.phase,
            ready: view.ready_since.is_some(),
            bound: view.bound_to.is_some(),
            terminating: view.terminating,
            created: view.created,
            ..*self.hot(id)
        };
        self.hot[id as usize] = fresh;
        if relabelled {
            let Hot {
                hash, generation, ..
            } = hot(self.view(id), symbols);
            let place = self.hot_mut(id);
            (place.hash, place.generation) = (hash, generation);
        }
    }

    /// A pod is gone. It has been taken out of its slot before.
    pub(super) fn remove(&mut self, id: PodId) {
        self.unlist(id);
        self.set_wait(id, None);
        if let Some(view) = self.views[id as usize].take() {
            self.uids.remove(id, &view.uid);
            self.free.push(id);
        }
    }

    fn list(&mut self, id: PodId) {
        let view = self.view(id);
        if let Some(controller) = view.controller.clone() {
            let list = self.owned.entry(controller).or_default();
            let at = u32::try_from(list.len()).expect("fewer than four billion pods");
            list.push(id);
            self.hot_mut(id).owned_at = at;
        } else {
            let namespace = view.namespace.clone();
            self.orphans.entry(namespace).or_default().insert(id);
        }
    }

    fn unlist(&mut self, id: PodId) {
        let view = self.view(id);
        if let Some(controller) = view.controller.clone() {
            let at = self.hot(id).owned_at;
            let Some(list) = self.owned.get_mut(&controller) else {
                return;
            };
            list.swap_remove(at as usize);
            if let Some(moved) = list.get(at as usize).copied() {
                self.hot_mut(moved).owned_at = at;
            } else if list.is_empty() {
                self.owned.remove(&controller);
            }
        } else {
            let namespace = view.namespace.clone();
            if let Some(orphans) = self.orphans.get_mut(&namespace) {
                orphans.remove(&id);
                if orphans.is_empty() {
                    self.orphans.remove(&namespace);
                }
            }
        }
    }
}

fn view_of(views: &Chunks<Option<PodView>>, id: PodId) -> &PodView {
    let view = views[id as usize].as_ref();
    view.expect("a number in use has a pod")
}

fn uid_of(views: &Chunks<Option<PodView>>, id: PodId) -> &str {
    &view_of(views, id).uid
}

/// Since when a pod is ready. A time that is still to come, by another's clock, counts from now.
fn ready_at(view: &PodView, now: Millis) -> Millis {
    match view.ready_since {
        None | Some(i64::MAX) => Millis::MAX,
        Some(seconds) => seconds.saturating_mul(1000).min(now),
    }
}

fn hot(view: &PodView, symbols: &mut Symbols) -> Hot {
    let label = |key: &str| view.labels.get(key).map(String::as_str);
    Hot {
        created: view.created,
        ready_at: Millis::MAX,
        hash: symbols.number(label(HASH_LABEL)),
        generation: symbols.number(label(GENERATION_LABEL)),
        set: NOBODY,
        node: NOBODY,
        next: NOBODY,
        owned_at: 0,
        claim: Claim::None,
        phase: view.phase,
        ready: view.ready_since.is_some(),
        bound: view.bound_to.is_some(),
        terminating: view.terminating,
        waits: false,
    }
}

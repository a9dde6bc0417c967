//! The pods that wait for a node: those whose turn it is, by rank, and those that fitted nowhere, by what
//! they wait for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::demand::Class;
use super::node::{NodeId, PodId};
use crate::daemonset::view::Seconds;

/// Whose turn it is: the more important first, then who has no choice (a daemon on its own node), then the
/// older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: Reverse<i32>,
    pub(super) has_choice: bool,
    pub(super) created: Seconds,
    /// The order in which they were seen first.
    pub(super) arrived: u64,
}

/// Where a pod is to be looked for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nowhere: all nodes have refused it as they were, and have not changed in its favour.
    Nowhere,
    /// Only there: the others have refused it, and have not changed.
    At(NodeId),
    /// Everywhere.
    All,
}

/// What is known of a pod while it waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) pin: Option<Arc<str>>,
    pub(super) gated: bool,
    pub(super) rank: Rank,
    pub(super) look: Look,
    /// A write failed: it is not looked at until that was some time ago.
    pub(super) resting: bool,
    pub(super) nominated: Option<NodeId>,
    /// It is being bound where it was nominated: should that fail, the room is still for it.
    pub(super) promised: bool,
    /// Uids of those that were evicted for it.
    pub(super) victims: Vec<Arc<str>>,
    /// What was told last, and for which node it was nominated then.
    pub(super) told: Option<(String, Option<NodeId>)>,
    pub(super) since: Option<Seconds>,
    /// Other pods' labels had a part in its refusal.
    pub(super) related: bool,
}

/// Pods of one class that have a choice, and that no node takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Parked {
    pub(super) pods: BTreeSet<(Rank, PodId)>,
    /// What was told to one of them, and when: holds for its like while nothing has changed.
    pub(super) memo: Option<(u64, String)>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Those whose turn it is.
    pub(super) active: BTreeSet<(Rank, PodId)>,
    /// Those of them that are looked at with one node only, which is the same for all.
    pub(super) aimed: BTreeSet<PodId>,
    /// Those that can go to one node only, by its name.
    pub(super) pinned: HashMap<Arc<str>, BTreeSet<PodId>>,
    /// Those that have a choice, by class.
    pub(super) parked: BTreeMap<u64, Parked>,
    /// Those that have a choice and a nomination.
    pub(super) nominees: BTreeSet<PodId>,
    /// Classes whose pods wait for others to come or go, with those of them that have no choice or a
    /// nomination; the others are parked.
    pub(super) related: BTreeMap<u64, (Arc<Class>, BTreeSet<PodId>)>,
    /// How many were put aside.
    pub(super) aside: usize,
    /// How many are gated.
    pub(super) gated: usize,
}

impl Queue {
    /// Puts a pod that nobody took aside.
    pub(super) fn park(&mut self, id: PodId, class: &Arc<Class>, waiting: &Waiting) {
        if waiting.related {
            let has_choice = waiting.pin.is_none() && waiting.nominated.is_none();
            self.relate(class, (!has_choice).then_some(id));
        }
        let new = match (&waiting.pin, waiting.nominated) {
            (Some(pin), _) => self.pinned.entry(pin.clone()).or_default().insert(id),
            (None, Some(_)) => self.nominees.insert(id),
            (None, None) => {
                let parked = self.parked.entry(class.id).or_default();
                parked.pods.insert((waiting.rank, id))
            }
        };
        self.aside += usize::from(new);
    }

    /// Pods of this class wait for others to come or go: those that have a choice, and this one.
    pub(super) fn relate(&mut self, class: &Arc<Class>, id: Option<PodId>) {
        let empty = || (class.clone(), BTreeSet::new());
        let related = self.related.entry(class.id).or_insert_with(empty);
        related.1.extend(id);
    }

    /// The pods of a class that wait for others to come or go.
    pub(super) fn related_pods(&self, class: u64) -> Vec<PodId> {
        let parked = self
            .parked
            .get(&class)
            .into_iter()
            .flat_map(|parked| &parked.pods);
        let parked = parked.map(|(_, id)| *id);
        let others = self
            .related
            .get(&class)
            .into_iter()
            .flat_map(|(_, pods)| pods);
        others.copied().chain(parked).collect()
    }

    /// Whose turn it is.
    pub(super) fn pop(&mut self) -> Option<PodId> {
        let (_, id) = self.active.pop_first()?;
        self.aimed.remove(&id);
        Some(id)
    }

    /// Takes a pod out, wherever it is.
    pub(super) fn remove(&mut self, id: PodId, class: &Arc<Class>, waiting: &Waiting) {
        self.active.remove(&(waiting.rank, id));
        self.aimed.remove(&id);
        self.aside -= usize::from(self.nominees.remove(&id));
        if let Some(pin) = &waiting.pin
            && let Some(pods) = self.pinned.get_mut(pin)
        {
            self.aside -= usize::from(pods.remove(&id));
            if pods.is_empty() {
                self.pinned.remove(pin);
            }
        }
        if let Some(parked) = self.parked.get_mut(&class.id) {
            self.aside -= usize::from(parked.pods.remove(&(waiting.rank, id)));
            if parked.pods.is_empty() {
                self.parked.remove(&class.id);
            }
        }
        if let Some((_, pods)) = self.related.get_mut(&class.id) {
            pods.remove(&id);
            if pods.is_empty() && !self.parked.contains_key(&class.id) {
                self.related.remove(&class.id);
            }
        }
    }
}

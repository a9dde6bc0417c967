//! The DaemonSet table: each with its slots, totals, queues and outstanding writes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Duration;

use super::super::backoff::Backoff;
use super::super::decision::{RolloutCounts, UpdateMode};
use super::super::event::Identity;
use super::super::expectation::Expectation;
use super::super::fit::Rules;
use super::super::options::Pace;
use super::super::pod::Blueprint;
use super::super::rollout::seed;
use super::super::status::Counters;
use super::super::throttle::Throttle;
use super::super::view::DaemonSetView;
use super::chunked_vec::ChunkedVec;
use super::config::Pins;
use super::revision_history::RevisionHistory;
use super::slot::Slot;
use super::staged::Staged;
use super::symbols::Symbol;
use crate::ids::{NodeId, PodId, SetId};
use crate::rollout::condition::Conditions;
use crate::rollout::config::template_of_data;

/// What slot decisions read of a DaemonSet whose current revision is known.
#[derive(Debug)]
pub(super) struct ActiveRevision {
    pub(super) mode: UpdateMode,
    pub(super) min_ready: Duration,
    pub(super) hash: Symbol,
    pub(super) generation: Symbol,
    pub(super) blueprint: Arc<Blueprint>,
}

/// The sums of [`RolloutCounts`] over all slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RolloutTotals {
    pub(super) unavailable: i64,
    pub(super) surge: i64,
    pub(super) available: i64,
}

impl RolloutTotals {
    pub(super) fn replace(&mut self, old: RolloutCounts, new: RolloutCounts) {
        let change = |old: bool, new: bool| i64::from(new) - i64::from(old);
        self.unavailable += change(old.unavailable, new.unavailable);
        self.surge += change(old.surge, new.surge);
        self.available += change(old.available, new.available);
    }
}

/// Slots by the [rollout order](super::super::rollout::order) of their nodes.
pub(super) type Queue = BTreeSet<(u32, NodeId)>;

/// Slots for which a write is to be requested.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) create: Queue,
    pub(super) delete: Queue,
    pub(super) candidates: Queue,
    pub(super) awaiting_availability: Queue,
}

/// One DaemonSet.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) reference: Arc<Identity>,
    pub(super) view: DaemonSetView,
    pub(super) rules: Rules,
    pub(super) seed: u32,
    /// Unique, unlike its id, which is reused.
    pub(super) serial: u64,
    /// `None` while the planner must not act for it: its current revision is unknown, or it is inactive.
    pub(super) active: Option<ActiveRevision>,
    /// `active` is outdated: all slots have to be decided again.
    pub(super) stale: bool,
    /// Another revision is active than the slots were decided by.
    pub(super) slots_due: bool,
    /// By [`NodeId`].
    pub(super) slots: ChunkedVec<Slot>,
    pub(super) counters: Counters,
    pub(super) rollout: RolloutTotals,
    pub(super) queues: Queues,
    /// Pods to adopt or release.
    pub(super) claims: BTreeSet<PodId>,
    /// Creations that have not shown yet or have failed.
    pub(super) creates: HashMap<NodeId, Expectation>,
    pub(super) backoffs: HashMap<NodeId, Backoff>,
    pub(super) throttle: Throttle,
    /// How many claimed pods with a target node carry a hash (rule 4.7).
    pub(super) hash_uses: HashMap<Symbol, u32>,
    pub(super) history: RevisionHistory,
    /// The status that the API has, as far as the planner knows, and the resource version it is from.
    pub(super) reported: Counters,
    pub(super) reported_conditions: Arc<Conditions>,
    pub(super) reported_version: u64,
    pub(super) status_write: Option<Expectation>,
    /// Its rollout policy does not count for this controller (R11).
    pub(super) ignores_policy: bool,
    /// The commands that were told to do nothing for want of a policy, by key.
    pub(super) ignored_commands: BTreeMap<&'static str, String>,
    /// Its conditions may be those of a controller with `--assist`.
    pub(super) leaves_conditions: bool,
    /// Its config, if that is pinned.
    pub(super) pins: Option<Box<Pins>>,
    /// Its rollout policy, if it has one.
    pub(super) staged: Option<Box<Staged>>,
    /// It is in [`Planner::marked`](super::Planner).
    pub(super) marked: bool,
}

impl Set {
    pub(super) fn new(view: DaemonSetView, pace: Pace, serial: u64, some_required: bool) -> Self {
        let reference = Identity {
            namespace: view.namespace.clone(),
            name: view.name.clone(),
            uid: view.uid.clone(),
        };
        Self {
            seed: seed(&reference.to_string()),
            reference: Arc::new(reference),
            serial,
            rules: Rules::of_template(&view.template, some_required),
            active: None,
            stale: true,
            slots_due: false,
            slots: ChunkedVec::default(),
            counters: Counters::default(),
            rollout: RolloutTotals::default(),
            queues: Queues::default(),
            claims: BTreeSet::new(),
            creates: HashMap::new(),
            backoffs: HashMap::new(),
            throttle: Throttle::new(pace),
            hash_uses: HashMap::new(),
            history: RevisionHistory::new(&view.template),
            reported: view.status,
            reported_conditions: view.conditions.clone(),
            reported_version: view.version,
            status_write: None,
            ignores_policy: false,
            ignored_commands: BTreeMap::new(),
            leaves_conditions: false,
            pins: None,
            staged: None,
            marked: false,
            view,
        }
    }

    /// The view whose template the target's pods are made of.
    pub(super) fn pod_view(&self) -> Cow<'_, DaemonSetView> {
        match template_of_data(&self.view.template, self.history.data()) {
            None => Cow::Borrowed(&self.view),
            Some(template) => Cow::Owned(DaemonSetView {
                template,
                ..self.view.clone()
            }),
        }
    }

    /// The planner does nothing for a DaemonSet that is being deleted or selects everything (rule 3.1, steps 4 and 5).
    pub(super) fn is_inactive(&self) -> bool {
        self.view.terminating || self.view.selector.is_everything()
    }

    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.view.selector.matches(label)
    }

    /// The rules of the target's template and of stable's.
    fn all_rules(&self) -> impl Iterator<Item = &Rules> {
        let stable = self
            .staged
            .as_ref()
            .and_then(|staged| staged.stable.as_ref());
        std::iter::once(&self.rules).chain(stable.map(|stable| &stable.rules))
    }

    fn reads_taints(&self) -> bool {
        self.all_rules().any(Rules::reads_taints)
    }

    /// The keys of the node labels that its slots depend on.
    fn label_keys(&self) -> BTreeSet<String> {
        let keys = self.all_rules().flat_map(Rules::label_keys);
        let mut keys: BTreeSet<String> = keys.map(str::to_owned).collect();
        if let Some(staged) = &self.staged {
            keys.extend(staged.label_keys());
        }
        keys
    }

    pub(super) fn slot(&mut self, node: NodeId) -> &mut Slot {
        let index = node.index();
        if self.slots.get(index).is_none() {
            self.slots.grow_to(index + 1);
        }
        &mut self.slots[index]
    }

    /// The status it should have now.
    pub(super) fn status(&self) -> Counters {
        Counters {
            observed_generation: self.view.generation,
            ..self.counters
        }
    }

    /// The conditions it should have now.
    pub(super) fn conditions(&self) -> Arc<Conditions> {
        if self.leaves_conditions {
            return self.reported_conditions.clone();
        }
        let staged = self.staged.as_ref();
        staged.map_or_else(Arc::default, |staged| staged.conditions.clone())
    }

    /// Whether the status has to be written (rule 6.2.2).
    pub(super) fn status_differs(&self) -> bool {
        let observed_generation = self.reported.observed_generation;
        let same = Counters {
            observed_generation,
            ..self.counters
        };
        same != self.reported
            || observed_generation < self.view.generation
            || self.conditions() != self.reported_conditions
    }
}

/// All DaemonSets, and which of them read which labels and taints of nodes.
#[derive(Debug, Default)]
pub(super) struct Sets {
    entries: Vec<Option<Set>>,
    free: Vec<SetId>,
    by_uid: HashMap<Arc<str>, SetId>,
    /// By namespace, then by name.
    by_name: HashMap<Arc<str>, BTreeMap<Arc<str>, SetId>>,
    /// DaemonSets whose rules read a node label, by its key.
    label_readers: HashMap<String, BTreeSet<SetId>>,
    /// DaemonSets that do not tolerate every taint.
    taint_readers: BTreeSet<SetId>,
}

/// For ids of DaemonSets that must exist. Timers and answers may name one that is gone: see [`Sets::get`].
impl Index<SetId> for Sets {
    type Output = Set;

    fn index(&self, id: SetId) -> &Set {
        self.get(id).expect(IN_USE)
    }
}

impl IndexMut<SetId> for Sets {
    fn index_mut(&mut self, id: SetId) -> &mut Set {
        self.get_mut(id).expect(IN_USE)
    }
}

const IN_USE: &str =
    "removing a DaemonSet clears its id from the indexes, its pods and the marked sets";

impl Sets {
    pub(super) fn id(&self, uid: &str) -> Option<SetId> {
        self.by_uid.get(uid).copied()
    }

    pub(super) fn get(&self, id: SetId) -> Option<&Set> {
        self.entries.get(id.index())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: SetId) -> Option<&mut Set> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    pub(super) fn ids(&self) -> Vec<SetId> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, set)| set.is_some())
            .map(|(index, _)| SetId::from_index(index))
            .collect()
    }

    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<SetId> {
        self.by_name.get(namespace)?.get(name).copied()
    }

    /// The DaemonSets of a namespace, by name.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = SetId> + '_ {
        let named = self.by_name.get(namespace);
        named.into_iter().flat_map(BTreeMap::values).copied()
    }

    pub(super) fn insert(&mut self, set: Set) -> SetId {
        let Identity {
            namespace,
            name,
            uid,
        } = (*set.reference).clone();
        let id = if let Some(id) = self.free.pop() {
            self.entries[id.index()] = Some(set);
            id
        } else {
            self.entries.push(Some(set));
            SetId::from_index(self.entries.len() - 1)
        };
        self.by_uid.insert(uid, id);
        self.by_name.entry(namespace).or_default().insert(name, id);
        self.index_rules(id);
        id
    }

    pub(super) fn remove(&mut self, id: SetId) -> Set {
        self.unindex_rules(id);
        let set = self.entries[id.index()].take().expect(IN_USE);
        self.free.push(id);
        self.by_uid.remove(&set.reference.uid);
        let named = self.by_name.get_mut(&set.reference.namespace);
        let named = named.expect("every DaemonSet is indexed by name");
        named.retain(|_, other| *other != id);
        if named.is_empty() {
            self.by_name.remove(&set.reference.namespace);
        }
        set
    }

    /// Adds a DaemonSet to the readers of the labels and taints that its rules read.
    pub(super) fn index_rules(&mut self, id: SetId) {
        let set = self.entries[id.index()].as_ref().expect(IN_USE);
        if set.reads_taints() {
            self.taint_readers.insert(id);
        }
        for key in set.label_keys() {
            self.label_readers.entry(key).or_default().insert(id);
        }
    }

    /// Reverts [`index_rules`](Self::index_rules); the rules must still be the same.
    pub(super) fn unindex_rules(&mut self, id: SetId) {
        let set = self.entries[id.index()].as_ref().expect(IN_USE);
        self.taint_readers.remove(&id);
        for key in set.label_keys() {
            if let Some(readers) = self.label_readers.get_mut(&key) {
                readers.remove(&id);
                if readers.is_empty() {
                    self.label_readers.remove(&key);
                }
            }
        }
    }

    pub(super) fn taint_readers(&self) -> impl Iterator<Item = SetId> + '_ {
        self.taint_readers.iter().copied()
    }

    pub(super) fn label_readers(&self, key: &str) -> impl Iterator<Item = SetId> + '_ {
        self.label_readers.get(key).into_iter().flatten().copied()
    }
}

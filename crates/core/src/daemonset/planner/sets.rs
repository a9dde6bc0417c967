//! The DaemonSets: each with its slots, its numbers, its queues, and what it waits for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::super::backoff::Backoff;
use super::super::event::{Millis, SetRef};
use super::super::fit::Rules;
use super::super::member::{Burden, Conduct};
use super::super::options::Pace;
use super::super::pod::Blueprint;
use super::super::rollout::seed;
use super::super::status::Counters;
use super::super::throttle::Throttle;
use super::super::view::DaemonSetView;
use super::super::wait::Wait;
use super::chunks::Chunks;
use super::nodes::NodeId;
use super::past::Past;
use super::pods::PodId;
use super::slot::Slot;
use super::symbols::Symbol;

/// A DaemonSet's number.
pub(super) type SetId = u32;

/// What the slots of a DaemonSet go by, once its present revision is known.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) conduct: Conduct,
    pub(super) min_ready: Millis,
    pub(super) hash: Symbol,
    pub(super) generation: Symbol,
    pub(super) blueprint: Arc<Blueprint>,
}

/// Sums of the burdens of all slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) unavailable: i64,
    pub(super) surge: i64,
    pub(super) available: i64,
}

impl Tally {
    pub(super) fn exchange(&mut self, old: Burden, new: Burden) {
        let change = |old: bool, new: bool| i64::from(new) - i64::from(old);
        self.unavailable += change(old.unavailable, new.unavailable);
        self.surge += change(old.surge, new.surge);
        self.available += change(old.available, new.available);
    }
}

/// Slots by the order of their nodes.
pub(super) type Queue = BTreeSet<(u32, NodeId)>;

/// Slots that want something.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) create: Queue,
    pub(super) delete: Queue,
    pub(super) candidates: Queue,
    pub(super) leaving: Queue,
}

/// One DaemonSet.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) reference: Arc<SetRef>,
    pub(super) view: DaemonSetView,
    pub(super) rules: Rules,
    pub(super) seed: u32,
    /// Tells it from others that had its number.
    pub(super) serial: u64,
    /// None while nothing may be done for it.
    pub(super) live: Option<Live>,
    /// What its slots go by has changed: all have to be looked at.
    pub(super) stale: bool,
    /// By node number.
    pub(super) slots: Chunks<Slot>,
    pub(super) counters: Counters,
    pub(super) tally: Tally,
    pub(super) queues: Queues,
    /// Pods to adopt or release.
    pub(super) claims: BTreeSet<PodId>,
    /// Creations under way or failed.
    pub(super) creates: HashMap<NodeId, Wait>,
    pub(super) backoffs: HashMap<NodeId, Backoff>,
    pub(super) throttle: Throttle,
    /// How many claimed pods carry a hash (rule 4.7).
    pub(super) hash_uses: HashMap<Symbol, u32>,
    pub(super) past: Past,
    /// The status that the API has, as far as we know, and since which version of the object.
    pub(super) reported: Counters,
    pub(super) reported_version: u64,
    pub(super) status_wait: Option<Wait>,
    /// It is in the list of those to finish in this step.
    pub(super) touched: bool,
}

impl Set {
    pub(super) fn new(view: DaemonSetView, pace: Pace, serial: u64) -> Self {
        let reference = Arc::new(SetRef {
            namespace: view.namespace.clone(),
            name: view.name.clone(),
            uid: view.uid.clone(),
        });
        Self {
            seed: seed(&format!("{}/{}", view.namespace, view.name)),
            reference,
            serial,
            rules: Rules::of_template(&view.template),
            live: None,
            stale: true,
            slots: Chunks::default(),
            counters: Counters::default(),
            tally: Tally::default(),
            queues: Queues::default(),
            claims: BTreeSet::new(),
            creates: HashMap::new(),
            backoffs: HashMap::new(),
            throttle: Throttle::new(pace),
            hash_uses: HashMap::new(),
            past: Past::new(&view.template),
            reported: view.status,
            reported_version: view.version,
            status_wait: None,
            touched: false,
            view,
        }
    }

    /// Nothing at all is done for a DaemonSet that is being deleted or selects everything (rule
    /// 3.1, steps 4 and 5).
    pub(super) fn idle(&self) -> bool {
        self.view.terminating || self.view.selector.is_everything()
    }

    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.view.selector.matches(label)
    }

    pub(super) fn slot(&mut self, node: NodeId) -> &mut Slot {
        let node = node as usize;
        if self.slots.get(node).is_none() {
            self.slots.grow_to(node + 1);
        }
        &mut self.slots[node]
    }

    /// The status it should have now.
    pub(super) fn status(&self) -> Counters {
        Counters {
            observed_generation: self.view.generation,
            ..self.counters
        }
    }

    /// Is there a status to write (rule 6.2.2)?
    pub(super) fn differs(&self) -> bool {
        let observed_generation = self.reported.observed_generation;
        let same = Counters {
            observed_generation,
            ..self.counters
        };
        same != self.reported || observed_generation < self.view.generation
    }
}

/// All DaemonSets, and who reads what of a node.
#[derive(Debug, Default)]
pub(super) struct Sets {
    entries: Vec<Option<Set>>,
    free: Vec<SetId>,
    numbers: HashMap<Arc<str>, SetId>,
    /// By namespace, then by name.
    named: HashMap<Arc<str>, BTreeMap<Arc<str>, SetId>>,
    /// Those whose rules read a label of nodes, by its key.
    label_readers: HashMap<String, BTreeSet<SetId>>,
    /// Those that do not tolerate everything.
    taint_readers: BTreeSet<SetId>,
}

impl Sets {
    pub(super) fn number(&self, uid: &str) -> Option<SetId> {
        self.numbers.get(uid).copied()
    }

    pub(super) fn get(&self, id: SetId) -> Option<&Set> {
        self.entries.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: SetId) -> Option<&mut Set> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn ids(&self) -> Vec<SetId> {
        let numbers = 0..u32::try_from(self.entries.len()).expect("numbers fit");
        numbers.filter(|id| self.get(*id).is_some()).collect()
    }

    /// The number of the DaemonSet of this name.
    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<SetId> {
        self.named.get(namespace)?.get(name).copied()
    }

    /// The DaemonSets of a namespace, by name.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = SetId> + '_ {
        let named = self.named.get(namespace);
        named.into_iter().flat_map(BTreeMap::values).copied()
    }

    pub(super) fn insert(&mut self, set: Set) -> SetId {
        let SetRef {
            namespace,
            name,
            uid,
        } = (*set.reference).clone();
        let id = if let Some(id) = self.free.pop() {
            self.entries[id as usize] = Some(set);
            id
        } else {
            self.entries.push(Some(set));
            SetId::try_from(self.entries.len() - 1).expect("fewer than four billion")
        };
        self.numbers.insert(uid, id);
        self.named.entry(namespace).or_default().insert(name, id);
        self.index(id);
        id
    }

    pub(super) fn remove(&mut self, id: SetId) -> Option<Set> {
        self.unindex(id);
        let set = self.entries.get_mut(id as usize)?.take()?;
        self.free.push(id);
        self.numbers.remove(&set.reference.uid);
        if let Some(named) = self.named.get_mut(&set.reference.namespace) {
            named.retain(|_, number| *number != id);
            if named.is_empty() {
                self.named.remove(&set.reference.namespace);
            }
        }
        Some(set)
    }

    /// Remembers what a DaemonSet's rules read.
    pub(super) fn index(&mut self, id: SetId) {
        let Some(set) = self.entries.get(id as usize).and_then(Option::as_ref) else {
            return;
        };
        if set.rules.reads_taints() {
            self.taint_readers.insert(id);
        }
        for key in set.rules.label_keys() {
            let readers = self.label_readers.entry(key.to_owned()).or_default();
            readers.insert(id);
        }
    }

    /// Forgets what a DaemonSet's rules read.
    pub(super) fn unindex(&mut self, id: SetId) {
        let Some(set) = self.entries.get(id as usize).and_then(Option::as_ref) else {
            return;
        };
        self.taint_readers.remove(&id);
        for key in set.rules.label_keys() {
            if let Some(readers) = self.label_readers.get_mut(key) {
                readers.remove(&id);
                if readers.is_empty() {
                    self.label_readers.remove(key);
                }
            }
        }
    }

    /// Who reads taints.
    pub(super) fn taint_readers(&self) -> impl Iterator<Item = SetId> + '_ {
        self.taint_readers.iter().copied()
    }

    /// Who reads this label.
    pub(super) fn label_readers(&self, key: &str) -> impl Iterator<Item = SetId> + '_ {
        self.label_readers.get(key).into_iter().flatten().copied()
    }
}

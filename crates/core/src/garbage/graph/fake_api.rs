//! A fake API server: objects, deletion policies and lagging watches. It asserts that no object with an existing owner is
//! deleted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::super::item::{FOREGROUND, Item, KindId, ORPHAN, OwnerRef};
use super::{Action, Found, Graph, Lookup, Outcome, Policy, Step};

/// The finalizer of another controller.
pub(super) const FOREIGN: &str = "example.com/keep";

pub(super) enum WatchEvent {
    Seen(Item),
    Gone(Arc<str>),
}

/// See the [module](self).
pub(super) struct FakeApi {
    pub(super) objects: BTreeMap<Arc<str>, Item>,
    /// One watch per kind.
    pub(super) watches: [VecDeque<WatchEvent>; 3],
    pub(super) graph: Graph,
    /// The actions of the collector, as texts.
    pub(super) done: Vec<String>,
    pub(super) kinds: [KindId; 3],
    /// Objects that were deleted in the foreground: that is irrevocable.
    foreground: BTreeSet<Arc<str>>,
    version: u64,
}

pub(super) fn owner(item: &Item, kind: &str, block: bool) -> OwnerRef {
    OwnerRef {
        api_version: "v1".into(),
        kind: kind.into(),
        name: item.name.clone(),
        uid: item.uid.clone(),
        block,
    }
}

impl FakeApi {
    pub(super) fn new() -> Self {
        let mut graph = Graph::default();
        let ids = [
            graph.add_kind("v1", "A", true),
            graph.add_kind("v1", "B", true),
            graph.add_kind("v1", "Wide", false),
        ];
        graph.synced();
        Self {
            objects: BTreeMap::new(),
            watches: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            graph,
            done: Vec::new(),
            kinds: ids,
            foreground: BTreeSet::new(),
            version: 0,
        }
    }

    pub(super) fn create(&mut self, kind: usize, name: &str, owners: Vec<OwnerRef>) -> Item {
        let namespace = if kind == 2 { "" } else { "ns" };
        self.create_in(namespace, kind, name, owners)
    }

    pub(super) fn create_in(
        &mut self,
        namespace: &str,
        kind: usize,
        name: &str,
        owners: Vec<OwnerRef>,
    ) -> Item {
        let item = Item {
            kind: self.kinds[kind],
            namespace: namespace.into(),
            name: name.into(),
            uid: format!("{name}-{}", self.version).into(),
            version: "".into(),
            owners,
            finalizers: Vec::new(),
            deleting: false,
        };
        self.write(item)
    }

    /// Stores an object, or removes it if it is being deleted and has no finalizers left.
    pub(super) fn write(&mut self, mut item: Item) -> Item {
        self.version += 1;
        item.version = self.version.to_string().into();
        let watch = &mut self.watches[item.kind.place()];
        if item.deleting && item.finalizers.is_empty() {
            self.objects.remove(&item.uid);
            watch.push_back(WatchEvent::Gone(item.uid.clone()));
        } else {
            self.objects.insert(item.uid.clone(), item.clone());
            watch.push_back(WatchEvent::Seen(item.clone()));
        }
        item
    }

    pub(super) fn delete(&mut self, uid: &str, policy: Policy) {
        let Some(mut item) = self.objects.get(uid).cloned() else {
            return;
        };
        item.finalizers
            .retain(|f| **f != *ORPHAN && **f != *FOREGROUND);
        match policy {
            Policy::Background => {}
            Policy::Foreground => {
                item.finalizers.push(FOREGROUND.into());
                self.foreground.insert(item.uid.clone());
            }
            Policy::Orphan => item.finalizers.push(ORPHAN.into()),
        }
        item.deleting = true;
        self.write(item);
    }

    /// Delivers one event of a watch.
    pub(super) fn deliver(&mut self, watch: usize) {
        match self.watches[watch].pop_front() {
            Some(WatchEvent::Seen(item)) => self.graph.observe(item),
            Some(WatchEvent::Gone(uid)) => self.graph.gone(&uid),
            None => {}
        }
    }

    /// Delivers all events and executes all actions until nothing is left to do.
    pub(super) fn converge(&mut self) {
        for _ in 0..10_000 {
            for watch in 0..3 {
                while !self.watches[watch].is_empty() {
                    self.deliver(watch);
                }
            }
            let actions = self.graph.take(100);
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.execute(action);
            }
        }
        panic!("it never settles: {:?}", &self.done[self.done.len() - 20..]);
    }

    fn exists(&self, lookup: &Lookup) -> bool {
        self.objects.get(&lookup.uid).is_some_and(|item| {
            item.kind == lookup.kind
                && item.namespace == lookup.namespace
                && item.name == lookup.name
        })
    }

    pub(super) fn has_existing_owner(&self, item: &Item) -> bool {
        item.owners.iter().any(|owner| {
            let found = self.objects.get(&owner.uid);
            found.is_some_and(|found| {
                let near = found.namespace.is_empty() || found.namespace == item.namespace;
                near && !self.foreground.contains(&found.uid)
            })
        })
    }

    /// Executes an action.
    pub(super) fn execute(&mut self, action: Action) {
        match action {
            Action::Verify(lookup) => {
                let found = if self.exists(&lookup) {
                    Found::Present
                } else {
                    Found::Absent
                };
                self.graph.found(&lookup, found);
            }
            Action::Report(item, owner) => {
                let (name, owner) = (item.name, owner.name);
                self.done.push(format!("{name}: {owner} is elsewhere"));
            }
            Action::Act(seen, step) => {
                let outcome = self.step(&seen, step);
                if self.graph.finished(&seen.uid, outcome).is_some() {
                    self.graph.retry(&seen.uid);
                }
            }
        }
    }

    fn step(&mut self, seen: &Item, step: Step) -> Outcome {
        let Some(mut live) = self.objects.get(&seen.uid).cloned() else {
            return Outcome::Done;
        };
        let stale = live.version != seen.version;
        let name = live.name.clone();
        match step {
            Step::Delete(_) | Step::Release(_) if stale => return Outcome::Failed,
            Step::Delete(policy) => {
                assert!(!live.owners.is_empty(), "{name} has no owners at all");
                assert!(!self.has_existing_owner(&live), "{name} has a living owner");
                self.done.push(format!("delete {name} {policy:?}"));
                self.delete(&seen.uid, policy);
                return Outcome::Done;
            }
            Step::Release(left) => {
                self.done.push(format!("release {name}"));
                live.finalizers = left;
            }
            Step::DropOwners(uids) => {
                self.done.push(format!("drop owners of {name}"));
                live.owners.retain(|owner| !uids.contains(&owner.uid));
            }
            Step::Unblock(owners) => {
                self.done.push(format!("unblock {name}"));
                let meant = |uid| owners.iter().any(|owner| owner.uid == uid);
                for owner in &mut live.owners {
                    owner.block &= !meant(owner.uid.clone());
                }
            }
        }
        self.write(live);
        Outcome::Done
    }
}

//! What one transaction changes: elements, chains and rules, in the order in which the kernel wants them.

use std::collections::{BTreeMap, BTreeSet};

use kennel_core::services::Destination;

use crate::nft::{Change, Data, Element, Transaction, Words};
use crate::plan::{Endpoint, Presence, affinity_name};
use crate::ruleset::{AFFINITY_MAP, Family, affinity_chain, keep};

/// What an element has before and after; `None` where there is none.
type ElementChange = (Option<Data>, Option<Data>);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// By set and key.
    elements: BTreeMap<&'static str, BTreeMap<Words, ElementChange>>,
    /// Chains of numbers of slots: 1 for new ones, -1 for those that go.
    pub(crate) chains: BTreeMap<(Family, u32), i32>,
    pub(crate) affinity: BTreeMap<Destination, AffinityChain>,
    /// Destinations whose connections may lead to endpoints that are gone, and the endpoints that are left.
    pub(crate) redirected: Vec<(Destination, BTreeSet<Endpoint>)>,
}

/// The chains and the map of a destination with session affinity.
#[derive(Debug)]
pub(crate) struct AffinityChain {
    /// The endpoints that its chains lead to; `None` if there are none.
    pub(crate) before: Option<Vec<Endpoint>>,
    /// The endpoints, and for how many milliseconds a client keeps its own.
    pub(crate) after: Option<(Vec<Endpoint>, u64)>,
}

impl Difference {
    /// An element has this data instead of that.
    pub(crate) fn replace(
        &mut self,
        set: &'static str,
        key: Words,
        before: Option<Data>,
        after: Option<Data>,
    ) {
        if before == after {
            return;
        }
        let elements = self.elements.entry(set).or_default();
        elements.entry(key).or_insert((before, None)).1 = after;
    }

    /// An element of a set appears or disappears.
    pub(crate) fn appear(&mut self, set: &'static str, key: Words, presence: Presence) {
        match presence {
            Presence::Appeared => self.replace(set, key, None, Some(Data::None)),
            Presence::Disappeared => self.replace(set, key, Some(Data::None), None),
            Presence::Unchanged => {}
        }
    }

    /// How many elements change.
    pub(crate) fn len(&self) -> usize {
        let elements = self.elements.values().flat_map(BTreeMap::values);
        elements.filter(|(before, after)| before != after).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.affinity.is_empty()
    }

    /// The affinity maps whose elements may keep clients with endpoints that are gone, and those endpoints.
    pub(crate) fn outdated_maps(&self) -> impl Iterator<Item = (String, Vec<Endpoint>)> {
        self.affinity.iter().filter_map(|(destination, chain)| {
            let after = &chain.after.as_ref()?.0;
            let before = chain.before.iter().flatten();
            let gone: Vec<Endpoint> = before.filter(|one| !after.contains(one)).copied().collect();
            (!gone.is_empty()).then(|| (affinity_name(destination), gone))
        })
    }

    /// The affinity maps that are made, and the endpoints that their clients may keep.
    pub(crate) fn new_maps(&self) -> impl Iterator<Item = (String, &[Endpoint])> {
        self.affinity.iter().filter_map(|(destination, chain)| {
            let (endpoints, _) = chain.after.as_ref()?;
            let is_new = chain.before.is_none();
            is_new.then(|| (affinity_name(destination), endpoints.as_slice()))
        })
    }

    /// Appends all steps. `forgotten` are elements of affinity maps to delete.
    pub(crate) fn write(
        &self,
        transaction: &mut Transaction<'_>,
        forgotten: &[(String, Vec<Element>)],
    ) {
        for ((family, slots), step) in &self.chains {
            if *step > 0 {
                let chain = family.chain(*slots);
                transaction.add_chain(&chain);
                for rule in family.forward(*slots) {
                    transaction.add_rule(&chain, &rule);
                }
            }
        }
        for (destination, chain) in &self.affinity {
            chain.write(destination, transaction);
        }
        for (map, elements) in forgotten {
            transaction.elements(Change::Delete, map, elements);
        }
        self.write_elements(transaction);
        for (destination, chain) in &self.affinity {
            chain.remove(destination, transaction);
        }
        for ((family, slots), step) in &self.chains {
            if *step < 0 {
                remove_chain(&family.chain(*slots), transaction);
            }
        }
    }

    /// All that go before all that come: keys are the same where data changes.
    fn write_elements(&self, transaction: &mut Transaction<'_>) {
        for change in [Change::Delete, Change::Add] {
            for (set, elements) in &self.elements {
                let changed = elements
                    .iter()
                    .filter(|(_, (before, after))| before != after);
                let elements = changed.filter_map(|(key, (before, after))| {
                    let data = if change == Change::Delete {
                        before
                    } else {
                        after
                    };
                    let data = data.as_ref()?;
                    let data = if change == Change::Delete {
                        Data::None
                    } else {
                        data.clone()
                    };
                    Some(Element::new(*key, data))
                });
                let elements: Vec<Element> = elements.collect();
                transaction.elements(change, set, &elements);
            }
        }
    }
}

impl AffinityChain {
    fn counts(&self) -> (u32, u32) {
        let count = |endpoints: &Vec<Endpoint>| u32::try_from(endpoints.len()).unwrap_or(u32::MAX);
        let before = self.before.as_ref().map_or(0, count);
        (
            before,
            self.after.as_ref().map_or(0, |after| count(&after.0)),
        )
    }

    /// Chains for all endpoints, with new rules.
    fn write(&self, destination: &Destination, transaction: &mut Transaction<'_>) {
        let Some((endpoints, timeout)) = &self.after else {
            return;
        };
        let (family, name) = (Family::of(destination.scope), affinity_name(destination));
        let (before, after) = self.counts();
        if self.before.is_some() {
            transaction.flush_chain(&name);
        } else {
            transaction.add_set(&name, AFFINITY_MAP);
            transaction.add_chain(&name);
        }
        for (index, endpoint) in (0..).zip(endpoints) {
            let chain = affinity_chain(&name, index);
            if index < before {
                transaction.flush_chain(&chain);
            } else {
                transaction.add_chain(&chain);
            }
            for rule in keep(&name, *endpoint, *timeout) {
                transaction.add_rule(&chain, &rule);
            }
        }
        for rule in family.choose(&name, after) {
            transaction.add_rule(&name, &rule);
        }
    }

    /// Chains that are needed no longer.
    fn remove(&self, destination: &Destination, transaction: &mut Transaction<'_>) {
        let name = affinity_name(destination);
        let is_last = self.before.is_some() && self.after.is_none();
        if is_last {
            transaction.flush_chain(&name);
        }
        let (before, after) = self.counts();
        for index in after..before {
            remove_chain(&affinity_chain(&name, index), transaction);
        }
        if is_last {
            transaction.delete_chain(&name);
            transaction.delete_set(&name);
        }
    }
}

fn remove_chain(name: &str, transaction: &mut Transaction<'_>) {
    transaction.flush_chain(name);
    transaction.delete_chain(name);
}

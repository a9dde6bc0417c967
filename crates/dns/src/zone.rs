//! The names of a cluster, in memory, kept as services and slices change. Knows nothing of packets.
//!
//! What is below `svc.<domain>`:
//!
//! | Name | Leads to |
//! |---|---|
//! | `<service>.<namespace>` | its cluster IP; a headless one's ready endpoints; an alias' target |
//! | `_<port>._<protocol>.<service>.<namespace>` | its ports (SRV) |
//! | `<hostname>.<service>.<namespace>` | the endpoint that calls itself so, or `10-0-0-1` for its address |
//! | `<node>.<service>.<namespace>` | the ready endpoints on that node; nodes' names may contain dots |
//!
//! A hostname wins over an address, and both win over a node of the same name.

mod find;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

pub(crate) use find::{Found, Record};
use places::Places;
pub(crate) use places::{Place, PlacePort, Slice};

/// Namespace and name of a service.
pub(crate) type Key = (Arc<str>, Arc<str>);

/// Who has an address: a service, or what is called so below it.
type Holder = (Key, Option<Arc<str>>);

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Service {
    /// Its own addresses; none if it is headless.
    pub(crate) addresses: Vec<IpAddr>,
    /// Another name to ask for instead.
    pub(crate) alias: Option<String>,
    pub(crate) ports: Vec<PlacePort>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Zone {
    domain: Vec<String>,
    services: BTreeMap<Key, Service>,
    places: BTreeMap<Key, Places>,
    /// The services that slices are of, by the slices' names.
    slices: BTreeMap<Key, Arc<str>>,
    /// Who has which address, and in how many slices.
    by_address: BTreeMap<IpAddr, BTreeMap<Holder, u32>>,
    /// Services and slices have all been seen.
    synced: (bool, bool),
}

impl Zone {
    /// Empty, and not to be relied on until it [is synced](Self::is_synced).
    pub(crate) fn new(domain: Vec<String>) -> Self {
        Self {
            domain,
            services: BTreeMap::new(),
            places: BTreeMap::new(),
            slices: BTreeMap::new(),
            by_address: BTreeMap::new(),
            synced: (false, false),
        }
    }

    /// These are all services there are.
    pub(crate) fn all_services(&mut self, listed: &BTreeSet<Key>) {
        let known = self.services.keys().filter(|key| !listed.contains(*key));
        let gone: Vec<Key> = known.cloned().collect();
        for key in gone {
            self.remove_service(&key);
        }
        self.synced.0 = true;
    }

    /// These are all slices there are.
    pub(crate) fn all_slices(&mut self, listed: &BTreeSet<Key>) {
        let known = self.slices.keys().filter(|key| !listed.contains(*key));
        let gone: Vec<Key> = known.cloned().collect();
        for key in gone {
            self.remove_slice(&key);
        }
        self.synced.1 = true;
    }

    /// Is all there is known?
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == (true, true)
    }

    /// A service is there or has changed.
    pub(crate) fn put_service(&mut self, key: Key, service: Service) {
        self.remove_service(&key);
        for address in &service.addresses {
            self.note(*address, (key.clone(), None));
        }
        self.services.insert(key, service);
    }

    /// A service is gone.
    pub(crate) fn remove_service(&mut self, key: &Key) {
        let Some(service) = self.services.remove(key) else {
            return;
        };
        for address in service.addresses {
            self.forget(address, &(key.clone(), None));
        }
    }

    /// A slice of a service is there or has changed.
    pub(crate) fn put_slice(&mut self, id: Key, service: Arc<str>, slice: Slice) {
        self.remove_slice(&id);
        let key = (id.0.clone(), service.clone());
        for place in &slice.places {
            self.note(place.address, (key.clone(), Some(place.label())));
        }
        let places = self.places.entry(key).or_default();
        places.put(id.1.clone(), slice);
        self.slices.insert(id, service);
    }

    /// A slice is gone.
    pub(crate) fn remove_slice(&mut self, id: &Key) {
        let Some(service) = self.slices.remove(id) else {
            return;
        };
        let key = (id.0.clone(), service);
        let Some(places) = self.places.get_mut(&key) else {
            return;
        };
        let slice = places.remove(&id.1);
        if places.is_empty() {
            self.places.remove(&key);
        }
        for place in slice.into_iter().flat_map(|slice| slice.places) {
            self.forget(place.address, &(key.clone(), Some(place.label())));
        }
    }

    fn note(&mut self, address: IpAddr, who: Holder) {
        *self
            .by_address
            .entry(address)
            .or_default()
            .entry(who)
            .or_default() += 1;
    }

    fn forget(&mut self, address: IpAddr, who: &Holder) {
        let Some(all) = self.by_address.get_mut(&address) else {
            return;
        };
        if let Some(count) = all.get_mut(who) {
            *count -= 1;
            if *count == 0 {
                all.remove(who);
            }
        }
        if all.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests;

//! The names of a cluster, in memory.
//!
//! Names below `svc.<domain>`:
//!
//! | Name | Resolves to |
//! |---|---|
//! | `<service>.<namespace>` | its cluster IP; the ready endpoints if it is headless; its external name |
//! | `_<port>._<protocol>.<service>.<namespace>` | its ports (SRV) |
//! | `<hostname>.<service>.<namespace>` | the endpoint with this hostname, or with this address, as `10-0-0-1` |
//! | `<node>.<service>.<namespace>` | the ready endpoints on that node, whose name may contain dots |
//!
//! A hostname takes precedence over an address, and both over a node of the same name.

mod endpoints;
mod lookup;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use endpoints::ServiceEndpoints;
pub(crate) use endpoints::{Port, ReadyEndpoint, Slice};
pub(crate) use lookup::{Lookup, Record};

/// Namespace and name of a service.
pub(crate) type Key = (Arc<str>, Arc<str>);

/// A service, or an endpoint with its label, that has an address.
type Holder = (Key, Option<Arc<str>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Service {
    /// The cluster IPs; none if it is headless.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) external_name: Option<String>,
    pub(crate) ports: Vec<Port>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Zone {
    domain: Vec<String>,
    services: BTreeMap<Key, Service>,
    endpoints: BTreeMap<Key, ServiceEndpoints>,
    /// The service of each slice.
    slices: BTreeMap<Key, Arc<str>>,
    /// The holders of each address, with the number of slices.
    by_address: BTreeMap<IpAddr, BTreeMap<Holder, u32>>,
    /// Whether services and slices have been listed.
    synced: (bool, bool),
}

impl Zone {
    /// Empty, and incomplete until it [is synced](Self::is_synced).
    pub(crate) fn new(domain: Vec<String>) -> Self {
        Self {
            domain,
            services: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            slices: BTreeMap::new(),
            by_address: BTreeMap::new(),
            synced: (false, false),
        }
    }

    /// Removes services that are not in the complete list.
    pub(crate) fn retain_services(&mut self, listed: &BTreeSet<Key>) {
        for key in unlisted(&self.services, listed) {
            self.remove_service(&key);
        }
        self.synced.0 = true;
    }

    /// Removes slices that are not in the complete list.
    pub(crate) fn retain_slices(&mut self, listed: &BTreeSet<Key>) {
        for key in unlisted(&self.slices, listed) {
            self.remove_slice(&key);
        }
        self.synced.1 = true;
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced == (true, true)
    }

    pub(crate) fn put_service(&mut self, key: Key, service: Service) {
        self.remove_service(&key);
        for address in &service.addresses {
            self.add_holder(*address, (key.clone(), None));
        }
        self.services.insert(key, service);
    }

    pub(crate) fn remove_service(&mut self, key: &Key) {
        let Some(service) = self.services.remove(key) else {
            return;
        };
        for address in service.addresses {
            self.remove_holder(address, &(key.clone(), None));
        }
    }

    pub(crate) fn put_slice(&mut self, id: Key, service: Arc<str>, slice: Slice) {
        self.remove_slice(&id);
        let key = (id.0.clone(), service.clone());
        for endpoint in &slice.endpoints {
            self.add_holder(endpoint.address, (key.clone(), Some(endpoint.label())));
        }
        let endpoints = self.endpoints.entry(key).or_default();
        endpoints.put(id.1.clone(), slice);
        self.slices.insert(id, service);
    }

    pub(crate) fn remove_slice(&mut self, id: &Key) {
        let Some(service) = self.slices.remove(id) else {
            return;
        };
        let key = (id.0.clone(), service);
        let Some(endpoints) = self.endpoints.get_mut(&key) else {
            return;
        };
        let slice = endpoints.remove(&id.1);
        if endpoints.is_empty() {
            self.endpoints.remove(&key);
        }
        for endpoint in slice.into_iter().flat_map(|slice| slice.endpoints) {
            self.remove_holder(endpoint.address, &(key.clone(), Some(endpoint.label())));
        }
    }

    fn add_holder(&mut self, address: IpAddr, holder: Holder) {
        *self
            .by_address
            .entry(address)
            .or_default()
            .entry(holder)
            .or_default() += 1;
    }

    fn remove_holder(&mut self, address: IpAddr, holder: &Holder) {
        let Some(all) = self.by_address.get_mut(&address) else {
            return;
        };
        if let Some(count) = all.get_mut(holder) {
            *count -= 1;
            if *count == 0 {
                all.remove(holder);
            }
        }
        if all.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

fn unlisted<V>(known: &BTreeMap<Key, V>, listed: &BTreeSet<Key>) -> Vec<Key> {
    let unlisted = known.keys().filter(|key| !listed.contains(*key));
    unlisted.cloned().collect()
}

#[cfg(test)]
mod tests;

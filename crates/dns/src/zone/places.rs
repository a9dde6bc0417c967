//! Where the ready endpoints of one service are, found by what they call themselves and by their node.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacePort {
    /// May be empty.
    pub(crate) name: String,
    /// In lower case.
    pub(crate) protocol: String,
    pub(crate) number: u16,
}

/// A ready endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) hostname: Option<Arc<str>>,
    pub(crate) node: Option<Arc<str>>,
}

impl Place {
    /// What it is called below its service: its hostname, or its address with dashes.
    pub(crate) fn label(&self) -> Arc<str> {
        match &self.hostname {
            Some(name) => name.clone(),
            None => dashed(self.address).into(),
        }
    }
}

/// The ready endpoints of a slice, and their ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) ports: Vec<PlacePort>,
    pub(crate) places: Vec<Place>,
}

/// An address can stand in two slices for a moment, while it moves from one to the other.
type Counted = BTreeMap<IpAddr, u32>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Places {
    slices: BTreeMap<Arc<str>, Slice>,
    all: Counted,
    by_hostname: BTreeMap<Arc<str>, Counted>,
    /// By the node's name with its labels in reverse, so that what is below a name stands after it.
    by_node: BTreeMap<String, Counted>,
}

impl Places {
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// A slice that was not there.
    pub(super) fn put(&mut self, name: Arc<str>, slice: Slice) {
        for place in &slice.places {
            count(&mut self.all, place.address);
            if let Some(hostname) = &place.hostname {
                let of = self.by_hostname.entry(hostname.clone()).or_default();
                count(of, place.address);
            }
            if let Some(node) = &place.node {
                let of = self.by_node.entry(reversed(node)).or_default();
                count(of, place.address);
            }
        }
        self.slices.insert(name, slice);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Slice> {
        let slice = self.slices.remove(name)?;
        for place in &slice.places {
            discount(&mut self.all, place.address);
            if let Some(hostname) = &place.hostname {
                discount_in(&mut self.by_hostname, hostname, place.address);
            }
            if let Some(node) = &place.node {
                discount_in(&mut self.by_node, reversed(node).as_str(), place.address);
            }
        }
        Some(slice)
    }

    /// All addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.all.keys().copied()
    }

    /// All slices.
    pub(super) fn slices(&self) -> impl Iterator<Item = &Slice> {
        self.slices.values()
    }

    /// The addresses of those that call themselves so, are so, or are on that node; which of these comes
    /// first is said in [`super`].
    pub(super) fn called(&self, name: &str) -> Vec<IpAddr> {
        if let Some(all) = self.by_hostname.get(name) {
            return all.keys().copied().collect();
        }
        let address = undashed(name).filter(|address| self.all.contains_key(address));
        if let Some(address) = address {
            return vec![address];
        }
        let on_node = self.by_node.get(&reversed(name));
        on_node
            .into_iter()
            .flat_map(|all| all.keys().copied())
            .collect()
    }

    /// Is there a node's name below this one?
    pub(super) fn has_below(&self, name: &str) -> bool {
        let prefix = format!("{}.", reversed(name));
        let mut after = self.by_node.range(prefix.clone()..);
        after
            .next()
            .is_some_and(|(node, _)| node.starts_with(&prefix))
    }
}

fn count(counted: &mut Counted, address: IpAddr) {
    *counted.entry(address).or_default() += 1;
}

fn discount(counted: &mut Counted, address: IpAddr) {
    if let Some(count) = counted.get_mut(&address) {
        *count -= 1;
        if *count == 0 {
            counted.remove(&address);
        }
    }
}

fn discount_in<K>(all: &mut BTreeMap<K, Counted>, key: &str, address: IpAddr)
where
    K: Ord + std::borrow::Borrow<str>,
{
    if let Some(counted) = all.get_mut(key) {
        discount(counted, address);
        if counted.is_empty() {
            all.remove(key);
        }
    }
}

fn reversed(name: &str) -> String {
    let labels: Vec<&str> = name.rsplit('.').collect();
    labels.join(".")
}

fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

fn undashed(label: &str) -> Option<IpAddr> {
    let v4: Option<Ipv4Addr> = label.replace('-', ".").parse().ok();
    let v6 = || label.replace('-', ":").parse::<Ipv6Addr>().ok();
    v4.map(IpAddr::V4).or_else(|| v6().map(IpAddr::V6))
}

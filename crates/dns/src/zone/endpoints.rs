//! The ready endpoints of one service, by hostname, address and node.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// May be empty.
    pub(crate) name: String,
    /// In lower case.
    pub(crate) protocol: String,
    pub(crate) number: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadyEndpoint {
    pub(crate) address: IpAddr,
    pub(crate) hostname: Option<Arc<str>>,
    pub(crate) node: Option<Arc<str>>,
}

impl ReadyEndpoint {
    /// Its name below the service: its hostname, or its address with dashes.
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
    pub(crate) ports: Vec<Port>,
    pub(crate) endpoints: Vec<ReadyEndpoint>,
}

/// By the number of slices: an address may be in two slices while it moves from one to the other.
type Counted = BTreeMap<IpAddr, u32>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct ServiceEndpoints {
    slices: BTreeMap<Arc<str>, Slice>,
    all: Counted,
    by_hostname: BTreeMap<Arc<str>, Counted>,
    /// By the node's name with its labels reversed, so that names below another sort after it.
    by_node: BTreeMap<String, Counted>,
}

impl ServiceEndpoints {
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The slice must not be present.
    pub(super) fn put(&mut self, name: Arc<str>, slice: Slice) {
        for endpoint in &slice.endpoints {
            count(&mut self.all, endpoint.address);
            if let Some(hostname) = &endpoint.hostname {
                let of = self.by_hostname.entry(hostname.clone()).or_default();
                count(of, endpoint.address);
            }
            if let Some(node) = &endpoint.node {
                let of = self.by_node.entry(reversed(node)).or_default();
                count(of, endpoint.address);
            }
        }
        self.slices.insert(name, slice);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Slice> {
        let slice = self.slices.remove(name)?;
        for endpoint in &slice.endpoints {
            discount(&mut self.all, endpoint.address);
            if let Some(hostname) = &endpoint.hostname {
                discount_in(&mut self.by_hostname, hostname, endpoint.address);
            }
            if let Some(node) = &endpoint.node {
                discount_in(&mut self.by_node, reversed(node).as_str(), endpoint.address);
            }
        }
        Some(slice)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.all.keys().copied()
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = &Slice> {
        self.slices.values()
    }

    /// The addresses by hostname, address or node; [`super`] has the precedence.
    pub(super) fn by_label(&self, name: &str) -> Vec<IpAddr> {
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

    /// Whether a node's name is below this one.
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

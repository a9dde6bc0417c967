//! Addresses of simulated nodes and their pods. Nothing answers at them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// How many nodes the ranges have room for.
pub(super) const NODES_MAX: u16 = 65_000;

/// The address of the node with this number.
pub(super) fn of_node(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(172, 16, high, low)
}

/// The range that the node's pods have their addresses from.
pub(super) fn pod_range(number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    format!("10.{high}.{low}.0/24")
}

/// The addresses of one node's pods.
#[derive(Debug)]
pub(super) struct Pool {
    number: u16,
    used: BTreeSet<u8>,
}

impl Pool {
    pub(super) fn new(number: u16) -> Self {
        let used = BTreeSet::new();
        Self { number, used }
    }

    /// A free address, or none if all are taken.
    pub(super) fn take(&mut self) -> Option<Ipv4Addr> {
        let last = (2..=254).find(|last| !self.used.contains(last))?;
        self.used.insert(last);
        let [high, low] = self.number.to_be_bytes();
        Some(Ipv4Addr::new(10, high, low, last))
    }

    /// Marks an address that a pod has already. One of another range is nobody's here.
    pub(super) fn keep(&mut self, address: Ipv4Addr) {
        if let Some(last) = self.own(address) {
            self.used.insert(last);
        }
    }

    /// Gives an address back.
    pub(super) fn release(&mut self, address: Ipv4Addr) {
        if let Some(last) = self.own(address) {
            self.used.remove(&last);
        }
    }

    fn own(&self, address: Ipv4Addr) -> Option<u8> {
        let [first, high, low, last] = address.octets();
        let ours = first == 10 && [high, low] == self.number.to_be_bytes();
        ours.then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_once_and_again_after_their_release() {
        let mut pool = Pool::new(258);
        let address = |last: u8| Ipv4Addr::new(10, 1, 2, last);
        pool.keep(address(3));
        assert_eq!(pool.take(), Some(address(2)));
        assert_eq!(pool.take(), Some(address(4)));
        pool.release(address(2));
        pool.release(Ipv4Addr::new(10, 9, 9, 4));
        assert_eq!(pool.take(), Some(address(2)));
        while pool.take().is_some() {}
        assert_eq!(pool.used.len(), 253);
    }
}

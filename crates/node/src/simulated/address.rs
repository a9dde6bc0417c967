//! Addresses of simulated nodes and their pods. Nothing answers at them.

use std::net::Ipv4Addr;

/// Pods have theirs in 10.0.0.0/8, except for the part that services usually have: 10.96.0.0/12.
const SERVICES: u32 = 96 << 8;
const SERVICES_LENGTH: u32 = 16 << 8;

/// How many nodes the ranges have room for: each has 256 addresses for its pods.
pub const NODES_MAX: u32 = (1 << 16) - SERVICES_LENGTH - 1;

/// The address of the node with this number, in 172.16.0.0/12.
pub(super) fn of_node(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(172, 16, 0, 0).to_bits() + number)
}

/// The first address of the range that the node's pods have theirs from.
fn first_of(number: u32) -> Ipv4Addr {
    let skipped = if number < SERVICES {
        0
    } else {
        SERVICES_LENGTH
    };
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + ((number + skipped) << 8))
}

/// The range that the node's pods have their addresses from.
pub(super) fn pod_range(number: u32) -> String {
    format!("{}/24", first_of(number))
}

/// The addresses of one node's pods.
#[derive(Debug)]
pub(super) struct Pool {
    first: Ipv4Addr,
    /// By their last byte, in order: a node has few.
    used: Vec<u8>,
}

impl Pool {
    pub(super) fn new(number: u32) -> Self {
        Self {
            first: first_of(number),
            used: Vec::new(),
        }
    }

    /// A free address, or none if all are taken.
    pub(super) fn take(&mut self) -> Option<Ipv4Addr> {
        let last = (2..=254).find(|last| self.used.binary_search(last).is_err())?;
        self.insert(last);
        let address = self.first.to_bits() | u32::from(last);
        Some(Ipv4Addr::from_bits(address))
    }

    /// Marks an address that a pod has already. One of another range is nobody's here.
    pub(super) fn keep(&mut self, address: Ipv4Addr) {
        if let Some(last) = self.own(address) {
            self.insert(last);
        }
    }

    /// Gives an address back.
    pub(super) fn release(&mut self, address: Ipv4Addr) {
        let place = self.own(address).map(|last| self.used.binary_search(&last));
        if let Some(Ok(place)) = place {
            self.used.remove(place);
        }
    }

    fn insert(&mut self, last: u8) {
        if let Err(place) = self.used.binary_search(&last) {
            self.used.insert(place, last);
        }
    }

    fn own(&self, address: Ipv4Addr) -> Option<u8> {
        let last = address.to_bits() ^ self.first.to_bits();
        u8::try_from(last).ok()
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

    #[test]
    fn no_two_nodes_share_a_range_and_none_has_one_of_the_services() {
        let ranges: Vec<u32> = (1..=NODES_MAX).map(|n| first_of(n).to_bits()).collect();
        assert!(ranges.windows(2).all(|pair| pair[0] + 256 <= pair[1]));
        let services = Ipv4Addr::new(10, 96, 0, 0).to_bits() >> 20;
        assert!(ranges.iter().all(|range| range >> 20 != services));
        assert!(ranges.iter().all(|range| range >> 24 == 10));
        assert_eq!(of_node(NODES_MAX), Ipv4Addr::new(172, 16, 239, 255));
        assert_eq!(pod_range(96 * 256), "10.112.0.0/24");
    }
}

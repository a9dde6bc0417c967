//! Addresses of simulated nodes and their pods. Nothing answers at them.

use std::net::Ipv4Addr;

/// Pods get addresses in 10.0.0.0/8 without 10.96.0.0/12, the usual range of services.
const SERVICES: u32 = 96 << 8;
const SERVICES_LENGTH: u32 = 16 << 8;

/// How many nodes the ranges suffice for: each has 256 addresses for its pods.
pub const NODES_MAX: u32 = (1 << 16) - SERVICES_LENGTH - 1;

/// The address of the node with this number, in 172.16.0.0/12.
pub(super) fn node_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(172, 16, 0, 0).to_bits() + number)
}

/// The first address of the node's pod CIDR.
fn first_pod_address(number: u32) -> Ipv4Addr {
    let skipped = if number < SERVICES {
        0
    } else {
        SERVICES_LENGTH
    };
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + ((number + skipped) << 8))
}

/// Allocates the addresses of one node's pods.
#[derive(Debug)]
pub(super) struct PodAddresses {
    first: Ipv4Addr,
    /// Last bytes, sorted: a node has few.
    used: Vec<u8>,
}

impl PodAddresses {
    pub(super) fn new(number: u32) -> Self {
        Self {
            first: first_pod_address(number),
            used: Vec::new(),
        }
    }

    pub(super) fn allocate(&mut self) -> Option<Ipv4Addr> {
        let last = (2..=254).find(|last| self.used.binary_search(last).is_err())?;
        self.insert(last);
        let address = self.first.to_bits() | u32::from(last);
        Some(Ipv4Addr::from_bits(address))
    }

    /// Marks an address that a pod has already. Addresses of other ranges are ignored.
    pub(super) fn reserve(&mut self, address: Ipv4Addr) {
        if let Some(last) = self.last_byte(address) {
            self.insert(last);
        }
    }

    pub(super) fn release(&mut self, address: Ipv4Addr) {
        let index = self.last_byte(address);
        let index = index.map(|last| self.used.binary_search(&last));
        if let Some(Ok(index)) = index {
            self.used.remove(index);
        }
    }

    fn insert(&mut self, last: u8) {
        if let Err(index) = self.used.binary_search(&last) {
            self.used.insert(index, last);
        }
    }

    fn last_byte(&self, address: Ipv4Addr) -> Option<u8> {
        let last = address.to_bits() ^ self.first.to_bits();
        u8::try_from(last).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_allocated_once_and_again_after_release() {
        let mut addresses = PodAddresses::new(258);
        let address = |last: u8| Ipv4Addr::new(10, 1, 2, last);
        addresses.reserve(address(3));
        assert_eq!(addresses.allocate(), Some(address(2)));
        assert_eq!(addresses.allocate(), Some(address(4)));
        addresses.release(address(2));
        addresses.release(Ipv4Addr::new(10, 9, 9, 4));
        assert_eq!(addresses.allocate(), Some(address(2)));
        while addresses.allocate().is_some() {}
        assert_eq!(addresses.used.len(), 253);
    }

    #[test]
    fn no_two_nodes_share_a_cidr_and_none_overlaps_the_services() {
        let ranges: Vec<u32> = (1..=NODES_MAX)
            .map(|n| first_pod_address(n).to_bits())
            .collect();
        assert!(ranges.windows(2).all(|pair| pair[0] + 256 <= pair[1]));
        let services = Ipv4Addr::new(10, 96, 0, 0).to_bits() >> 20;
        assert!(ranges.iter().all(|range| range >> 20 != services));
        assert!(ranges.iter().all(|range| range >> 24 == 10));
        assert_eq!(node_address(NODES_MAX), Ipv4Addr::new(172, 16, 239, 255));
        assert_eq!(first_pod_address(96 * 256), Ipv4Addr::new(10, 112, 0, 0));
    }
}

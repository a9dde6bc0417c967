//! Addresses of simulated nodes and their pods. Nothing answers at them.

use std::net::Ipv4Addr;

/// Pods get addresses in 10.0.0.0/8 without 10.96.0.0/12, the usual range of services.
const SERVICES: u32 = 96 << 8;
const SERVICES_LENGTH: u32 = 16 << 8;

/// How many nodes have the lower half of 256 addresses for their pods; as many have an upper half.
const LOWER_HALVES: u32 = (1 << 16) - SERVICES_LENGTH - 1;
/// Addresses of a node's pods: more than the 110 pods that a node takes unless a scenario says otherwise.
const POD_ADDRESSES: u8 = 128;

/// How many nodes the ranges suffice for.
pub const NODES_MAX: u32 = 2 * LOWER_HALVES;

/// The address of the node with this number, in 172.16.0.0/12.
pub(super) fn node_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(172, 16, 0, 0).to_bits() + number)
}

/// The first address of the node's pod CIDR.
fn first_pod_address(number: u32) -> Ipv4Addr {
    let (number, half) = match number.checked_sub(LOWER_HALVES) {
        None | Some(0) => (number, 0),
        Some(number) => (number, u32::from(POD_ADDRESSES)),
    };
    let skipped = if number < SERVICES {
        0
    } else {
        SERVICES_LENGTH
    };
    let first = Ipv4Addr::new(10, 0, 0, 0).to_bits();
    Ipv4Addr::from_bits(first + ((number + skipped) << 8) + half)
}

/// Allocates the addresses of one node's pods.
#[derive(Debug)]
pub(super) struct PodAddresses {
    first: Ipv4Addr,
    /// Counted from the first, sorted: a node has few.
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
        let free = |offset: &u8| self.used.binary_search(offset).is_err();
        let offset = (2..POD_ADDRESSES - 1).find(free)?;
        self.insert(offset);
        let address = self.first.to_bits() | u32::from(offset);
        Some(Ipv4Addr::from_bits(address))
    }

    /// Marks an address that a pod has already. Addresses of other ranges are ignored.
    pub(super) fn reserve(&mut self, address: Ipv4Addr) {
        if let Some(offset) = self.offset(address) {
            self.insert(offset);
        }
    }

    pub(super) fn release(&mut self, address: Ipv4Addr) {
        let index = self.offset(address);
        let index = index.map(|offset| self.used.binary_search(&offset));
        if let Some(Ok(index)) = index {
            self.used.remove(index);
        }
    }

    fn insert(&mut self, offset: u8) {
        if let Err(index) = self.used.binary_search(&offset) {
            self.used.insert(index, offset);
        }
    }

    fn offset(&self, address: Ipv4Addr) -> Option<u8> {
        let offset = address.to_bits() ^ self.first.to_bits();
        u8::try_from(offset)
            .ok()
            .filter(|offset| *offset < POD_ADDRESSES)
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
        assert_eq!(addresses.used.len(), 125);
        // The other half is another node's.
        addresses.release(address(130));
        assert_eq!(addresses.used.len(), 125);
    }

    #[test]
    fn no_two_nodes_share_a_cidr_and_none_overlaps_the_services() {
        let mut ranges: Vec<u32> = (1..=NODES_MAX)
            .map(|n| first_pod_address(n).to_bits())
            .collect();
        ranges.sort_unstable();
        let length = u32::from(POD_ADDRESSES);
        assert!(ranges.windows(2).all(|pair| pair[0] + length <= pair[1]));
        let services = Ipv4Addr::new(10, 96, 0, 0).to_bits() >> 20;
        assert!(ranges.iter().all(|range| range >> 20 != services));
        assert!(ranges.iter().all(|range| range >> 24 == 10));
        assert_eq!(node_address(NODES_MAX), Ipv4Addr::new(172, 17, 223, 254));
        assert_eq!(first_pod_address(1), Ipv4Addr::new(10, 0, 1, 0));
        let upper = first_pod_address(LOWER_HALVES + 1);
        assert_eq!(upper, Ipv4Addr::new(10, 0, 1, 128));
        assert_eq!(first_pod_address(96 * 256), Ipv4Addr::new(10, 112, 0, 0));
    }
}

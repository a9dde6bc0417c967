//! Finds a subnet for the nodes that this machine does not use. Pure: the addresses in use are an argument.

use std::net::Ipv4Addr;

/// Subnets are taken from 10.87.0.0/16.
const PREFIX: [u8; 2] = [10, 87];
/// The last byte of the machine's own address.
const GATEWAY: u8 = 254;

/// A /24 network. Nodes have its first addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subnet(u8);

impl Subnet {
    /// A subnet that overlaps with no address in `used` (output of `ip`). The search begins at `first`.
    pub(super) fn free(used: &str, first: u8) -> Option<Self> {
        let used: Vec<(u32, u32)> = used.split_whitespace().filter_map(address_range).collect();
        let mut all = (0..=u8::MAX).map(|step| Self(first.wrapping_add(step)));
        all.find(|subnet| {
            let own = (subnet.at(0).to_bits(), subnet.at(u8::MAX).to_bits());
            used.iter()
                .all(|(first, last)| *last < own.0 || own.1 < *first)
        })
    }

    /// The machine's address.
    pub(super) fn gateway(self) -> Ipv4Addr {
        self.at(GATEWAY)
    }

    /// The address of a node; numbers begin at 1.
    pub(super) fn node(self, number: u32) -> Ipv4Addr {
        self.at(u8::try_from(number).unwrap_or(u8::MAX))
    }

    fn at(self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(PREFIX[0], PREFIX[1], self.0, last)
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/24", self.at(0))
    }
}

/// The first and last address of a word such as `10.0.0.0/8` or `10.1.2.3`. `None` for other words and for the default
/// route `0.0.0.0/0`.
fn address_range(word: &str) -> Option<(u32, u32)> {
    let (address, length) = word.split_once('/').unwrap_or((word, "32"));
    let address = address.parse::<Ipv4Addr>().ok()?.to_bits();
    let length: u32 = length
        .parse()
        .ok()
        .filter(|length| (1..=32).contains(length))?;
    let rest = u32::MAX.checked_shr(length).unwrap_or(0);
    Some((address & !rest, address | rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_overlaps_with_no_used_address() {
        let check = |used: &str, first: u8, expected: Option<&str>| {
            let found = Subnet::free(used, first).map(|subnet| subnet.to_string());
            assert_eq!(found.as_deref(), expected, "{used}");
        };
        check("", 7, Some("10.87.7.0/24"));
        check("default via 192.168.0.1 dev eth0", 7, Some("10.87.7.0/24"));
        check("0.0.0.0/0 via 192.168.0.1", 7, Some("10.87.7.0/24"));
        check("10.87.7.0/24 dev kennel-1f", 7, Some("10.87.8.0/24"));
        check("local 10.87.255.254 dev x", 255, Some("10.87.0.0/24"));
        check(
            "10.87.0.0/17 via 10.87.128.1 dev x",
            1,
            Some("10.87.129.0/24"),
        );
        check("10.87.7.128/30 dev x", 7, Some("10.87.8.0/24"));
        check("unreachable 10.0.0.0/8", 0, None);
    }

    #[test]
    fn nodes_have_the_first_addresses_and_the_gateway_the_last() {
        let subnet = Subnet(3);
        assert_eq!(subnet.node(1), Ipv4Addr::new(10, 87, 3, 1));
        assert_eq!(subnet.gateway(), Ipv4Addr::new(10, 87, 3, 254));
    }
}

//! Finds addresses for the nodes that nobody on this machine uses. Pure: what is used is an argument.

use std::net::Ipv4Addr;

/// Where ranges are taken from: 10.87.0.0/16.
const FROM: [u8; 2] = [10, 87];
/// The last number of the machine's own address.
const GATEWAY: u8 = 254;

/// 256 addresses, of which nodes have the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range(u8);

impl Range {
    /// One that overlaps with nothing that is used, as `ip` lists it. It is looked for from some number on.
    pub(super) fn free(used: &str, first: u8) -> Option<Self> {
        let used: Vec<(u32, u32)> = used.split_whitespace().filter_map(span).collect();
        let mut all = (0..=u8::MAX).map(|step| Self(first.wrapping_add(step)));
        all.find(|range| {
            let own = (range.at(0).to_bits(), range.at(u8::MAX).to_bits());
            used.iter()
                .all(|(first, last)| *last < own.0 || own.1 < *first)
        })
    }

    /// The machine's own address.
    pub(super) fn gateway(self) -> Ipv4Addr {
        self.at(GATEWAY)
    }

    /// The address of the node with this number, which is 1 or more.
    pub(super) fn node(self, number: u32) -> Ipv4Addr {
        self.at(u8::try_from(number).unwrap_or(u8::MAX))
    }

    fn at(self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(FROM[0], FROM[1], self.0, last)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/24", self.at(0))
    }
}

/// The first and the last address of a word that names some: `10.0.0.0/8`, `10.1.2.3`. The word for all of them names
/// the way out, and nobody's own.
fn span(word: &str) -> Option<(u32, u32)> {
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
    fn a_range_overlaps_with_nothing_that_is_used() {
        let check = |used: &str, first: u8, expected: Option<&str>| {
            let found = Range::free(used, first).map(|range| range.to_string());
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
    fn nodes_have_the_first_addresses_and_the_machine_one_of_the_last() {
        let range = Range(3);
        assert_eq!(range.node(1), Ipv4Addr::new(10, 87, 3, 1));
        assert_eq!(range.gateway(), Ipv4Addr::new(10, 87, 3, 254));
    }
}

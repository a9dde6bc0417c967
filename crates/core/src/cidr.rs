//! IPv4 address blocks, for the ranges of pods and routes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use crate::names;

/// An IPv4 block such as `10.128.3.0/24`. No address bits are set beyond the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    base: u32,
    bits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IPv4 range such as 10.128.0.0/9")]
pub struct CidrError(String);

impl Cidr {
    /// The block of `bits` prefix bits, at most 32, that contains the address.
    pub fn containing(address: Ipv4Addr, bits: u8) -> Self {
        let bits = bits.min(32);
        Self {
            base: u32::from(address) & mask(bits),
            bits,
        }
    }

    /// The block of one address.
    pub fn host(address: Ipv4Addr) -> Self {
        Self::containing(address, 32)
    }

    pub fn base(self) -> Ipv4Addr {
        self.base.into()
    }

    /// The last address.
    pub fn last(self) -> Ipv4Addr {
        (self.base | !mask(self.bits)).into()
    }

    /// The length of the prefix.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// The mask of the prefix.
    pub fn mask(self) -> Ipv4Addr {
        mask(self.bits).into()
    }

    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.bits) == self.base
    }

    pub fn overlaps(self, other: Self) -> bool {
        let bits = self.bits.min(other.bits);
        (self.base ^ other.base) & mask(bits) == 0
    }

    /// How many blocks of `bits` prefix bits it has.
    pub fn subnets(self, bits: u8) -> u32 {
        match bits.checked_sub(self.bits) {
            Some(more) => 1_u32.checked_shl(more.into()).unwrap_or(u32::MAX),
            None => 0,
        }
    }

    /// The block of `bits` prefix bits with this number.
    #[must_use]
    pub fn subnet(self, bits: u8, number: u32) -> Self {
        let size = 32 - u32::from(bits.min(32));
        Self {
            base: self.base | number.checked_shl(size).unwrap_or(0),
            bits,
        }
    }

    /// The numbers of those blocks of `bits` prefix bits that `other` overlaps.
    pub fn numbers(self, bits: u8, other: Self) -> std::ops::Range<u32> {
        if !self.overlaps(other) {
            return 0..0;
        }
        let size = 32 - u32::from(bits.min(32));
        let from = other.base.max(self.base) - self.base;
        let to = u32::from(other.last()).min(self.last().into()) - self.base;
        let number = |offset: u32| offset.checked_shr(size).unwrap_or(0);
        number(from)..number(to) + 1
    }
}

fn mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

impl FromStr for Cidr {
    type Err = CidrError;

    /// Refuses blocks with address bits beyond the prefix.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        match names::parse_cidr(text) {
            Some((IpAddr::V4(address), bits))
                if Self::containing(address, bits).base() == address =>
            {
                Ok(Self::containing(address, bits))
            }
            _ => Err(CidrError(text.to_owned())),
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base(), self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn blocks_are_read_and_shown() {
        for text in ["10.128.0.0/9", "0.0.0.0/0", "10.0.0.1/32"] {
            assert_eq!(cidr(text).to_string(), text);
        }
        for text in ["10.128.0.1/9", "10.0.0.0", "10.0.0.0/33", "fd00::/64", ""] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        assert_eq!(cidr("10.128.3.0/24").last().to_string(), "10.128.3.255");
    }

    #[test]
    fn overlaps() {
        let check = |a: &str, b: &str, expected: bool| {
            assert_eq!(cidr(a).overlaps(cidr(b)), expected, "{a} {b}");
            assert_eq!(cidr(b).overlaps(cidr(a)), expected, "{b} {a}");
        };
        check("10.128.0.0/9", "10.200.0.0/30", true);
        check("10.128.0.0/9", "10.0.0.0/9", false);
        check("0.0.0.0/0", "10.0.0.1/32", true);
        check("10.0.0.0/24", "10.0.1.0/24", false);
    }

    #[test]
    fn subnets_are_numbered() {
        let range = cidr("10.128.0.0/9");
        assert_eq!(range.subnets(24), 32_768);
        assert_eq!(range.subnet(24, 300).to_string(), "10.129.44.0/24");
        assert_eq!(range.numbers(24, cidr("10.129.44.0/24")), 300..301);
        assert_eq!(range.numbers(24, cidr("10.129.44.0/23")), 300..302);
        assert_eq!(range.numbers(24, cidr("10.129.44.128/25")), 300..301);
        assert_eq!(range.numbers(24, cidr("10.0.0.0/8")), 0..32_768);
        assert_eq!(range.numbers(24, cidr("11.0.0.0/8")), 0..0);
        assert_eq!(cidr("10.0.0.0/24").subnets(24), 1);
    }
}

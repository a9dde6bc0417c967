//! Ranges of addresses of both families.

use std::net::IpAddr;
use std::str::FromStr;

use crate::names;

/// A range of addresses, such as `10.128.0.0/9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of addresses such as 10.128.0.0/9")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let found = names::parse_cidr(text).map(|(base, bits)| Self { base, bits });
        found.ok_or_else(|| NetworkError(text.to_owned()))
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Self {
            base: address,
            bits,
        }
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let different = match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                u128::from(u32::from(base) ^ u32::from(address)) << 96
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => u128::from(base) ^ u128::from(address),
            _ => return false,
        };
        different.leading_zeros() >= self.bits.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let check = |network: &str, address: &str, inside: bool| {
            let network: Network = network.parse().unwrap();
            let found = network.contains(address.parse().unwrap());
            assert_eq!(found, inside, "{network:?} {address}");
        };
        check("10.128.0.0/9", "10.255.1.2", true);
        check("10.128.0.0/9", "10.127.255.255", false);
        check("192.0.2.1/32", "192.0.2.1", true);
        check("192.0.2.1/32", "192.0.2.2", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("fd00::/8", "fd12::1", true);
        assert!("10.0.0.0".parse::<Network>().is_err());
    }
}

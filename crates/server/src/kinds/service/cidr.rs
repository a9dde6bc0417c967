//! The range of cluster IPs as the command line has it.

use std::str::FromStr;

use super::allocate::{NODE_PORTS, Ranges};

/// The range that cluster IPs are allocated from.
#[derive(Clone, Debug)]
pub struct Cidr(pub(crate) Ranges);

impl Cidr {
    pub fn block(&self) -> kennel_core::cidr::Cidr {
        self.0.block()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IPv4 range such as 10.96.0.0/16")]
pub struct CidrError(String);

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let ranges = Ranges::new(text, NODE_PORTS);
        ranges.map(Self).ok_or_else(|| CidrError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_the_command_line() {
        assert_eq!(
            "10.96.7.7/16"
                .parse::<Cidr>()
                .unwrap()
                .0
                .first()
                .to_string(),
            "10.96.0.1"
        );
        for wrong in ["10.96.0.0", "10.96.0.0/33", "x/16", "fd00::/64"] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }
}

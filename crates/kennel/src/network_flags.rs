//! The flag of the pods' address range.

use std::str::FromStr;

use kennel_core::cidr::{Cidr, CidrError};
use kennel_core::node_ipam::{CLUSTER_BITS_MIN, NODE_BITS};

/// The value of `--cluster-cidr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClusterCidr(pub(crate) Cidr);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClusterCidrError {
    #[error(transparent)]
    Form(#[from] CidrError),
    #[error(
        "its prefix has {0} bits: use one of {CLUSTER_BITS_MIN} to {NODE_BITS} bits, of which each node gets a /{NODE_BITS}"
    )]
    Size(u8),
    #[error(
        "--cluster-cidr={pods} overlaps --service-cidr={services}: pods and services need ranges of their own"
    )]
    Services { pods: Cidr, services: Cidr },
}

impl FromStr for ClusterCidr {
    type Err = ClusterCidrError;

    fn from_str(text: &str) -> Result<Self, ClusterCidrError> {
        let cidr: Cidr = text.parse()?;
        if !(CLUSTER_BITS_MIN..=NODE_BITS).contains(&cidr.bits()) {
            return Err(ClusterCidrError::Size(cidr.bits()));
        }
        Ok(Self(cidr))
    }
}

impl ClusterCidr {
    /// The range, if it is apart from that of services.
    pub(crate) fn beside(self, services: Cidr) -> Result<Cidr, ClusterCidrError> {
        if self.0.overlaps(services) {
            let pods = self.0;
            return Err(ClusterCidrError::Services { pods, services });
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_nodes_must_fit() {
        let check = |text: &str, expected: Result<(), &str>| {
            let parsed = text.parse::<ClusterCidr>().map(drop);
            assert_eq!(
                parsed.map_err(|error| error.to_string()),
                expected.map_err(str::to_owned),
                "{text}"
            );
        };
        check("10.128.0.0/9", Ok(()));
        check("10.0.0.0/24", Ok(()));
        let size = "its prefix has 25 bits: use one of 8 to 24 bits, of which each node gets a /24";
        check("10.0.0.0/25", Err(size));
        check(
            "10.1.0.0/9",
            Err("\"10.1.0.0/9\" is not an IPv4 range such as 10.128.0.0/9"),
        );
    }

    #[test]
    fn pods_and_services_have_ranges_of_their_own() {
        let pods: ClusterCidr = "10.96.0.0/12".parse().unwrap();
        let services = "10.96.0.0/16".parse().unwrap();
        assert_eq!(
            pods.beside(services).unwrap_err().to_string(),
            "--cluster-cidr=10.96.0.0/12 overlaps --service-cidr=10.96.0.0/16: pods and services need ranges of their own"
        );
    }
}

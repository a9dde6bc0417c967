//! The addresses that the server's own Services lead to.

use std::net::{IpAddr, SocketAddr};

/// Where pods and the agents of other machines reach what a server's process serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Advertised {
    /// An address of this machine that is no loopback address. Without one, the Services have no endpoints.
    pub address: Option<IpAddr>,
    /// Where the DNS server of this process listens; `None` if there is none.
    pub dns: Option<SocketAddr>,
}

impl Advertised {
    /// The address of the DNS server for pods.
    pub(crate) fn reachable_dns(&self) -> Option<SocketAddr> {
        let dns = self.dns?;
        let ip = if dns.ip().is_unspecified() {
            self.address?
        } else {
            dns.ip()
        };
        is_reachable(ip).then_some(SocketAddr::new(ip, dns.port()))
    }
}

/// Whether endpoints may have this address.
fn is_reachable(ip: IpAddr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n3_only_addresses_that_pods_can_reach_are_advertised() {
        let check = |address: Option<&str>, dns: Option<&str>, expected: Option<&str>| {
            let advertised = Advertised {
                address: address.map(|ip| ip.parse().unwrap()),
                dns: dns.map(|dns| dns.parse().unwrap()),
            };
            let shown = advertised.reachable_dns().map(|one| one.to_string());
            assert_eq!(shown.as_deref(), expected, "{advertised:?}");
        };
        let machine = Some("192.0.2.1");
        check(machine, None, None);
        check(machine, Some("192.0.2.1:10053"), Some("192.0.2.1:10053"));
        check(machine, Some("0.0.0.0:10053"), Some("192.0.2.1:10053"));
        check(None, Some("0.0.0.0:10053"), None);
        check(machine, Some("127.0.0.1:10053"), None);
    }
}

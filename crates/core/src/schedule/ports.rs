//! Host ports.

use kennel_types::pod::ContainerPort;

/// Means all addresses of the host.
const ALL: &str = "0.0.0.0";

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    address: Box<str>,
    protocol: Box<str>,
    port: i64,
}

impl HostPort {
    /// Empty fields default as upstream: all addresses, TCP.
    pub fn new(address: &str, protocol: &str, port: i64) -> Self {
        let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.into();
        Self {
            address: or(address, ALL),
            protocol: or(protocol, "TCP"),
            port,
        }
    }

    /// The host port of a container's port, if it has one.
    pub fn of(port: &ContainerPort) -> Option<Self> {
        let address = port.host_ip.as_deref().unwrap_or_default();
        let protocol = port.protocol.as_deref().unwrap_or_default();
        (port.host_port > 0).then(|| Self::new(address, protocol, port.host_port.into()))
    }

    pub fn number(&self) -> i64 {
        self.port
    }

    /// Whether two pods of one node cannot have both.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || &*self.address == ALL || &*other.address == ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: (&str, &str, i64), b: (&str, &str, i64), expected: bool) {
        let port = |(address, protocol, port)| HostPort::new(address, protocol, port);
        assert_eq!(port(a).conflicts(&port(b)), expected, "{a:?} and {b:?}");
        assert_eq!(port(b).conflicts(&port(a)), expected, "{b:?} and {a:?}");
    }

    #[test]
    fn ports_conflict_by_address_protocol_and_number() {
        check(("", "", 80), ("", "TCP", 80), true);
        check(("", "TCP", 80), ("", "UDP", 80), false);
        check(("", "TCP", 80), ("", "TCP", 81), false);
        check(("10.0.0.1", "TCP", 80), ("", "TCP", 80), true);
        check(("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), true);
        check(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), true);
        check(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), false);
    }
}

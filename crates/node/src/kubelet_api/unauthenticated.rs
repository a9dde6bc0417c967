//! Bounds the connections from one address that have shown no valid client certificate: any client that reaches the port can open
//! them, and must not take all of the server's. The API server shows its certificate, so it has all of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A quarter of all connections: more than the API server has in TLS handshakes at once, and than callers with tokens need.
pub(super) const UNAUTHENTICATED_PER_ADDRESS: usize = 128;

/// One client may have as many addresses as an IPv6 /64 has.
const SUBNET: u128 = !(u64::MAX as u128);

/// The number of such connections by address.
#[derive(Debug, Default)]
pub(super) struct UnauthenticatedConnections(Mutex<HashMap<IpAddr, usize>>);

/// One connection. It is counted until this is dropped.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnection {
    all: Arc<UnauthenticatedConnections>,
    address: IpAddr,
}

impl UnauthenticatedConnections {
    /// None if there are too many from this address.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<UnauthenticatedConnection> {
        let address = subnet(address);
        let mut counts = self.counts();
        let count = counts.entry(address).or_default();
        if *count >= UNAUTHENTICATED_PER_ADDRESS {
            return None;
        }
        *count += 1;
        Some(UnauthenticatedConnection {
            all: Arc::clone(self),
            address,
        })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        let mut counts = self.all.counts();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & SUBNET).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_bound_and_ended_connections_do_not_count() {
        let connections = Arc::new(UnauthenticatedConnections::default());
        let admit = |text: &str| connections.admit(text.parse().unwrap());
        let mut open: Vec<UnauthenticatedConnection> = (0..UNAUTHENTICATED_PER_ADDRESS)
            .map(|_| admit("192.0.2.1").unwrap())
            .collect();
        assert!(admit("192.0.2.1").is_none());
        assert!(admit("::ffff:192.0.2.1").is_none(), "the same one");
        let other = admit("192.0.2.2").unwrap();
        open.pop();
        open.push(admit("192.0.2.1").unwrap());
        assert!(admit("192.0.2.1").is_none());
        open.extend(
            (0..UNAUTHENTICATED_PER_ADDRESS).map(|n| admit(&format!("fd00::{n:x}")).unwrap()),
        );
        assert!(admit("fd00::ffff:1").is_none(), "of the same network");
        assert!(admit("fd00:0:0:1::1").is_some());
        drop((open, other));
        assert!(connections.counts().is_empty());
    }
}

//! The node's addresses, which may change while the agent runs: a DHCP server gives another one.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::sync::watch;

use super::machine;
use super::settings::ApiAddress;

/// How often the address is looked up. That sends nothing.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// The current addresses; the first one is the primary one. Clones share them.
#[derive(Clone, Debug)]
pub struct Addresses(watch::Sender<Vec<IpAddr>>);

impl Addresses {
    pub fn new(addresses: Vec<IpAddr>) -> Self {
        Self(watch::channel(addresses).0)
    }

    pub fn current(&self) -> Vec<IpAddr> {
        self.0.borrow().clone()
    }

    pub fn first(&self) -> Option<IpAddr> {
        self.0.borrow().first().copied()
    }

    pub fn subscribe(&self) -> watch::Receiver<Vec<IpAddr>> {
        self.0.subscribe()
    }

    /// Follows the address that this machine reaches the peer from. Never returns.
    pub async fn follow(&self, peer: Option<&ApiAddress>) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let found = own_address(peer).await;
            // Without a network there is none; the last one stays.
            if found.is_loopback() || self.first() == Some(found) {
                continue;
            }
            let before = self.first().map(|one| one.to_string()).unwrap_or_default();
            tracing::info!("the node's address changed from {before} to {found}");
            self.0.send_replace(vec![found]);
        }
    }
}

/// The address that this machine reaches the peer from, or else the internet.
pub async fn own_address(peer: Option<&ApiAddress>) -> IpAddr {
    let peer: Option<SocketAddr> = match peer {
        Some(api) => {
            let found = tokio::net::lookup_host((api.host.as_str(), api.port)).await;
            found.ok().and_then(|mut found| found.next())
        }
        None => None,
    };
    machine::address(peer)
}

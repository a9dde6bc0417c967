//! The certificate that the node serves with: the one of the last time if it is still good, else a new one, and from
//! then on always a fresh one.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use kennel_client::clock;
use rustls::pki_types::CertificateDer;

use super::identity::join;
use super::identity::rotate::{self, Certifier};
use super::identity::{Pair, Showcase, Wanted};

/// See the [module](self).
pub(super) struct Serving {
    /// The node's name.
    pub(super) node: String,
    /// Its addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// The file that it is kept in.
    pub(super) file: PathBuf,
    /// Who must have signed it.
    pub(super) authorities: Vec<CertificateDer<'static>>,
    /// Where it comes from.
    pub(super) certifier: Arc<dyn Certifier>,
    /// The server's URL, if it is elsewhere.
    pub(super) server: Option<String>,
    /// Where it is shown.
    pub(super) showcase: Arc<Showcase>,
}

impl Serving {
    /// Sees to it for ever.
    pub(super) async fn keep(self) {
        let addresses = self.own_addresses().await;
        let current = self.current(&addresses);
        let wanted = Wanted::serving(&self.node, addresses);
        let show = |pair: &Pair| self.showcase.show(pair);
        rotate::keep(&*self.certifier, &wanted, &self.file, current, show).await;
    }

    /// The addresses that a certificate is given for by rule: those of a server on the same machine are not. The
    /// server does not need them; it knows nodes by name.
    async fn own_addresses(&self) -> Vec<IpAddr> {
        let reserved = match &self.server {
            Some(server) => join::server_addresses(server).await,
            None => Vec::new(),
        };
        let own = self.addresses.iter().copied();
        own.filter(|address| address.is_loopback() || !reserved.contains(address))
            .collect()
    }

    fn current(&self, addresses: &[IpAddr]) -> Option<Pair> {
        let kept = Pair::read(&self.file);
        let kept = kept.inspect_err(|error| tracing::warn!("{error}")).ok()?;
        let now = clock::now_ms() / 1000;
        let is_good = |pair: &Pair| {
            let ours = self.authorities.is_empty() || pair.is_signed_by(&self.authorities);
            ours && pair.covers(&self.node, addresses, now)
        };
        let good = kept.filter(is_good)?;
        let shown = self.showcase.show(&good);
        let shown = shown.inspect_err(|error| tracing::warn!("{error}"));
        shown.ok().map(|()| good)
    }
}

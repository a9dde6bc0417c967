//! A small DNS server: answers for the services of a cluster, and for the daemon pod of each node, and forwards
//! everything else.
//!
//! ```text
//!   API ──watch──▶ watch ─▶ zone (names, in memory)
//!                             ▲
//!   UDP, TCP ─▶ serve ─▶ question ─▶ resolver ─▶ reply ─▶ UDP, TCP
//!                                       └▶ forward ─▶ upstream resolvers (for whom: sources)
//! ```
//!
//! It is a client of any Kubernetes API and must not import the server or the store. While the API is unavailable
//! it answers from memory.

mod forward;
#[doc(hidden)]
pub mod fuzz;
mod question;
mod reply;
mod resolver;
mod serve;
mod sources;
mod upstreams;
mod watch;
mod zone;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use kennel_core::network::Network;
use kube::Client;
use tokio_util::sync::CancellationToken;

pub use question::DomainError;
pub use upstreams::system_resolvers;

use resolver::Resolver;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Port 0 chooses a free one.
    pub listen: SocketAddr,
    /// The cluster domain, such as `cluster.local`.
    pub domain: String,
    /// The resolvers for all other names, in this order.
    pub upstreams: Vec<SocketAddr>,
    /// Clients for which all other names are resolved, beside nodes, their pods and loopback addresses.
    pub recursion_for: Vec<Network>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot serve names at {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("{0:?} is not a domain: {1}")]
    Domain(String, #[source] DomainError),
    #[error(transparent)]
    Watch(#[from] kennel_client::Error),
}

/// Bound to its address.
#[derive(Clone)]
pub struct Server {
    sockets: Arc<serve::Sockets>,
    resolver: Arc<Resolver>,
}

impl Server {
    /// Binds the sockets. Queries are answered after [`Self::run`].
    pub async fn bind(settings: Settings) -> Result<Self, Error> {
        let domain = question::domain(&settings.domain)
            .map_err(|error| Error::Domain(settings.domain.clone(), error))?;
        let sockets = serve::Sockets::bind(settings.listen)
            .await
            .map_err(|source| Error::Listen {
                address: settings.listen,
                source,
            })?;
        let upstreams = upstreams::without_self(&settings.upstreams, sockets.address());
        let mut recursion_for = settings.recursion_for;
        let own = sockets.address().ip();
        if !own.is_unspecified() {
            recursion_for.push(own.into());
        }
        Ok(Self {
            sockets: Arc::new(sockets),
            resolver: Arc::new(Resolver::new(domain, upstreams, recursion_for)),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.sockets.address()
    }

    /// Answers until `stop` is cancelled. Keeps its names for another run.
    pub async fn run(self, client: Client, stop: CancellationToken) -> Result<(), Error> {
        tracing::info!(
            "serving DNS for {} at {}",
            self.resolver.domain(),
            self.address()
        );
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            ended = watch::run(client.clone(), &self.resolver.zone) => Ok(ended?),
            ended = self.resolver.sources.run(client) => match ended? {},
            () = serve::udp(&self.sockets, &self.resolver) => Ok(()),
            () = serve::tcp(&self.sockets, &self.resolver) => Ok(()),
        }
    }
}

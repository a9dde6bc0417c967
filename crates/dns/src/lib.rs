//! Names for daemons: a small DNS server that answers for the services of a cluster, and for the daemon of
//! one node, and forwards the rest.
//!
//! ```text
//!   API ──watch──▶ watch ─▶ zone            what names there are, in memory
//!                             ▲
//!   UDP, TCP ─▶ serve ─▶ question ─▶ answer ─▶ reply ─▶ UDP, TCP
//!                             └▶ forward ─▶ other resolvers
//! ```
//!
//! It is a client of any Kubernetes API: it must never import the server or the store. While the API is away
//! it answers from memory.

mod answer;
mod forward;
mod question;
mod reply;
mod resolvers;
mod serve;
mod watch;
mod zone;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;
use tokio_util::sync::CancellationToken;

pub use resolvers::of_this_machine;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 chooses a free one.
    pub listen: SocketAddr,
    /// The domain that the cluster's names are below.
    pub domain: String,
    /// Who is asked for all other names, in this order.
    pub upstreams: Vec<SocketAddr>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot serve names at {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The domain is none.
    #[error("{0:?} is not a domain: {1}")]
    Domain(String, String),
    /// A watch that never ends has ended.
    #[error(transparent)]
    Watch(#[from] kennel_client::Error),
}

/// A server of names, which has its address.
#[derive(Clone)]
pub struct Server {
    sockets: Arc<serve::Sockets>,
    state: Arc<answer::State>,
}

impl Server {
    /// Begins to listen. Nothing is answered until [`Self::run`].
    pub async fn bind(settings: Settings) -> Result<Self, Error> {
        let domain = question::domain(&settings.domain)
            .map_err(|why| Error::Domain(settings.domain.clone(), why))?;
        let sockets = serve::Sockets::bind(settings.listen)
            .await
            .map_err(|source| Error::Listen {
                address: settings.listen,
                source,
            })?;
        let upstreams = resolvers::but_us(&settings.upstreams, sockets.address());
        Ok(Self {
            sockets: Arc::new(sockets),
            state: Arc::new(answer::State::new(domain, upstreams)),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.sockets.address()
    }

    /// Answers until told to stop. What it knew, it knows when it is run again.
    pub async fn run(self, client: Client, stop: CancellationToken) -> Result<(), Error> {
        tracing::info!("names below {} at {}", self.state.domain(), self.address());
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            ended = watch::run(client, &self.state.zone) => Ok(ended?),
            () = serve::udp(&self.sockets, &self.state) => Ok(()),
            () = serve::tcp(&self.sockets, &self.state) => Ok(()),
        }
    }
}

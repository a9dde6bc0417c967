//! Where the packets of services go, on one node: the rules of a service proxy, without a kernel.
//!
//! ```text
//!   Service, EndpointSlice changed or gone ─▶ table ─▶ services whose routes changed ─▶ routes of each
//!                                              └ endpoints (ready, on this node, hints) ─▶ select
//! ```
//!
//! A change costs its own service, whatever the cluster has.

mod read;
mod select;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub use table::ServiceTable;

/// Upstream's default of `sessionAffinityConfig.clientIP.timeoutSeconds`.
const AFFINITY_TIMEOUT: Duration = Duration::from_hours(3);

/// The namespace and name of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl ServiceName {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// `namespace/name`.
impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Protocols of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// Its number in IP headers.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// As chains are named.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// `None` for a protocol that Kubernetes does not define. Empty is TCP.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "TCP" | "" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            "SCTP" => Some(Self::Sctp),
            _ => None,
        }
    }
}

/// What packets are addressed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    pub scope: Scope,
    pub protocol: Protocol,
    pub port: u16,
}

/// The addresses of a [`Destination`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    ClusterIp(IpAddr),
    /// The node's addresses, for packets from anywhere.
    NodePort,
    /// The node's addresses, for packets of the node itself, where they go elsewhere than others: they count as internal
    /// traffic, whatever `externalTrafficPolicy` says.
    NodePortFromHost,
}

/// Where packets to a [`Destination`] go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub destination: Destination,
    pub action: Action,
    /// How long a client stays with its endpoint after its last connection, if it does.
    pub affinity: Option<Duration>,
    /// The endpoint sees an address of this node, so that its answers come back here.
    pub masquerade: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// To one of these, at random. Sorted, never empty.
    Forward(Vec<Backend>),
    /// There are no endpoints.
    Refuse,
    /// There are endpoints, but none that the traffic policy allows.
    Drop,
}

/// An endpoint that gets packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backend {
    pub address: IpAddr,
    pub port: u16,
    /// It may be on this node, so that its own packets may lead back to it.
    pub may_be_here: bool,
}

/// What `healthCheckNodePort` of a Service answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    pub port: u16,
    /// Ready endpoints on this node.
    pub local_endpoints: usize,
}

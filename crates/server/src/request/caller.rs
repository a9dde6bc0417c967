//! The connection of a request: its address, and its client certificate if it has one.

use std::net::SocketAddr;
use std::sync::Arc;

use kennel_types::Timestamp;

use super::User;

/// The client end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub identity: ConnectionIdentity,
    /// `None` for clients in this process.
    pub address: Option<SocketAddr>,
}

/// A client certificate of this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The user it names.
    pub user: User,
    pub issued: Timestamp,
    pub expires: Timestamp,
    /// The id of the key that signed it; empty if it does not tell.
    pub issuer_key: Vec<u8>,
}

/// What a connection proves about its client.
#[derive(Clone, Debug, Default)]
pub enum ConnectionIdentity {
    #[default]
    Anonymous,
    /// A certificate that is not valid: of another CA, expired, or for another purpose.
    InvalidCertificate,
    /// A certificate that was valid at the handshake.
    Certificate(Arc<ClientCertificate>),
    /// A client in this process, and the user it acts as.
    InProcess(Box<User>),
}

impl Caller {
    pub fn remote(address: SocketAddr, identity: ConnectionIdentity) -> Self {
        Self {
            identity,
            address: Some(address),
        }
    }
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            identity: ConnectionIdentity::InProcess(Box::new(user)),
            address: None,
        }
    }
}

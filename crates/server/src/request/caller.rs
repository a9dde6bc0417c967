//! Where a request comes from, and what its connection already proves about the sender.

use std::net::SocketAddr;

use super::User;

/// The other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Whom the connection names: by a client certificate, or because the client is part of this process.
    pub user: Option<User>,
    /// Where it comes from; `None` from within this process.
    pub address: Option<SocketAddr>,
}

impl Caller {
    /// A client at an address, which may have shown a certificate.
    pub fn outside(address: SocketAddr, certificate: Option<User>) -> Self {
        Self {
            user: certificate,
            address: Some(address),
        }
    }
}

/// A client in this process is whom we say it is.
impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            user: Some(user),
            address: None,
        }
    }
}

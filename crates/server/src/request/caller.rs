//! The connection of a request: its address, and its client certificate if it has one.

use std::net::SocketAddr;

use super::User;

/// The client end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub shown: Shown,
    /// `None` for clients in this process.
    pub address: Option<SocketAddr>,
}

/// What a connection proves about its client.
#[derive(Clone, Debug, Default)]
pub enum Shown {
    #[default]
    Nothing,
    /// A certificate that is not valid: of another CA, expired, or for another purpose.
    BadCertificate,
    /// A valid certificate: the user it names, and when it expires (in seconds since 1970).
    Certificate(Box<User>, i64),
    /// A client in this process, and the user it acts as.
    Inside(Box<User>),
}

impl Caller {
    pub fn outside(address: SocketAddr, shown: Shown) -> Self {
        Self {
            shown,
            address: Some(address),
        }
    }
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            shown: Shown::Inside(Box::new(user)),
            address: None,
        }
    }
}

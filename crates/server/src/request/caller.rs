//! Where a request comes from, and what its connection already proves about the sender.

use std::net::SocketAddr;

use super::User;

/// The other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// What the connection proves.
    pub shown: Shown,
    /// Where it comes from; `None` from within this process.
    pub address: Option<SocketAddr>,
}

/// What a connection says about the one at its other end.
#[derive(Clone, Debug, Default)]
pub enum Shown {
    /// Nothing.
    #[default]
    Nothing,
    /// A certificate that proves nothing: of another CA, out of its time, or for other purposes.
    BadCertificate,
    /// A certificate that holds, whom it names, and when it ends (in seconds since 1970).
    Certificate(Box<User>, i64),
    /// That it is part of this process, and whom we call it.
    Inside(Box<User>),
}

impl Caller {
    /// A client at an address, which may have shown a certificate.
    pub fn outside(address: SocketAddr, shown: Shown) -> Self {
        Self {
            shown,
            address: Some(address),
        }
    }
}

/// A client in this process is whom we say it is.
impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            shown: Shown::Inside(Box::new(user)),
            address: None,
        }
    }
}

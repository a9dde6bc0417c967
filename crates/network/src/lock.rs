//! One agent per network namespace. The lock is an abstract socket, which belongs to the namespace and goes with its process,
//! however that ends.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::Error;

const NAME: &str = "kennel-pod-network";

/// Held while it exists.
#[derive(Debug)]
pub struct Lock {
    _socket: UnixListener,
}

impl Lock {
    pub fn take() -> Result<Self, Error> {
        let bound =
            SocketAddr::from_abstract_name(NAME).and_then(|at| UnixListener::bind_addr(&at));
        match bound {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(Error::Locked),
            Err(error) => Err(Error::Kernel {
                what: "lock the pod network".to_owned(),
                error,
            }),
        }
    }
}

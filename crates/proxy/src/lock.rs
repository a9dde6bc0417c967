//! One proxy per network namespace: two would undo each other's changes.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// An abstract name, which the kernel keeps per network namespace and frees when its process ends, however it ends.
const NAME: &str = "kennel-services";

/// Why this process may not route services.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another agent routes services in this network namespace: stop it, or start this one with --proxy=none"
    )]
    Taken,
    #[error("cannot make sure that no other agent routes services in this network namespace: {0}")]
    Failed(io::Error),
}

/// The right to change our table, in the network namespace of the thread that took it.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held until it is dropped")] UnixListener);

impl Lock {
    pub fn take() -> Result<Self, LockError> {
        let name = SocketAddr::from_abstract_name(NAME).map_err(LockError::Failed)?;
        match UnixListener::bind_addr(&name) {
            Ok(listener) => Ok(Self(listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(LockError::Taken),
            Err(error) => Err(LockError::Failed(error)),
        }
    }
}

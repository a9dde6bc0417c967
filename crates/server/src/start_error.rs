//! Why a server could not start: from the store up to the listener.

use std::net::SocketAddr;
use std::path::PathBuf;

use kennel_store::OpenError;

use crate::audit;
use crate::authenticate::TokenFileError;
use crate::certificates::CertificatesError;
use crate::seal::KeyFileError;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot open the store")]
    Store(#[from] OpenError),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot prepare certificates")]
    Certificates(#[from] CertificatesError),
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    #[error(transparent)]
    Audit(#[from] audit::OpenError),
    #[error("cannot write the first objects: {0}")]
    Bootstrap(String),
    #[error("a restore into {} was interrupted; repeat `kennel restore`", .0.display())]
    HalfRestored(PathBuf),
}

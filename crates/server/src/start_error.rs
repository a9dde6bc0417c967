//! Why a server could not start: from the store up to the listener.

use std::net::SocketAddr;
use std::path::PathBuf;

use kennel_store::{Endpoints, EtcdError, OpenError};

use crate::audit;
use crate::authenticate::TokenFileError;
use crate::certificates::CertificatesError;
use crate::seal::KeyFileError;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot open the store")]
    Store(#[from] OpenError),
    #[error("cannot use the store {0}")]
    Etcd(Endpoints, #[source] EtcdError),
    #[error(
        "the objects of {} are in {store}, not in the directory: start the server with --store {store}",
        dir.display()
    )]
    ObjectsInEtcd { dir: PathBuf, store: String },
    #[error(
        "{} has the objects of a server without --store; nothing moves them to etcd by itself. Use another data \
         directory for the server on etcd",
        .0.display()
    )]
    ObjectsInDirectory(PathBuf),
    #[error(
        "the store {store} has the objects of a cluster, but {} has not its certificate authority and keys: copy the \
         directory pki of its server there",
        dir.display()
    )]
    NoAuthority { dir: PathBuf, store: String },
    #[error("cannot read the password in {}", path.display())]
    PasswordFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "the password in {} can be read by others than its owner (mode {mode:03o}); run chmod 600",
        path.display()
    )]
    PublicPassword { path: PathBuf, mode: u32 },
    #[error("cannot write {}", path.display())]
    WriteFile {
        path: PathBuf,
        source: std::io::Error,
    },
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

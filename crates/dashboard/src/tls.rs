//! The certificate and key of a dashboard that other machines reach.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::TlsAcceptor;

/// Files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those of its issuers.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has no certificate in PEM", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} cannot be used", path.display())]
    Pem {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("the certificate and the key cannot be used")]
    Pair(#[source] rustls::Error),
}

/// Returns the first certificate, too.
pub(crate) fn load(files: &TlsFiles) -> Result<(TlsAcceptor, CertificateDer<'static>), TlsError> {
    let chain = read(&files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(unusable(&files.certificate))?;
    let Some(first) = chain.first().cloned() else {
        let path = files.certificate.clone();
        return Err(TlsError::NoCertificate { path });
    };
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?);
    let key = key.map_err(unusable(&files.key))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    Ok((TlsAcceptor::from(Arc::new(config)), first))
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| {
        let path = path.to_owned();
        TlsError::Read { path, source }
    })
}

fn unusable(path: &std::path::Path) -> impl FnOnce(pem::Error) -> TlsError {
    let path = path.to_owned();
    |source| TlsError::Pem { path, source }
}

//! TLS: our certificate, and whose certificate the client shows.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::pki::Pki;
use crate::request::User;

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate or key could not be read.
    #[error("a certificate or key in the data directory cannot be read")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The library refused them.
    #[error("TLS refused the certificates in the data directory")]
    Tls(#[from] rustls::Error),
    /// The library refused the CA.
    #[error("TLS refused the certificate authority in the data directory")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The server's TLS settings: clients may show a certificate of our CA; nobody must.
pub fn config(pki: &Pki) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.ca_pem.as_bytes())?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    // The CA goes along, so that a joining node can check it by its hash.
    let chain = vec![
        CertificateDer::from_pem_slice(pki.server_cert_pem.as_bytes())?,
        CertificateDer::from_pem_slice(pki.ca_pem.as_bytes())?,
    ];
    let key = PrivateKeyDer::from_pem_slice(pki.server_key_pem.as_bytes())?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The user a verified client certificate names: common name and organisations.
pub fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let organisations = subject.iter_organization();
    let groups = organisations.filter_map(|o| o.as_str().ok());
    let groups = groups.map(str::to_owned).collect();
    Some(User::authenticated(name, groups))
}

//! The TLS configuration of the node's own server, whose certificate can be replaced while it serves.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use super::{Certificate, IdentityError, unusable};

/// Empty at first: until it has a certificate, TLS handshakes fail.
#[derive(Debug, Default)]
pub struct CertificateResolver(RwLock<Option<Arc<CertifiedKey>>>);

impl CertificateResolver {
    /// New connections use this certificate.
    pub fn set(&self, certificate: &Certificate) -> Result<(), IdentityError> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let key = provider.key_provider.load_private_key(certificate.key()?);
        let certified = CertifiedKey::new(
            certificate.chain(),
            key.map_err(unusable("the serving certificate"))?,
        );
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// Whether it has a certificate.
    pub fn is_set(&self) -> bool {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.is_some()
    }

    /// The configuration of a server that uses it. Client certificates of these authorities are optional.
    pub fn server_config(
        self: &Arc<Self>,
        authorities: &[CertificateDer<'static>],
    ) -> Result<Arc<ServerConfig>, IdentityError> {
        const WHAT: &str = "the cluster's certificate authority";
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable(WHAT))?;
        let builder = if authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority.clone()).map_err(unusable(WHAT))?;
            }
            let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(unusable(WHAT))?;
            builder.with_client_cert_verifier(clients)
        };
        let mut config = builder.with_cert_resolver(Arc::clone(self) as _);
        // Exec and port-forward upgrade connections, which HTTP/2 cannot.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

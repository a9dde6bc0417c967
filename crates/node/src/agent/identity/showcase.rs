//! The certificate that the node's own server shows, which may change while it serves.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use super::{IdentityError, Pair};

/// See the [module](self). Empty at first: until there is a certificate, nobody can connect.
#[derive(Debug, Default)]
pub struct Showcase(RwLock<Option<Arc<CertifiedKey>>>);

impl Showcase {
    /// From now on, this one is shown.
    pub fn show(&self, pair: &Pair) -> Result<(), IdentityError> {
        let unusable = |error: rustls::Error| IdentityError::Unusable {
            what: "the serving certificate".to_owned(),
            why: error.to_string(),
        };
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let key = provider.key_provider.load_private_key(pair.key()?);
        let certified = CertifiedKey::new(pair.chain(), key.map_err(unusable)?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// The settings of a server that shows it. Clients may show a certificate of one of these authorities; nobody
    /// must.
    pub fn server(
        self: Arc<Self>,
        authorities: &[CertificateDer<'static>],
    ) -> Result<Arc<ServerConfig>, IdentityError> {
        let unusable = |why: String| IdentityError::Unusable {
            what: "the cluster's certificate authority".to_owned(),
            why,
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?;
        let builder = if authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                let added = roots.add(authority.clone());
                added.map_err(|error| unusable(error.to_string()))?;
            }
            let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| unusable(error.to_string()))?;
            builder.with_client_cert_verifier(clients)
        };
        let mut config = builder.with_cert_resolver(self);
        // Exec and port-forward take connections over, which HTTP/2 has no way for.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Showcase {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

//! The way to the API, which stays while the certificate that is shown there changes.

use std::sync::{Arc, PoisonError, RwLock};

use http::Request;
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::{IdentityError, Pair};

/// What is shown at the door.
#[derive(Debug)]
pub enum Shown<'a> {
    /// A node's certificate.
    Pair(&'a Pair),
    /// A token.
    Token(&'a str),
}

/// See the [module](self).
#[derive(Clone)]
pub struct Door {
    server: String,
    ca_pem: String,
    current: Arc<RwLock<Client>>,
}

impl Door {
    /// To the server at this URL, which has a certificate of this authority.
    pub fn new(server: &str, ca_pem: &str, shown: &Shown<'_>) -> Result<Self, IdentityError> {
        let client = plain_client(server, ca_pem, shown)?;
        Ok(Self {
            server: server.to_owned(),
            ca_pem: ca_pem.to_owned(),
            current: Arc::new(RwLock::new(client)),
        })
    }

    /// From now on, this certificate is shown. What is under way ends with the one it began with.
    pub fn show(&self, pair: &Pair) -> Result<(), IdentityError> {
        let client = plain_client(&self.server, &self.ca_pem, &Shown::Pair(pair))?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }

    /// A client that always shows the newest certificate.
    pub fn client(&self) -> Client {
        let current = Arc::clone(&self.current);
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = current.read().unwrap_or_else(PoisonError::into_inner);
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(service, "default")
    }
}

/// A client that shows this and nothing else.
pub(super) fn plain_client(
    server: &str,
    ca_pem: &str,
    shown: &Shown<'_>,
) -> Result<Client, IdentityError> {
    let unusable = |why: String| IdentityError::Unusable {
        what: format!("the way to {server}"),
        why,
    };
    let url = server.parse::<http::Uri>();
    let mut config = Config::new(url.map_err(|error| unusable(error.to_string()))?);
    let roots = CertificateDer::pem_slice_iter(ca_pem.as_bytes());
    let roots: Result<Vec<_>, _> = roots.map(|der| der.map(|der| der.to_vec())).collect();
    config.root_cert = Some(roots.map_err(|error| unusable(error.to_string()))?);
    // Repeating a write whose answer got lost is ours to decide: it may have been carried out.
    config.default_retry = false;
    config.auth_info = auth(shown);
    Client::try_from(config).map_err(|error| unusable(error.to_string()))
}

fn auth(shown: &Shown<'_>) -> AuthInfo {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    match shown {
        Shown::Token(token) => AuthInfo {
            token: Some((*token).to_owned().into()),
            ..AuthInfo::default()
        },
        Shown::Pair(pair) => AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&pair.chain_pem)),
            client_key_data: Some(STANDARD.encode(&pair.key_pem).into()),
            ..AuthInfo::default()
        },
    }
}

//! A client of the API whose certificate can be replaced while it is in use.

use std::sync::{Arc, PoisonError, RwLock};

use http::Request;
use kennel_client::connection::{self, Origin};
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::{Certificate, IdentityError, unusable};

#[derive(Debug)]
pub enum Credentials<'a> {
    Certificate(&'a Certificate),
    Token(&'a str),
}

#[derive(Clone)]
pub struct RotatingClient {
    server: String,
    ca_pem: String,
    current: Arc<RwLock<Client>>,
}

impl RotatingClient {
    pub fn new(
        server: &str,
        ca_pem: &str,
        credentials: &Credentials<'_>,
    ) -> Result<Self, IdentityError> {
        let client = fixed_client(server, ca_pem, credentials)?;
        Ok(Self {
            server: server.to_owned(),
            ca_pem: ca_pem.to_owned(),
            current: Arc::new(RwLock::new(client)),
        })
    }

    /// New requests use this certificate; requests in flight keep theirs.
    pub fn set_certificate(&self, certificate: &Certificate) -> Result<(), IdentityError> {
        let credentials = Credentials::Certificate(certificate);
        let client = fixed_client(&self.server, &self.ca_pem, &credentials)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }

    /// A client that always uses the newest certificate.
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

/// A client whose credentials do not change.
pub(super) fn fixed_client(
    server: &str,
    ca_pem: &str,
    credentials: &Credentials<'_>,
) -> Result<Client, IdentityError> {
    let what = format!("cannot make a client of {server}");
    let url = server.parse::<http::Uri>();
    let mut config = Config::new(url.map_err(unusable(&what))?);
    let roots = CertificateDer::pem_slice_iter(ca_pem.as_bytes());
    let roots: Result<Vec<_>, _> = roots.map(|der| der.map(|der| der.to_vec())).collect();
    config.root_cert = Some(roots.map_err(unusable(&what))?);
    config.auth_info = auth_info(credentials);
    connection::client(config, Origin::Joined).map_err(unusable(&what))
}

fn auth_info(credentials: &Credentials<'_>) -> AuthInfo {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    match credentials {
        Credentials::Token(token) => AuthInfo {
            token: Some((*token).to_owned().into()),
            ..AuthInfo::default()
        },
        Credentials::Certificate(certificate) => AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&certificate.chain_pem)),
            client_key_data: Some(STANDARD.encode(&certificate.key_pem).into()),
            ..AuthInfo::default()
        },
    }
}

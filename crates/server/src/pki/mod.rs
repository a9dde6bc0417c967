//! Certificates and keys: the CA, created at first start, the serving certificate, the administrator's
//! certificate and kubeconfig, the client certificate for the kubelet API, and the keys of service-account
//! tokens.
//!
//! The files are in `pki/` in the data directory; private ones have mode 0600.

pub mod files;
pub mod issue;
pub mod keys;
pub mod kubeconfig;
pub mod token;

use std::net::IpAddr;
use std::path::Path;

use files::PkiError;
use issue::Authority;

/// The common name of the administrator's certificate.
pub const ADMIN: &str = "kennel-admin";
/// The common name of the client certificate for the kubelet API, as upstream.
pub const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";

pub struct Pki {
    pub ca_pem: String,
    pub ca_key_pem: String,
    pub server_cert_pem: String,
    pub server_key_pem: String,
    pub admin_cert_pem: String,
    pub admin_key_pem: String,
    /// For the kubelet API of the agents.
    pub kubelet_client_cert_pem: String,
    pub kubelet_client_key_pem: String,
    pub tokens: keys::TokenKeys,
}

impl Pki {
    /// Opens the files of a data directory, and issues those that are missing or about to expire. The key
    /// that signs tokens is rotated when it is `token_key_days` old.
    pub fn open(
        data_dir: &Path,
        names: &[String],
        addresses: &[IpAddr],
        token_key_days: u32,
    ) -> Result<Self, PkiError> {
        let dir = data_dir.join(crate::data_dir::PKI);
        files::make_dir(&dir)?;
        let authority = Authority::open(&dir)?;
        let server = authority.server(&dir, names, addresses)?;
        let admin = authority.client(&dir, "admin", ADMIN, Some("system:masters"))?;
        let file = "apiserver-kubelet-client";
        let kubelet_client = authority.client(&dir, file, KUBELET_CLIENT, None)?;
        Ok(Self {
            ca_pem: authority.cert_pem,
            ca_key_pem: authority.key_pem,
            server_cert_pem: server.0,
            server_key_pem: server.1,
            admin_cert_pem: admin.0,
            admin_key_pem: admin.1,
            kubelet_client_cert_pem: kubelet_client.0,
            kubelet_client_key_pem: kubelet_client.1,
            tokens: keys::TokenKeys::open(&dir, token_key_days)?,
        })
    }
}

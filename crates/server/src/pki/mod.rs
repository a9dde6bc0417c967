//! Certificates and keys: a CA made at first start, a serving certificate, an administrator's
//! certificate and kubeconfig, the certificate that the server shows to agents, and the keys of service-account tokens.
//!
//! Everything lives below `pki/` in the data directory; private files have mode 0600.

pub mod files;
pub mod issue;
pub mod keys;
pub mod kubeconfig;
pub mod token;

use std::net::IpAddr;
use std::path::Path;

use files::PkiError;
use issue::Authority;

/// The name in the administrator's certificate.
pub const ADMIN: &str = "kennel-admin";
/// The name in the certificate that the server shows to agents: upstream's.
pub const AGENTS_CLIENT: &str = "kube-apiserver-kubelet-client";

/// The certificates a server runs with.
pub struct Pki {
    /// The CA's certificate.
    pub ca_pem: String,
    /// The CA's key.
    pub ca_key_pem: String,
    /// The serving certificate.
    pub server_cert_pem: String,
    /// The serving key.
    pub server_key_pem: String,
    /// The administrator's certificate.
    pub admin_cert_pem: String,
    /// The administrator's key.
    pub admin_key_pem: String,
    /// The certificate that the server shows to agents.
    pub agents_cert_pem: String,
    /// Its key.
    pub agents_key_pem: String,
    /// The keys of service-account tokens.
    pub tokens: keys::TokenKeys,
}

impl Pki {
    /// Opens the certificates of a data directory, making what is missing or about to expire. The key
    /// that signs tokens is replaced when it is `token_key_days` old.
    pub fn open(
        data_dir: &Path,
        names: &[String],
        addresses: &[IpAddr],
        token_key_days: u32,
    ) -> Result<Self, PkiError> {
        let dir = data_dir.join("pki");
        files::make_dir(&dir)?;
        let authority = Authority::open(&dir)?;
        let server = authority.server(&dir, names, addresses)?;
        let admin = authority.client(&dir, "admin", ADMIN, Some("system:masters"))?;
        let file = "apiserver-kubelet-client";
        let agents = authority.client(&dir, file, AGENTS_CLIENT, None)?;
        Ok(Self {
            ca_pem: authority.cert_pem,
            ca_key_pem: authority.key_pem,
            server_cert_pem: server.0,
            server_key_pem: server.1,
            admin_cert_pem: admin.0,
            admin_key_pem: admin.1,
            agents_cert_pem: agents.0,
            agents_key_pem: agents.1,
            tokens: keys::TokenKeys::open(&dir, token_key_days)?,
        })
    }
}

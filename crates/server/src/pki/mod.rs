//! Certificates and keys: the CA, created at first start, the serving certificate, the administrator's
//! certificate and kubeconfig, the client certificate for the kubelet API, and the keys of service-account
//! tokens.
//!
//! The files are in `pki/` in the data directory; private ones have mode 0600. [`crate::certificates`] opens them
//! again and again while the server runs, which renews those that expire soon.

pub mod authority;
pub mod clock;
pub mod files;
pub mod inspect;
pub mod issue;
pub mod keys;
pub mod kubeconfig;
pub mod token;

use std::net::IpAddr;
use std::path::PathBuf;

use kennel_types::Timestamp;

pub use authority::Authority;
pub use clock::Clock;
use files::PkiError;

/// The common name of the administrator's certificate.
pub const ADMIN: &str = "kennel-admin";
/// The common name of the client certificate for the kubelet API, as upstream.
pub const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";

/// The names of the authority that signs, and of the last one before it; those of others have a number.
pub const AUTHORITY: &str = "ca";
pub const PREVIOUS_AUTHORITY: &str = "ca-previous";
/// The file names of the certificates, which users name them by.
pub const SERVER_FILE: &str = "server";
pub const ADMIN_FILE: &str = "admin";
pub const KUBELET_CLIENT_FILE: &str = "apiserver-kubelet-client";
/// The name of the key that signs service-account tokens.
pub const TOKEN_KEY: &str = "service-account";

/// What to open.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of certificates.
    pub dir: PathBuf,
    /// The names of the serving certificate.
    pub names: Vec<String>,
    /// The addresses of the serving certificate.
    pub addresses: Vec<IpAddr>,
    /// The key that signs tokens is rotated when it is this old.
    pub token_key_days: u32,
    pub clock: Clock,
}

/// What to renew even if it is valid.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    /// Names of certificates and keys.
    pub names: &'a [&'a str],
    /// New certificates count as issued at this time, if it is later than now.
    pub issue_at: Timestamp,
}

impl Renewal<'_> {
    /// Only what is missing or expires soon.
    pub const DUE: Self = Self {
        names: &[],
        issue_at: Timestamp::MIN,
    };
}

pub struct Pki {
    pub authority: Authority,
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
    /// Opens the files of a data directory, and issues those that are missing or about to expire.
    pub fn open(options: &Options, renewal: Renewal<'_>) -> Result<Self, PkiError> {
        let Options { dir, clock, .. } = options;
        files::make_dir(dir)?;
        let authority = Authority::open(dir, clock)?;
        let issue = issue::Files {
            renew: renewal.names,
            issue_at: renewal.issue_at,
            ..issue::Files::new(&authority, dir, clock.now())
        };
        let server = issue.server(SERVER_FILE, &options.names, &options.addresses)?;
        let admin = issue.client(ADMIN_FILE, ADMIN, Some("system:masters"))?;
        let kubelet_client = issue.client_of_nodes(KUBELET_CLIENT_FILE, KUBELET_CLIENT)?;
        let token_key_days = if renewal.names.contains(&TOKEN_KEY) {
            0
        } else {
            options.token_key_days
        };
        Ok(Self {
            server_cert_pem: server.0,
            server_key_pem: server.1,
            admin_cert_pem: admin.0,
            admin_key_pem: admin.1,
            kubelet_client_cert_pem: kubelet_client.0,
            kubelet_client_key_pem: kubelet_client.1,
            tokens: keys::TokenKeys::open(dir, token_key_days, clock)?,
            authority,
        })
    }

    /// The certificates with their names.
    pub fn certificates(&self) -> Vec<(String, &str)> {
        let mut all = vec![(AUTHORITY.to_owned(), self.authority.cert_pem.as_str())];
        for (number, pem) in self.authority.previous.iter().enumerate() {
            let name = match number {
                0 => PREVIOUS_AUTHORITY.to_owned(),
                number => format!("{PREVIOUS_AUTHORITY}-{}", number + 1),
            };
            all.push((name, pem));
        }
        all.extend([
            (SERVER_FILE.to_owned(), self.server_cert_pem.as_str()),
            (ADMIN_FILE.to_owned(), self.admin_cert_pem.as_str()),
            (
                KUBELET_CLIENT_FILE.to_owned(),
                self.kubelet_client_cert_pem.as_str(),
            ),
        ]);
        all
    }
}

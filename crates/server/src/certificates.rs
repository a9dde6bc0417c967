//! The certificates of a running server: opens them, renews those that expire soon, and replaces them in everything
//! that uses them, without a restart.
//!
//! ```text
//!   pki (files) ─▶ Certificates ─┬▶ tls         new connections
//!                                ├▶ agents      new requests to agents
//!                                ├▶ tokens      sign and verify service-account tokens
//!                                ├▶ authority   the signer, the node in this process
//!                                └▶ bundle      what clients trust: kubeconfig, config maps
//! ```

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kennel_core::certificates::revocation;
use kennel_types::Timestamp;

use crate::agent_client::AgentClient;
use crate::etcd_certificates::{self, EtcdTls};
pub use crate::listed::Listed;
use crate::live::Live;
use crate::pki::files::{self, PkiError};
use crate::pki::keys::{DAYS_DEFAULT, TokenKeys};
use crate::pki::{
    ADMIN, ADMIN_FILE, Authority, KUBELET_CLIENT_FILE, Options, Pki, Renewal, SERVER_FILE,
    TOKEN_KEY, kubeconfig,
};
use crate::tls::{Tls, TlsError};

/// What can be renewed by name.
pub const RENEWABLE: [&str; 4] = [SERVER_FILE, ADMIN_FILE, KUBELET_CLIENT_FILE, TOKEN_KEY];

#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("there is no certificate {name:?}: the names are {}", RENEWABLE.join(", "))]
    UnknownName { name: String },
    #[error("no earlier certificate authority is trusted")]
    NothingToRetire,
}

/// The certificate authority, as PEM, for the controller that signs certificates.
#[derive(Debug)]
pub struct AuthorityFiles {
    pub cert_pem: String,
    pub key_pem: String,
    /// The serving certificate.
    pub server_cert_pem: String,
}

/// Where to write the administrator's kubeconfig.
#[derive(Clone, Debug)]
pub struct KubeconfigFile {
    pub path: PathBuf,
    /// The server's URL.
    pub server: String,
}

pub struct Certificates {
    options: Options,
    /// The files of TLS to etcd, which are others'.
    etcd: Option<EtcdTls>,
    kubeconfig: Option<KubeconfigFile>,
    pub(crate) tls: Tls,
    pub(crate) agents: AgentClient,
    pub(crate) tokens: Live<TokenKeys>,
    pub authority: Live<AuthorityFiles>,
    /// What clients trust, as PEM; the authority that signs is first.
    pub bundle: Live<String>,
    listed: Live<Vec<Listed>>,
    /// What is in use. Locked while it is replaced.
    installed: Mutex<String>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificates")
    }
}

impl Certificates {
    pub fn open(
        options: Options,
        kubeconfig: Option<KubeconfigFile>,
    ) -> Result<Self, CertificatesError> {
        let pki = Pki::open(&options, Renewal::DUE)?;
        if let Some(file) = &kubeconfig {
            write_kubeconfig(file, &pki)?;
        }
        Ok(Self {
            tls: Tls::new(&pki, options.clock.clone())?,
            agents: AgentClient::new(&pki)?,
            authority: Live::new(authority_files(&pki)),
            bundle: Live::new(pki.authority.bundle()),
            listed: Live::new(listed(&pki)),
            installed: Mutex::new(identity(&pki)),
            tokens: Live::new(pki.tokens),
            options: Options {
                // Zero rotates the key at every start, not at every check.
                token_key_days: match options.token_key_days {
                    0 => DAYS_DEFAULT,
                    days => days,
                },
                ..options
            },
            kubeconfig,
            etcd: None,
        })
    }

    /// Lists the certificates of TLS to etcd, too.
    pub(crate) fn with_etcd(self, etcd: Option<EtcdTls>) -> Self {
        Self { etcd, ..self }
    }

    pub fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// All certificates, and whether they end soon.
    pub fn list(&self) -> Vec<Listed> {
        let now = self.now();
        let own = self.listed.get();
        let own = own.iter().cloned();
        let of_etcd = self.etcd.iter().flat_map(etcd_certificates::read);
        own.chain(of_etcd).map(|one| one.at(now)).collect()
    }

    /// Which files of TLS to etcd cannot be used.
    pub(crate) fn problems(&self) -> Vec<String> {
        let of_etcd = self.etcd.iter();
        of_etcd.flat_map(etcd_certificates::problems).collect()
    }

    /// When the oldest trusted authority began; [`Timestamp::MIN`] if none can be read.
    pub(crate) fn oldest_authority(&self) -> Timestamp {
        let listed = self.listed.get();
        let authorities = listed.iter().filter(|one| one.is_authority());
        let begins = authorities.map(|one| one.not_before).min();
        begins.unwrap_or(Timestamp::MIN)
    }

    /// Renews what expires soon. Returns whether anything changed.
    pub fn renew_due(&self) -> Result<bool, CertificatesError> {
        self.reopen(Renewal::DUE)
    }

    /// Renews these certificates, or all if none is named.
    pub fn renew(&self, names: &[String]) -> Result<(), CertificatesError> {
        for name in names {
            if !RENEWABLE.contains(&name.as_str()) {
                return Err(CertificatesError::UnknownName { name: name.clone() });
            }
        }
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        let renewal = Renewal {
            names: if named.is_empty() { &RENEWABLE } else { &named },
            ..Renewal::DUE
        };
        self.reopen(renewal).map(drop)
    }

    /// Issues another certificate to the administrator. Returns when it counts as issued: all earlier ones were before that,
    /// also one of the same second, or from before the clock was set back.
    pub fn reissue_admin(&self) -> Result<Timestamp, CertificatesError> {
        let names = &[ADMIN_FILE];
        let issue_at = revocation::next_cutoff(self.now(), Some(self.admin_issued_at()));
        self.reopen(Renewal { names, issue_at })?;
        Ok(issue_at)
    }

    /// Makes a new certificate authority, which signs from now on. The old one stays trusted.
    pub fn rotate_authority(&self) -> Result<(), CertificatesError> {
        {
            let _one_at_a_time = self
                .installed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let (dir, clock) = (&self.options.dir, &self.options.clock);
            Authority::open(dir, clock)?.replace(dir, clock)?;
        }
        self.reopen(Renewal::DUE).map(drop)
    }

    /// Ends the trust in earlier authorities: certificates that they signed are invalid from now on.
    pub fn retire_authorities(&self) -> Result<(), CertificatesError> {
        {
            let _one_at_a_time = self
                .installed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let dir = &self.options.dir;
            let authority = Authority::open(dir, &self.options.clock)?;
            if authority.previous.is_empty() {
                return Err(CertificatesError::NothingToRetire);
            }
            Authority::retire_previous(dir)?;
        }
        self.reopen(Renewal::DUE).map(drop)
    }

    /// When the administrator's certificate counts as issued: up to a second from now, after a revocation. No later one may
    /// count as issued before it, or the revocation would end it, too.
    fn admin_issued_at(&self) -> Timestamp {
        let listed = self.listed.get();
        let admin = listed.iter().find(|one| one.name == ADMIN_FILE);
        admin.map_or(Renewal::DUE.issue_at, |admin| {
            revocation::issued_at(admin.not_before)
        })
    }

    /// Opens the files again, and puts what has changed into use.
    fn reopen(&self, renewal: Renewal<'_>) -> Result<bool, CertificatesError> {
        let mut installed = self
            .installed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let renewal = Renewal {
            issue_at: renewal.issue_at.max(self.admin_issued_at()),
            ..renewal
        };
        let pki = Pki::open(&self.options, renewal)?;
        let opened = identity(&pki);
        if *installed == opened {
            return Ok(false);
        }
        self.tls.replace(&pki)?;
        self.agents.replace(&pki)?;
        self.authority.set(authority_files(&pki));
        self.bundle.set(pki.authority.bundle());
        self.listed.set(listed(&pki));
        if let Some(file) = &self.kubeconfig {
            write_kubeconfig(file, &pki)?;
        }
        self.tokens.set(pki.tokens);
        *installed = opened;
        tracing::info!("certificates were renewed");
        Ok(true)
    }
}

/// Differs if anything has changed.
fn identity(pki: &Pki) -> String {
    let certificates = pki.certificates();
    let pems = certificates.iter().map(|(_, pem)| *pem);
    pems.chain([pki.tokens.signing_id()]).collect()
}

fn authority_files(pki: &Pki) -> AuthorityFiles {
    AuthorityFiles {
        cert_pem: pki.authority.cert_pem.clone(),
        key_pem: pki.authority.key_pem.clone(),
        server_cert_pem: pki.server_cert_pem.clone(),
    }
}

fn listed(pki: &Pki) -> Vec<Listed> {
    let certificates = pki.certificates().into_iter();
    let row = |(name, pem): (String, &str)| Listed::read(name, pem, None);
    certificates.filter_map(row).collect()
}

fn write_kubeconfig(file: &KubeconfigFile, pki: &Pki) -> Result<(), PkiError> {
    let text = kubeconfig::render(
        &file.server,
        &pki.authority.bundle(),
        ADMIN,
        &pki.admin_cert_pem,
        &pki.admin_key_pem,
    );
    files::write_private(&file.path, &text)
}

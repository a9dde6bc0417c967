//! A server: the backend, certificates, TLS and a listener; starts and stops them in order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use kennel_store::LOCK_FILE;
use kennel_store::{OpenError, Options};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admit::service::Cidr;
use crate::agent_client::AgentClient;
use crate::api::{Api, Settings};
use crate::audit::{self, Audit};
use crate::authenticate::{Credentials, StaticTokens, TokenFileError};
use crate::backend::{self, Backend};
use crate::http::listen;
use crate::limits::Timeouts;
use crate::pki::{ADMIN, Pki, files, kubeconfig};
use crate::seal::{KeyFileError, Keyring};
use crate::tls;

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// Further names and addresses for the serving certificate.
    pub tls_san: Vec<String>,
    /// The range that cluster IPs are allocated from.
    pub service_cidr: Cidr,
    /// A file of static tokens.
    pub token_file: Option<PathBuf>,
    /// How many days old the key that signs service-account tokens may be at start.
    pub token_key_days: u32,
    /// How long an event is kept after it was last written.
    pub event_ttl: Duration,
    pub timeouts: Timeouts,
    pub audit: audit::Options,
    /// A file of keys that secrets are encrypted with at rest.
    pub encryption_key_file: Option<PathBuf>,
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot open the store")]
    Store(#[from] OpenError),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot prepare certificates")]
    Pki(#[from] files::PkiError),
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    #[error("cannot prepare TLS")]
    Tls(#[from] tls::TlsError),
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    #[error(transparent)]
    Audit(#[from] audit::OpenError),
    #[error("cannot write the first objects: {0}")]
    Bootstrap(String),
}

/// The certificate authority, as PEM, for the controller that signs certificates.
pub struct AuthorityFiles {
    pub cert_pem: String,
    pub key_pem: String,
    /// The serving certificate.
    pub server_cert_pem: String,
}

/// A running server.
pub struct Server {
    /// The API, for clients in the same process.
    pub api: Arc<Api>,
    backend: Backend,
    pub address: SocketAddr,
    /// The path of the administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    pub authority: AuthorityFiles,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let static_tokens = config.token_file.as_deref().map(StaticTokens::open);
        let static_tokens = static_tokens.transpose()?;
        let mut options = Options::new(&config.data_dir);
        if let Some(file) = &config.encryption_key_file {
            options.seal = Some(Arc::new(Keyring::read(file)?));
        }
        let store = backend::open_store(options)?;
        let listen_failed = |source| StartError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen)
            .await
            .map_err(listen_failed)?;
        let address = listener.local_addr().map_err(listen_failed)?;
        let (names, addresses) = subject_names(&config, address.ip());
        let pki = Pki::open(&config.data_dir, &names, &addresses, config.token_key_days)?;
        let tls = tls::Tls::new(&pki)?;
        let kubeconfig = write_kubeconfig(&config, address, &pki)?;
        let agents = AgentClient::new(&pki)?;
        let authority = AuthorityFiles {
            cert_pem: pki.ca_pem.clone(),
            key_pem: pki.ca_key_pem,
            server_cert_pem: pki.server_cert_pem,
        };
        let settings = Settings {
            ca_pem: pki.ca_pem,
            address: SocketAddr::new(reachable(address.ip()), address.port()),
            service_cidr: config.service_cidr.clone(),
            audit: Arc::new(Audit::open(&config.audit)?),
            event_ttl: config.event_ttl,
            agents,
        };
        let credentials = Credentials {
            keys: pki.tokens,
            static_tokens,
        };
        let backend = Backend::start(store, credentials, settings).await?;
        let api = Arc::clone(&backend.api);
        let stop = CancellationToken::new();
        let serving = listen::serve(
            listener,
            tls,
            Arc::clone(&api),
            config.timeouts,
            stop.clone(),
        );
        let serving = tokio::spawn(serving);
        Ok(Self {
            api,
            backend,
            address,
            kubeconfig,
            authority,
            stop,
            serving,
        })
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.api.settings.address)
    }

    /// Stops in order: closes the listener, ends watches, finishes writes, closes the store.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::warn!(%error, "the listener task failed");
        }
        self.backend.close().await;
    }
}

/// The subject alternative names of the serving certificate.
fn subject_names(config: &Config, listening: IpAddr) -> (Vec<String>, Vec<IpAddr>) {
    let mut names: Vec<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        IpAddr::V4(config.service_cidr.0.first()),
    ];
    if !listening.is_unspecified() {
        addresses.push(listening);
    }
    if let Ok(host) = rustix::system::uname().nodename().to_str() {
        names.push(host.to_lowercase());
    }
    for san in &config.tls_san {
        match san.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => names.push(san.clone()),
        }
    }
    addresses.dedup();
    (names, addresses)
}

/// The address for clients on this machine; loopback if the server listens on all addresses.
fn reachable(listening: IpAddr) -> IpAddr {
    if listening.is_unspecified() {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        listening
    }
}

fn write_kubeconfig(
    config: &Config,
    address: SocketAddr,
    pki: &Pki,
) -> Result<PathBuf, files::PkiError> {
    let path = config.data_dir.join("admin.kubeconfig");
    let server = format!(
        "https://{}",
        SocketAddr::new(reachable(address.ip()), address.port())
    );
    let text = kubeconfig::render(
        &server,
        &pki.ca_pem,
        ADMIN,
        &pki.admin_cert_pem,
        &pki.admin_key_pem,
    );
    files::write_private(&path, &text)?;
    Ok(path)
}

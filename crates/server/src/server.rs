//! A whole server: store, certificates, API and socket, put together and taken apart in order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kennel_store::{OpenError, Options, SqliteStore};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admit::service::Cidr;
use crate::api::{Api, Settings};
use crate::audit::{self, Audit};
use crate::authenticate::{Credentials, StaticTokens, TokenFileError};
use crate::http::limits::Patience;
use crate::http::{listen, tls};
use crate::inprocess;
use crate::object::Head;
use crate::pki::{ADMIN, Pki, files, kubeconfig};
use crate::seal::{KeyFileError, Keyring};
use crate::verbs::connect::Agents;

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Further names and addresses for the serving certificate.
    pub tls_san: Vec<String>,
    /// Where cluster IPs come from.
    pub service_cidr: Cidr,
    /// Tokens that are good until they are taken out of this file.
    pub token_file: Option<PathBuf>,
    /// How many days old the key that signs service-account tokens may be at start.
    pub token_key_days: u32,
    /// How long an event is kept after it was last written.
    pub event_ttl: Duration,
    /// How long clients are waited for.
    pub patience: Patience,
    /// How to keep the audit log.
    pub audit: audit::Options,
    /// The keys that secrets are encrypted with on disk.
    pub encryption_key_file: Option<PathBuf>,
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be opened.
    #[error("cannot open the store")]
    Store(#[from] OpenError),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What went wrong.
        source: std::io::Error,
    },
    /// Certificates could not be made or read.
    #[error("cannot prepare certificates")]
    Pki(#[from] files::PkiError),
    /// The file of static tokens cannot be used.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// TLS could not be set up.
    #[error("cannot prepare TLS")]
    Tls(#[from] tls::TlsError),
    /// The encryption keys could not be read.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The audit log could not be opened.
    #[error(transparent)]
    Audit(#[from] audit::OpenError),
    /// The objects every cluster has could not be written.
    #[error("cannot write the first objects: {0}")]
    Bootstrap(String),
}

/// What a signer of certificates needs to know of its server, as PEM.
pub struct AuthorityFiles {
    /// The CA's certificate.
    pub cert_pem: String,
    /// The CA's key.
    pub key_pem: String,
    /// The certificate that the server itself shows.
    pub server_cert_pem: String,
}

/// A running server.
pub struct Server {
    /// The API, for clients in the same process.
    pub api: Arc<Api>,
    /// The address it listens on.
    pub address: SocketAddr,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// What certificates are signed with.
    pub authority: AuthorityFiles,
    store: Arc<SqliteStore<Head>>,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts a server.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let static_tokens = config.token_file.as_deref().map(StaticTokens::open);
        let static_tokens = static_tokens.transpose()?;
        let mut options = Options::new(&config.data_dir);
        if let Some(file) = &config.encryption_key_file {
            options.seal = Some(Arc::new(Keyring::read(file)?));
        }
        let store = inprocess::open_store(options)?;
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
        let agents = Agents::new(&pki)?;
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
        let api = inprocess::open_api(&store, credentials, settings).await?;
        let stop = CancellationToken::new();
        let serving = listen::serve(
            listener,
            tls,
            Arc::clone(&api),
            config.patience,
            stop.clone(),
        );
        let serving = tokio::spawn(serving);
        Ok(Self {
            api,
            address,
            kubeconfig,
            authority,
            store,
            stop,
            serving,
        })
    }

    /// The address as a URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.api.settings.address)
    }

    /// Stops in order: no new connections, watches ended, writes finished, store closed.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::warn!(%error, "the listener did not end in order");
        }
        self.store.close().await;
        self.api.settings.audit.close().await;
    }
}

/// The names and addresses the serving certificate is good for.
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

/// A server that listens everywhere is reached at home.
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

//! A server: the backend, certificates, TLS and a listener; starts and stops them in order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
pub use kennel_store::LOCK_FILE;
pub use kennel_store::{Endpoints, EtcdTls};
use kennel_store::{Options, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::advertised::Advertised;
use crate::api::{Api, Exemptions, Settings};
use crate::audit::{self, Audit};
use crate::authenticate::{Credentials, StaticTokens};
use crate::backend::{self, Backend};
use crate::background::Background;
use crate::backup::{self, SecretFile};
use crate::certificate_renewal::{self, CertificateRenewal};
use crate::certificates::{Certificates, KubeconfigFile};
use crate::data_dir::DataDirLock;
use crate::etcd_store;
pub use crate::etcd_store::EtcdConfig;
use crate::health::Accepting;
use crate::http::listen::{self, Clients};
use crate::kinds::service::Cidr;
use crate::limits::Timeouts;
use crate::object::Head;
use crate::pki::{self, Clock};
use crate::quota::StorageQuota;
use crate::seal::Keyring;
pub use crate::start_error::StartError;

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// Where pods and other machines reach this process.
    pub advertised: Advertised,
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
    /// The etcd that has the objects; without one, they are in the data directory.
    pub store: Option<EtcdConfig>,
    /// A file of keys that secrets are encrypted with at rest.
    pub encryption_key_file: Option<PathBuf>,
    /// The size of all objects together, from which on users' writes are refused.
    pub storage_quota: audit::Bytes,
    pub backups: Option<backup::Schedule>,
    /// Tells when certificates must be renewed.
    pub clock: Clock,
    /// What is exempt from Pod Security admission.
    pub pod_security: Exemptions,
}

/// Why a running server cannot go on. Its process should end, so that a service manager starts another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFailure {
    #[error(
        "the store's writer has ended, so nothing can be stored any more; the log has the reason"
    )]
    Writer,
    #[error("the listener has ended, so nobody can connect any more; the log has the reason")]
    Listener,
    #[error(
        "the listener for pods has ended, so they cannot connect any more; the log has the reason"
    )]
    PodListener,
    /// One of the tasks beside requests.
    #[error("the task of the server that {0} has ended; the log has the reason")]
    Task(&'static str),
}

/// A running server.
pub struct Server {
    /// The API, for clients in the same process.
    pub api: Arc<Api>,
    backend: Backend,
    pub address: SocketAddr,
    /// The path of the administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    pub certificates: Arc<Certificates>,
    stop: CancellationToken,
    listeners: Background,
    background: Background,
    /// Keeps other servers out of the data directory, if its database does not.
    _lock: Option<DataDirLock>,
}

/// The work of the thread that writes the audit log.
const WRITES_AUDIT: &str = "writes the audit log";
/// The work of the tasks in [`Server::listeners`].
const ACCEPTS: &str = "accepts connections";
const ACCEPTS_PODS: &str = "accepts connections of pods";

impl Server {
    /// Boxed, so that the server is compiled once, in this crate: the code of an `async fn` is generated again in each crate
    /// that polls it.
    pub fn start(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        Self::start_all(config).boxed()
    }

    async fn start_all(config: Config) -> Result<Self, StartError> {
        let static_tokens = config.token_file.as_deref().map(StaticTokens::open);
        let static_tokens = static_tokens.transpose()?;
        let backup_secret = config.backups.as_ref().and_then(|all| all.secret.as_ref());
        backup_secret.map(SecretFile::read).transpose()?;
        let keys = config.encryption_key_file.as_deref().map(Keyring::read);
        let keys = keys.transpose()?;
        let (store, lock) = match &config.store {
            None => {
                etcd_store::refuse_without_etcd(&config.data_dir)?;
                let mut options = Options::new(&config.data_dir);
                options.seal = keys.map(|keys| Arc::new(keys) as _);
                (backend::open_store(options)?, None)
            }
            Some(etcd) => {
                let ttl = config.event_ttl;
                let (store, lock) = etcd_store::open(etcd, &config.data_dir, keys, ttl).await?;
                (store, Some(lock))
            }
        };
        let started = Self::start_over(config, Arc::clone(&store), static_tokens, lock).await;
        if started.is_err() {
            // A claim on etcd would keep another server waiting.
            store.close().await;
        }
        started
    }

    async fn start_over(
        config: Config,
        store: Arc<dyn Store<Head>>,
        static_tokens: Option<StaticTokens>,
        lock: Option<DataDirLock>,
    ) -> Result<Self, StartError> {
        let (listener, address) = bind(config.listen).await?;
        let (advertised, for_pods) = listen_for_pods(config.advertised, address).await;
        let kubeconfig = config.data_dir.join("admin.kubeconfig");
        let certificates = Arc::new(open_certificates(&config, address, &kubeconfig)?);
        let settings = Settings {
            certificates: Arc::clone(&certificates),
            address: SocketAddr::new(reachable(address.ip()), address.port()),
            advertised,
            service_cidr: config.service_cidr.clone(),
            audit: Arc::new(Audit::open(&config.audit)?),
            event_ttl: config.event_ttl,
            storage_quota: Arc::new(StorageQuota::new(config.storage_quota)),
            backups: Arc::default(),
            pod_security: config.pod_security,
        };
        let credentials = Credentials {
            certificates: Arc::clone(&certificates),
            static_tokens,
        };
        let backend = Backend::start(store, credentials, settings).await?;
        let api = Arc::clone(&backend.api);
        let stop = CancellationToken::new();
        let mut listeners = Background::default();
        let mut serve = |work, check, listener| {
            let accepting = Arc::new(Accepting::new(check));
            let checked = Arc::clone(&accepting);
            api.add_health_checks(move |endpoint| vec![checked.outcome(endpoint, Instant::now())]);
            let (tls, api, stop) = (certificates.tls.clone(), Arc::clone(&api), stop.clone());
            let serving = listen::serve(listener, tls, api, config.timeouts, accepting, stop);
            listeners.spawn(work, serving);
        };
        serve(ACCEPTS, "listener", (listener, Clients::All));
        if let Some(listener) = for_pods {
            let listener = (listener, Clients::OfThisMachine);
            serve(ACCEPTS_PODS, "pod-listener", listener);
        }
        let mut background = Background::default();
        if let Some(schedule) = config.backups {
            let (status, stop) = (Arc::clone(&api.settings.backups), stop.clone());
            let backups = backup::run(schedule, config.data_dir, status, stop);
            background.spawn("makes backups", backups);
        }
        let renewal = certificate_renewal::run(Arc::clone(&api), config.clock.interval());
        background.spawn("renews certificates", renewal);
        Ok(Self {
            api,
            backend,
            address,
            kubeconfig,
            certificates,
            stop,
            listeners,
            background,
            _lock: lock,
        })
    }

    /// Renews the certificates that expire soon, and warns of the others, as the server itself does regularly.
    pub fn renew_certificates(&self) -> BoxFuture<'_, ()> {
        async { CertificateRenewal::default().pass(&self.api).await }.boxed()
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.api.settings.address)
    }

    /// Waits until the server cannot go on, while it is not stopped.
    pub async fn failed(&mut self) -> ServerFailure {
        tokio::select! {
            // First: the other tasks end with a store that is closed.
            biased;
            () = self.backend.writer_ended() => ServerFailure::Writer,
            work = self.listeners.ended() => match work {
                ACCEPTS_PODS => ServerFailure::PodListener,
                _ => ServerFailure::Listener,
            },
            work = self.background.ended() => ServerFailure::Task(work),
            () = self.api.settings.audit.ended() => ServerFailure::Task(WRITES_AUDIT),
            work = self.backend.task_ended() => ServerFailure::Task(work),
        }
    }

    /// Stops in order: closes the listeners, ends watches, finishes writes, closes the store.
    pub async fn stop(self) {
        self.background.abort();
        self.stop.cancel();
        self.listeners.join().await;
        self.backend.close().await;
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Pods do not reach a loopback address. A server that listens on one also listens on the address that it advertises, for pods
/// of this machine alone. Without that address, nothing is advertised.
async fn listen_for_pods(
    mut advertised: Advertised,
    listening: SocketAddr,
) -> (Advertised, Option<TcpListener>) {
    let Some(ip) = advertised.address.filter(|_| listening.ip().is_loopback()) else {
        return (advertised, None);
    };
    match TcpListener::bind((ip, listening.port())).await {
        Ok(listener) => (advertised, Some(listener)),
        Err(error) => {
            tracing::warn!(%error, "cannot listen on {ip} for pods, so the service kubernetes has no endpoints");
            advertised.address = None;
            (advertised, None)
        }
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
            Err(_) if names.contains(san) => {}
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

fn open_certificates(
    config: &Config,
    address: SocketAddr,
    kubeconfig: &Path,
) -> Result<Certificates, crate::certificates::CertificatesError> {
    let (names, addresses) = subject_names(config, address.ip());
    let options = pki::Options {
        dir: config.data_dir.join(crate::data_dir::PKI),
        names,
        addresses,
        token_key_days: config.token_key_days,
        clock: config.clock.clone(),
    };
    let server = SocketAddr::new(reachable(address.ip()), address.port());
    let kubeconfig = KubeconfigFile {
        path: kubeconfig.to_owned(),
        server: format!("https://{server}"),
    };
    let etcd = config.store.as_ref().and_then(|etcd| etcd.tls.clone());
    Ok(Certificates::open(options, Some(kubeconfig))?.with_etcd(etcd))
}

#[cfg(test)]
mod tests {
    use kennel_core::health::Endpoint;

    use super::*;

    async fn start(dir: &std::path::Path) -> Server {
        start_advertising(dir, None).await
    }

    async fn start_advertising(dir: &std::path::Path, address: Option<IpAddr>) -> Server {
        start_with(dir, address, audit::Options::off()).await
    }

    async fn start_with(
        dir: &std::path::Path,
        address: Option<IpAddr>,
        audit: audit::Options,
    ) -> Server {
        let config = Config {
            data_dir: dir.to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertised: Advertised { address, dns: None },
            tls_san: Vec::new(),
            service_cidr: "10.96.0.0/12".parse().unwrap(),
            token_file: None,
            token_key_days: crate::pki::keys::DAYS_DEFAULT,
            event_ttl: crate::expire::TTL_DEFAULT,
            timeouts: Timeouts::default(),
            audit,
            store: None,
            encryption_key_file: None,
            storage_quota: crate::quota::QUOTA_DEFAULT,
            backups: None,
            clock: Clock::default(),
            pod_security: Exemptions::default(),
        };
        Server::start(config).await.unwrap()
    }

    #[tokio::test]
    async fn the_end_of_the_listener_the_writer_or_a_task_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let mut server = start(dir.path()).await;
        assert!(server.api.is_live());
        let moment = Duration::from_millis(50);
        let early = tokio::time::timeout(moment, server.failed()).await;
        assert!(early.is_err(), "{early:?}");
        server.listeners.abort();
        assert_eq!(server.failed().await, ServerFailure::Listener);
        drop(server);

        let dir = tempfile::tempdir().unwrap();
        let mut server = start(dir.path()).await;
        server.background.abort();
        let failure = server.failed().await;
        assert_eq!(failure, ServerFailure::Task("renews certificates"));
        drop(server);

        let dir = tempfile::tempdir().unwrap();
        let log = audit::Options::to(audit::Target::File(dir.path().join("audit.log")));
        let mut server = start_with(dir.path(), None, log).await;
        server.api.settings.audit.close().await;
        assert_eq!(server.failed().await, ServerFailure::Task(WRITES_AUDIT));
        drop(server);

        let dir = tempfile::tempdir().unwrap();
        let mut server = start(dir.path()).await;
        server.backend.close_store().await;
        assert_eq!(server.failed().await, ServerFailure::Writer);
        assert!(!server.api.is_live());
    }

    /// The address of the default route. Nothing is sent.
    fn own_address() -> Option<IpAddr> {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback())
    }

    #[tokio::test]
    async fn the_listener_for_pods_is_checked_and_its_end_is_noticed() {
        let Some(address) = own_address() else {
            return kennel_test_support::skip("this machine has no address for pods");
        };
        let dir = tempfile::tempdir().unwrap();
        let mut server = start_advertising(dir.path(), Some(address)).await;
        let names = |server: &Server| -> Vec<String> {
            let outcomes = server.api.health.outcomes(Endpoint::Livez).into_iter();
            outcomes.map(|outcome| outcome.name).collect()
        };
        assert!(names(&server).iter().any(|name| name == "pod-listener"));
        server.listeners.abort_one(ACCEPTS_PODS);
        assert_eq!(server.failed().await, ServerFailure::PodListener);
        drop(server);

        // A stop closes both, and waits for what they serve.
        let dir = tempfile::tempdir().unwrap();
        let server = start_advertising(dir.path(), Some(address)).await;
        let bound = SocketAddr::new(address, server.address.port());
        assert!(TcpListener::bind(bound).await.is_err());
        server.stop().await;
        TcpListener::bind(bound).await.unwrap();
    }
}

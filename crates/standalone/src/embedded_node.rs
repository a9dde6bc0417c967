//! A real node in the API server's process: the one of `kennel up`, and those of the playground. It has the rights of
//! a node, reaches the API without a socket, and gets its serving certificate signed without a
//! `CertificateSigningRequest`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use async_trait::async_trait;
use kennel_control::certificates::{Authority, AuthorityError};
use kennel_core::cidr::Cidr;
use kennel_node::agent::identity::rotate::Certifier;
use kennel_node::agent::identity::{
    Authorities, Certificate, CertificateRequest, Expirations, IdentityError, unusable,
};
use kennel_node::agent::lock::Lock;
use kennel_node::agent::{
    ApiAddress, Cluster, Machine, Settings, Start, data_version, machine, start,
};
use kennel_node::runtime::Runtime;
use kennel_server::api::Api;
use kennel_server::certificates::{AuthorityFiles, Certificates};
use kennel_server::live::Live;
use kennel_server::server::Server;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clients;
use kennel_agent::args::NodeArgs;
use kennel_agent::node::{self, Place};
use kennel_agent::service_proxy::{self, ProxyLock, ServiceProxy};

/// The kubelet API port of Kubernetes.
const KUBELET_PORT: u16 = 10250;

/// The configuration of a node.
pub struct NodeConfig {
    pub node: NodeArgs,
    pub data: PathBuf,
    /// Where to serve the kubelet API; by default port 10250 of the node's address, or a free port.
    pub listen: Option<SocketAddr>,
    /// The API server's address for containers, if the server listens on all addresses.
    pub api_host: Option<IpAddr>,
    pub cluster_domain: String,
    /// The range of all pods.
    pub cluster_cidr: Option<Cidr>,
}

/// What a node needs of its API server.
#[derive(Clone)]
pub struct ServerHandle {
    api: Arc<Api>,
    address: SocketAddr,
    certificates: Arc<Certificates>,
}

impl ServerHandle {
    pub fn of(server: &Server) -> Self {
        Self {
            api: Arc::clone(&server.api),
            address: server.address,
            certificates: Arc::clone(&server.certificates),
        }
    }
}

/// A node that can be started repeatedly.
pub struct EmbeddedNode {
    settings: Arc<Settings>,
    machine: Machine,
    /// For the first start.
    first_runtime: Mutex<Option<Arc<dyn Runtime>>>,
    args: NodeArgs,
    client: kube::Client,
    authorities: Authorities,
    expirations: Arc<Expirations>,
    certifier: Arc<dyn Certifier>,
    listener: Arc<std::net::TcpListener>,
    /// The right to route services.
    proxy_lock: Option<Arc<ProxyLock>>,
    _lock: Lock,
}

/// A node that is to make a pod network would never be ready beside a route to a part of its range. Whatever else keeps it from
/// being ready, its condition says.
async fn refuse_overlap(
    settings: &Settings,
    runtime: &dyn Runtime,
    cluster: Cidr,
) -> anyhow::Result<()> {
    if settings.pod_network.is_none() {
        return Ok(());
    }
    let is_left_to_others = match runtime.cni().await {
        Ok(Some(places)) => !matches!(places.foreign(), Ok(None)) && !places.has_own(),
        Ok(None) => false,
        Err(_) => true,
    };
    if is_left_to_others {
        return Ok(());
    }
    match kennel_network::refuse_overlap(cluster).await {
        Err(error @ kennel_network::Error::Overlap { .. }) => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl EmbeddedNode {
    /// Locks the data directory, binds the port and opens the runtime; fails on invalid flags.
    pub async fn prepare(config: NodeConfig, server: ServerHandle) -> anyhow::Result<Self> {
        let lock = Lock::take(&config.data)?;
        data_version::record(&config.data)?;
        let machine = Machine::read(&config.data);
        let name = node::name(&config.node, &machine)?;
        let addresses = node::addresses(&config.node, None).await;
        let ip = addresses.first().copied();
        let ip = ip.unwrap_or_else(|| machine::address(None));
        let listener = listen(config.listen, ip).await?;
        let proxy_lock = service_proxy::lock(&config.node, &config.data)?;
        let runtime = node::runtime(&config.node, &config.data).await?;
        let place = Place {
            api: Some(api_address(server.address, config.api_host.unwrap_or(ip))),
            listen: listener.local_addr()?,
            joined: true,
            address_peer: None,
            cluster_domain: config.cluster_domain,
            data: config.data,
            runtime: runtime.choice,
            service_proxy: proxy_lock.is_some(),
        };
        let settings = node::settings(&config.node, name, addresses, place)?;
        if settings.pod_network.is_some_and(|network| network.required) {
            // Fails here, and not each time that the supervisor starts the node.
            drop(kennel_network::lock::Lock::take()?);
        }
        if let Some(cluster) = config.cluster_cidr {
            refuse_overlap(&settings, &*runtime.runtime, cluster).await?;
        }
        let certificates = &server.certificates;
        let signer = LocalSigner(certificates.authority.clone());
        signer
            .authority()
            .context("cannot sign the node's certificate")?;
        Ok(Self {
            client: clients::node(&server.api, &settings.node_name),
            settings: Arc::new(settings),
            machine,
            first_runtime: Mutex::new(Some(runtime.runtime)),
            args: config.node,
            authorities: certificates.bundle.subscribe(),
            expirations: Arc::default(),
            certifier: Arc::new(signer),
            listener: Arc::new(listener.into_std()?),
            proxy_lock,
            _lock: lock,
        })
    }

    pub fn name(&self) -> &str {
        &self.settings.node_name
    }

    /// Runs the node until `stop` is cancelled.
    pub fn run(
        &self,
        stop: CancellationToken,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let first = self
            .first_runtime
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let args = self.args.clone();
        let service_proxy = self.proxy_lock.clone().map(ServiceProxy::new);
        let listener = self.listener.try_clone();
        let settings = Arc::clone(&self.settings);
        let machine = self.machine.clone();
        let client = self.client.clone();
        let cluster = Cluster {
            client: client.clone(),
            authorities: self.authorities.clone(),
            authorities_sign: true,
            expirations: Arc::clone(&self.expirations),
            certifier: Arc::clone(&self.certifier),
            server: None,
        };
        async move {
            // A runtime reports each event once, so a restarted node must open it again.
            let runtime = match first {
                Some(runtime) => runtime,
                None => node::runtime(&args, &settings.paths.data).await?.runtime,
            };
            let start = Start {
                settings,
                machine,
                runtime,
                cluster: Some(cluster),
                listener: Some(listener.and_then(TcpListener::from_std)?),
                health: Arc::default(),
                service_proxy: service_proxy
                    .as_ref()
                    .map(ServiceProxy::link)
                    .unwrap_or_default(),
                started: None,
            };
            let Some(proxy) = service_proxy else {
                return Ok(start::run(start, stop).await?);
            };
            let proxy_stop = stop.child_token();
            let proxy = proxy.run(client, start.settings.node_name.clone(), proxy_stop.clone());
            let node = async {
                let ended = start::run(start, stop).await;
                proxy_stop.cancel();
                ended
            };
            let (ended, ()) = tokio::join!(Box::pin(node), proxy);
            Ok(ended?)
        }
    }
}

/// Binds the kubelet API. Falls back to a free port if no address is configured and 10250 is taken.
async fn listen(configured: Option<SocketAddr>, ip: IpAddr) -> anyhow::Result<TcpListener> {
    if let Some(address) = configured {
        return node::listen(address, "--node-listen").await;
    }
    let usual = SocketAddr::new(ip, KUBELET_PORT);
    match TcpListener::bind(usual).await {
        Ok(listener) => Ok(listener),
        Err(error) => {
            let listener = node::listen(SocketAddr::new(ip, 0), "--node-listen").await?;
            let port = listener.local_addr()?.port();
            tracing::info!(
                "cannot listen on {usual} ({error}); serving the kubelet API on port {port}"
            );
            Ok(listener)
        }
    }
}

/// The API server's address for containers: where it listens, or `own` if it listens on all addresses.
fn api_address(listening: SocketAddr, own: IpAddr) -> ApiAddress {
    let ip = if listening.ip().is_unspecified() {
        own
    } else {
        listening.ip()
    };
    ApiAddress {
        host: ip.to_string(),
        port: listening.port(),
    }
}

/// Signs the serving certificate with the CA key of the server in this process.
struct LocalSigner(Live<AuthorityFiles>);

impl LocalSigner {
    fn authority(&self) -> Result<Authority, AuthorityError> {
        let files = self.0.get();
        Authority::new(files.cert_pem.clone(), files.key_pem.clone())
    }
}

#[async_trait]
impl Certifier for LocalSigner {
    async fn obtain(
        &self,
        wanted: &CertificateRequest,
        file: &Path,
    ) -> Result<Certificate, IdentityError> {
        const WHAT: &str = "the node's own certificate";
        let key = rcgen::KeyPair::generate().map_err(unusable(WHAT))?;
        let request = wanted.pem(&key).map_err(unusable(WHAT))?;
        let authority = self.authority().map_err(unusable(WHAT))?;
        let chain = authority.sign_serving(&request).map_err(unusable(WHAT))?;
        let pair = Certificate::new(&chain, &key.serialize_pem())?;
        pair.write(file)?;
        Ok(pair)
    }
}

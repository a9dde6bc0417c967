//! A real node in the server's own process: the one of `kennel up`, and those of the playground. It is a client of the
//! API like any other, with the rights of a node; only the way there is shorter, and its certificate is signed on the
//! spot.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use async_trait::async_trait;
use kennel_control::certificates::Authority;
use kennel_node::agent::identity::rotate::Certifier;
use kennel_node::agent::identity::{IdentityError, Pair, Wanted};
use kennel_node::agent::lock::Lock;
use kennel_node::agent::{ApiAddress, Cluster, Machine, Settings, Start, machine, start};
use kennel_node::runtime::Runtime;
use kennel_server::api::Api;
use kennel_server::server::Server;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::inprocess;
use kennel_agent::args::NodeArgs;
use kennel_agent::node::{self, Place};

/// The port that clusters expect a node at.
const PORT: u16 = 10250;

/// What a node is to be.
pub(crate) struct NodePlan {
    /// What was said of it.
    pub(crate) node: NodeArgs,
    /// Where it keeps its things.
    pub(crate) data: PathBuf,
    /// Where it answers, if somebody has chosen.
    pub(crate) listen: Option<SocketAddr>,
    /// The server's address as the node sees it, for one that listens everywhere.
    pub(crate) api_host: Option<IpAddr>,
    /// The domain of services' names.
    pub(crate) cluster_domain: String,
}

/// What a node needs of its server.
#[derive(Clone)]
pub(crate) struct ServerSide {
    api: Arc<Api>,
    address: SocketAddr,
    ca_cert_pem: String,
    ca_key_pem: String,
}

impl ServerSide {
    /// Of this one.
    pub(crate) fn of(server: &Server) -> Self {
        let files = &server.authority;
        Self {
            api: Arc::clone(&server.api),
            address: server.address,
            ca_cert_pem: files.cert_pem.clone(),
            ca_key_pem: files.key_pem.clone(),
        }
    }
}

/// Everything that the node is made of, each time that it is started.
pub(crate) struct OwnNode {
    settings: Arc<Settings>,
    machine: Machine,
    /// Opened already, for the first time that it is started.
    opened: Mutex<Option<Arc<dyn Runtime>>>,
    args: NodeArgs,
    client: kube::Client,
    authorities: Vec<CertificateDer<'static>>,
    certifier: Arc<dyn Certifier>,
    listener: Arc<std::net::TcpListener>,
    _lock: Lock,
}

impl OwnNode {
    /// Gets everything ready; what is wrong with the flags or the machine is told here.
    pub(crate) async fn prepare(plan: NodePlan, server: ServerSide) -> anyhow::Result<Self> {
        let lock = Lock::take(&plan.data)?;
        let machine = Machine::look(&plan.data);
        let name = node::name(&plan.node, &machine)?;
        let addresses = node::addresses(&plan.node, None).await;
        let ip = addresses.first().copied();
        let ip = ip.unwrap_or_else(|| machine::address(None));
        let listener = listen(plan.listen, ip).await?;
        let place = Place {
            api: Some(api_address(server.address, plan.api_host.unwrap_or(ip))),
            listen: listener.local_addr()?,
            cluster_domain: plan.cluster_domain,
            data: plan.data,
        };
        let settings = node::settings(&plan.node, name, addresses, place)?;
        let runtime = node::runtime(&plan.node, &settings.paths.data).await?;
        let ca = CertificateDer::from_pem_slice(server.ca_cert_pem.as_bytes());
        let authority = Authority::new(server.ca_cert_pem, server.ca_key_pem);
        let authority = authority.context("cannot sign the node's certificate")?;
        Ok(Self {
            client: inprocess::node(&server.api, &settings.node_name),
            settings: Arc::new(settings),
            machine,
            opened: Mutex::new(Some(runtime)),
            args: plan.node,
            authorities: vec![ca.context("the certificate authority is unusable")?],
            certifier: Arc::new(OnTheSpot(authority)),
            listener: Arc::new(listener.into_std()?),
            _lock: lock,
        })
    }

    /// The node's name.
    pub(crate) fn name(&self) -> &str {
        &self.settings.node_name
    }

    /// Runs the node until told to stop.
    pub(crate) fn run(
        &self,
        stop: CancellationToken,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let (opened, args) = ({ opened }.take(), self.args.clone());
        let listener = self.listener.try_clone();
        let settings = Arc::clone(&self.settings);
        let machine = self.machine.clone();
        let cluster = Cluster {
            client: self.client.clone(),
            authorities: self.authorities.clone(),
            certifier: Arc::clone(&self.certifier),
            server: None,
        };
        async move {
            // What a runtime tells it tells once: whoever begins again opens it again.
            let runtime = match opened {
                Some(runtime) => runtime,
                None => node::runtime(&args, &settings.paths.data).await?,
            };
            let start = Start {
                settings,
                machine,
                runtime,
                cluster: Some(cluster),
                listener: Some(listener.and_then(TcpListener::from_std)?),
                begun: None,
            };
            Ok(start::run(start, stop).await?)
        }
    }
}

/// Where the node answers. Unless somebody has chosen, a port that is taken is no reason to end.
async fn listen(given: Option<SocketAddr>, ip: IpAddr) -> anyhow::Result<TcpListener> {
    if let Some(address) = given {
        return node::listen(address, "--node-listen").await;
    }
    let usual = SocketAddr::new(ip, PORT);
    match TcpListener::bind(usual).await {
        Ok(listener) => Ok(listener),
        Err(error) => {
            let listener = node::listen(SocketAddr::new(ip, 0), "--node-listen").await?;
            let port = listener.local_addr()?.port();
            tracing::info!("{usual} cannot be used ({error}): the node answers at port {port}");
            Ok(listener)
        }
    }
}

/// Where containers find the API: where it listens, or at the given address if that is everywhere.
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

/// Signs what the node in this process asks for: it is the server's own.
struct OnTheSpot(Authority);

#[async_trait]
impl Certifier for OnTheSpot {
    async fn obtain(&self, wanted: &Wanted, file: &Path) -> Result<Pair, IdentityError> {
        let unusable = |why: String| IdentityError::Unusable {
            what: "the node's own certificate".to_owned(),
            why,
        };
        let key = rcgen::KeyPair::generate().map_err(|error| unusable(error.to_string()))?;
        let request = wanted.pem(&key);
        let request = request.map_err(|error| unusable(error.to_string()))?;
        let chain = self.0.sign_serving(&request);
        let chain = chain.map_err(|error| unusable(error.to_string()))?;
        let pair = Pair::new(&chain, &key.serialize_pem())?;
        pair.write(file)?;
        Ok(pair)
    }
}

//! `kennel agent`: runs this machine as a node, against any Kubernetes API.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kennel_node::agent::identity::authorities::AuthoritiesSender;
use kennel_node::agent::identity::client::Credentials;
use kennel_node::agent::identity::join::{self, CA_FILE, CLIENT_FILE, JoinOptions};
use kennel_node::agent::identity::kubeconfig;
use kennel_node::agent::identity::request::Purpose;
use kennel_node::agent::identity::{
    CertificateRequest, CsrClient, Expirations, Joined, RotatingClient, authorities, rotate,
};
use kennel_node::agent::lock::{self, Lock};
use kennel_node::agent::{AgentHealth, ApiAddress, Cluster, Machine, Start, data_version, start};
use rustls::pki_types::CertificateDer;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::args::AgentArgs;
use crate::cluster;
use crate::new_files::{self, NewFiles};
use crate::node::{self, Place};
use crate::notify;
use crate::service_proxy::{self, ServiceProxy};
use crate::signals::run_until_signal;

/// The directory of certificates in the data directory.
const PKI: &str = "pki";

/// Runs until a signal stops it.
pub async fn run(args: AgentArgs) -> anyhow::Result<()> {
    crate::descriptors::raise_limit();
    anyhow::ensure!(
        !args.simulates_nodes(),
        "this program runs one node: simulate nodes with `kennel agent`"
    );
    anyhow::ensure!(
        !args.cleanup,
        "this program runs a node: clean up with `kennel agent --cleanup`"
    );
    run_until_signal(|stop| run_node(args, stop)).await
}

/// Fails if the agent lacks the configuration that it needs to join a cluster. Creates nothing.
pub fn check(args: &AgentArgs) -> anyhow::Result<()> {
    if let Some(kubeconfig) = &args.kubeconfig {
        return cluster::check_file(kubeconfig);
    }
    let data = node::absolute(&args.data_dir);
    let (name, pki) = (
        node::name(&args.node, &Machine::read(&data))?,
        data.join(PKI),
    );
    if !runs_alone(args, &pki) {
        join::check(&pki, &name, &join_options(args)?)?;
    }
    Ok(())
}

async fn run_node(mut args: AgentArgs, stop: CancellationToken) -> anyhow::Result<()> {
    args.data_dir = node::absolute(&args.data_dir);
    check(&args)?;
    let mut new = NewFiles::record(&args.data_dir, lock::FILE);
    if let Some(path) = std::env::var_os(new_files::NEW_PATH) {
        new = new.with_new(Path::new(&path));
    }
    let prepared = tokio::select! {
        prepared = prepare(&args, &stop) => new.remove_if_failed(prepared)?,
        () = stop.cancelled() => return Ok(()),
    };
    let Prepared {
        start,
        on_started,
        service_proxy,
        lock: _lock,
    } = prepared;
    let name = start.settings.node_name.clone();
    let health = Arc::clone(&start.health);
    tokio::spawn(notify_started(name.clone(), health, on_started));
    if let (Some(proxy), Some(cluster)) = (service_proxy, &start.cluster) {
        tokio::spawn(proxy.run(cluster.client.clone(), name, stop.clone()));
    }
    Ok(start::run(start, stop).await?)
}

/// A node that has joined its cluster.
struct Prepared {
    start: Start,
    on_started: oneshot::Receiver<()>,
    service_proxy: Option<ServiceProxy>,
    lock: Lock,
}

async fn prepare(args: &AgentArgs, stop: &CancellationToken) -> anyhow::Result<Prepared> {
    let lock = Lock::take(&args.data_dir)?;
    data_version::record(&args.data_dir)?;
    let machine = Machine::read(&args.data_dir);
    let name = node::name(&args.node, &machine)?;
    let listener = node::listen(args.listen, "--listen").await?;
    let proxy_lock = service_proxy::lock(&args.node, &args.data_dir)?;
    let service_proxy = proxy_lock.map(ServiceProxy::new);
    let runtime = node::runtime(&args.node, &args.data_dir).await?;
    notify::waiting("Waiting for the server");
    let membership = join_cluster(args, &name, stop).await?;
    let api = membership.as_ref().and_then(|member| member.api.clone());
    let rotating = membership
        .as_ref()
        .and_then(|member| member.rotating.clone());
    let addresses = node::addresses(&args.node, api.as_ref()).await;
    let place = Place {
        data: args.data_dir.clone(),
        address_peer: api.clone(),
        api,
        joined: args.kubeconfig.is_none(),
        listen: listener.local_addr()?,
        cluster_domain: args.cluster_domain.clone(),
        runtime: runtime.choice,
        service_proxy: service_proxy.is_some(),
    };
    let settings = node::settings(&args.node, name, addresses, place)?;
    if let Some(rotating) = rotating {
        follow_addresses(rotating, settings.addresses.subscribe(), stop);
    }
    let (started, on_started) = oneshot::channel();
    let start = Start {
        settings: Arc::new(settings),
        machine,
        runtime: runtime.runtime,
        cluster: membership.map(|member| member.cluster),
        listener: Some(listener),
        health: Arc::default(),
        service_proxy: service_proxy
            .as_ref()
            .map(ServiceProxy::link)
            .unwrap_or_default(),
        started: Some(started),
    };
    Ok(Prepared {
        start,
        on_started,
        service_proxy,
        lock,
    })
}

/// Notifies the service manager, and from then on its watchdog, once the node manages its pods.
async fn notify_started(node: String, health: Arc<AgentHealth>, started: oneshot::Receiver<()>) {
    if started.await.is_ok() {
        notify::ready(&format!("Managing the pods of node {node}"));
        notify::watchdog(move || health.is_alive());
    }
}

/// The cluster of a node.
struct Membership {
    cluster: Cluster,
    api: Option<ApiAddress>,
    /// The cluster's client, unless it is that of a kubeconfig.
    rotating: Option<RotatingClient>,
}

/// Joins the cluster of the flags, or uses the one that the node has joined before. None if there is neither and
/// `--manifest-dir` is given.
async fn join_cluster(
    args: &AgentArgs,
    name: &str,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Membership>> {
    let pki = args.data_dir.join(PKI);
    if let Some(kubeconfig) = &args.kubeconfig {
        return with_kubeconfig(kubeconfig, &pki).await.map(Some);
    }
    if runs_alone(args, &pki) {
        tracing::info!("no cluster is configured: running static pods only");
        return Ok(None);
    }
    let joined = join::join(&pki, name, &join_options(args)?).await?;
    with_certificate(joined, name, &pki, stop).map(Some)
}

/// Whether the agent runs static pods only.
fn runs_alone(args: &AgentArgs, pki: &Path) -> bool {
    let has_token = args.token.is_some() || args.token_file.is_some();
    let has_cluster = args.server.is_some() || has_token || join::has_joined(pki);
    !has_cluster && args.node.manifest_dir.is_some()
}

fn join_options(args: &AgentArgs) -> anyhow::Result<JoinOptions> {
    let token = match &args.token_file {
        // A node that has joined needs no token, and the file may be gone by then.
        Some(file) if file.exists() || args.token.is_none() && !has_joined(args) => {
            let text = std::fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            Some(text.trim().to_owned())
        }
        _ => args.token.clone(),
    };
    Ok(JoinOptions {
        server: args.server.clone(),
        token,
        ca_hash: args.ca_hash.clone(),
    })
}

fn has_joined(args: &AgentArgs) -> bool {
    join::has_joined(&node::absolute(&args.data_dir).join(PKI))
}

/// Authenticates with the node's own certificate, and starts its rotation and that of the authorities.
fn with_certificate(
    joined: Joined,
    name: &str,
    pki: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<Membership> {
    let credentials = Credentials::Certificate(&joined.client);
    let rotating = RotatingClient::new(&joined.server, &joined.ca_pem, &credentials)?;
    authorities::parse(&joined.ca_pem)?;
    let (sender, authorities) = watch::channel(Arc::new(joined.ca_pem));
    let csr = Arc::new(CsrClient::new(rotating.client(), pki));
    let expirations = Arc::<Expirations>::default();
    expirations.set(Purpose::Client, &joined.client);
    let cluster = Cluster {
        client: rotating.client(),
        authorities: authorities.clone(),
        authorities_sign: true,
        expirations: Arc::clone(&expirations),
        certifier: Arc::clone(&csr) as _,
        server: Some(joined.server.clone()),
    };
    follow_authorities(rotating.clone(), sender, pki, stop);
    let to_certify = rotating.clone();
    let request = CertificateRequest::client(name);
    let (file, stop) = (pki.join(CLIENT_FILE), stop.clone());
    tokio::spawn(async move {
        let current = Some(joined.client);
        let install = |new: &_| {
            expirations.set(Purpose::Client, new);
            to_certify.set_certificate(new)
        };
        let rotation = rotate::run(&*csr, &request, &file, current, Some(authorities), install);
        stop.run_until_cancelled(rotation).await
    });
    let api = join::api_address(&joined.server);
    Ok(Membership {
        cluster,
        api,
        rotating: Some(rotating),
    })
}

/// Connects anew when the machine's address has changed.
fn follow_addresses(
    rotating: RotatingClient,
    mut addresses: watch::Receiver<Vec<IpAddr>>,
    stop: &CancellationToken,
) {
    let follow = async move {
        while addresses.changed().await.is_ok() {
            if let Err(error) = rotating.reconnect() {
                tracing::warn!("{error}");
            }
        }
    };
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(follow).await });
}

/// Follows the certificate authorities that the server publishes.
fn follow_authorities(
    rotating: RotatingClient,
    current: AuthoritiesSender,
    pki: &Path,
    stop: &CancellationToken,
) {
    let (pki, stop) = (pki.to_owned(), stop.clone());
    let writer = Writer::new(rotating.client(), Fence::open());
    tokio::spawn(async move {
        let install = |new: &str| {
            join::remember_hashes(&pki, new)?;
            rotating.set_authorities(new)
        };
        let file = pki.join(CA_FILE);
        let follow = authorities::follow(writer, &file, current, install);
        stop.run_until_cancelled(follow).await
    });
}

/// Authenticates as the user of a kubeconfig.
async fn with_kubeconfig(file: &Path, pki: &Path) -> anyhow::Result<Membership> {
    let config = cluster::config(Some(file)).await?;
    let server = config.cluster_url.to_string();
    let server = server.trim_end_matches('/').to_owned();
    let roots = config.root_cert.iter().flatten();
    let roots = roots.map(|der| join::to_pem(&CertificateDer::from(der.as_slice())));
    let roots: String = roots.collect();
    let expirations = Expirations::of_kubeconfig(kubeconfig::client_lifetime(&config.auth_info));
    let client = cluster::client_of(config)?;
    let api = join::api_address(&server);
    Ok(Membership {
        cluster: Cluster {
            client: client.clone(),
            authorities: authorities::fixed(roots),
            authorities_sign: false,
            expirations: Arc::new(expirations),
            certifier: Arc::new(CsrClient::new(client, pki)),
            server: Some(server),
        },
        api,
        rotating: None,
    })
}

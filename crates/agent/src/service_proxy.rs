//! The service proxy beside a node.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::Request;
use kennel_client::backoff::{Backoff, Policy};
use kennel_core::cidr::Cidr;
use kennel_network::overlap;
use kennel_node::agent::ProxyLink;
use kennel_node::cleanup::Resources;
use kennel_proxy::{KernelError, Lock, Metrics, Proxy};
pub use kennel_proxy::{Lock as ProxyLock, METRICS};
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::args::{NodeArgs, ProxyMode, RuntimeKind};

/// The one range of cluster IPs.
const SERVICE_RANGE: &str = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
/// While a network of this machine lies in that range.
const OVERLAP_RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));
/// While the API server cannot be reached.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));
/// The label of a node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The right to route services in this thread's network namespace, if the flags ask for that. Fails if another agent has it.
pub fn lock(args: &NodeArgs, data: &Path) -> anyhow::Result<Option<Arc<Lock>>> {
    if mode(args)? == ProxyMode::None {
        return Ok(None);
    }
    let lock = Lock::take()?;
    Resources::add_proxy(data).with_context(|| format!("cannot write to {}", data.display()))?;
    Ok(Some(Arc::new(lock)))
}

/// A proxy that runs once its node has a cluster.
pub struct ServiceProxy {
    lock: Arc<Lock>,
    problem: watch::Sender<Option<String>>,
    metrics: Arc<Metrics>,
    link: ProxyLink,
}

impl ServiceProxy {
    pub fn new(lock: Arc<Lock>) -> Self {
        let (problem, received) = watch::channel(None);
        let metrics = Arc::<Metrics>::default();
        let link = ProxyLink::new(received, Arc::clone(&metrics) as _);
        Self {
            lock,
            problem,
            metrics,
            link,
        }
    }

    /// The node's end of it.
    pub fn link(&self) -> ProxyLink {
        self.link.clone()
    }

    /// Routes services until `stop`, in this thread's network namespace.
    pub async fn run(self, client: Client, node: String, stop: CancellationToken) {
        let (zone, received) = watch::channel(None);
        let mut object = self.link.node();
        let follow_zone = async {
            loop {
                let new = object.borrow_and_update()["metadata"]["labels"][ZONE]
                    .as_str()
                    .map(str::to_owned);
                zone.send_if_modified(|current| {
                    let changes = *current != new;
                    *current = new;
                    changes
                });
                if object.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        let free = until_range_is_free(&client, &self.problem);
        if stop.run_until_cancelled(free).await.is_none() {
            return;
        }
        let proxy = Proxy {
            lock: self.lock,
            client,
            node,
            zone: received,
            problem: self.problem,
            metrics: self.metrics,
        };
        tokio::select! {
            () = proxy.run(stop) => {}
            () = follow_zone => {}
        }
    }
}

/// Whether the flags ask for the routing of services.
pub fn is_on(args: &NodeArgs) -> bool {
    mode(args).is_ok_and(|mode| mode == ProxyMode::Nftables)
}

/// Waits while a network of this machine lies in the range of services. A cluster that does not tell its range to nodes has
/// none that collides, as far as the agent knows. Routes that come later are not noticed: they must not end a service.
async fn until_range_is_free(client: &Client, problem: &watch::Sender<Option<String>>) {
    let Some(range) = service_range(client).await else {
        return;
    };
    let mut retry = Backoff::new(OVERLAP_RETRY);
    loop {
        match overlap::of_services(range).await {
            Err(error @ kennel_network::Error::ServicesOverlap { .. }) => {
                let message = format!("services are not routed: {error}");
                let is_new = problem.send_if_modified(|current| {
                    let changes = current.as_ref() != Some(&message);
                    *current = Some(message);
                    changes
                });
                if is_new {
                    tracing::warn!("services are not routed: {error}");
                }
            }
            Err(error) => {
                tracing::debug!("cannot compare the range of services with routes: {error}");
                break;
            }
            Ok(()) => break,
        }
        retry.sleep().await;
    }
    problem.send_if_modified(|current| current.take().is_some());
}

/// The range of cluster IPs. None if the cluster has no such object, or does not show it to nodes.
async fn service_range(client: &Client) -> Option<Cidr> {
    let mut retry = Backoff::new(RETRY);
    loop {
        let request = Request::get(SERVICE_RANGE).body(Vec::new()).ok()?;
        match client.request::<Value>(request).await {
            Ok(range) => {
                let mut ranges = range["spec"]["cidrs"].as_array()?.iter();
                return ranges.find_map(|range| range.as_str()?.parse().ok());
            }
            Err(kube::Error::Api(status)) => {
                tracing::debug!("the range of services is not known: {status}");
                return None;
            }
            Err(_) => retry.sleep().await,
        }
    }
}

/// Removes the rules of services from this thread's network namespace, unless another agent uses them now.
pub fn remove_rules() -> Result<(), KernelError> {
    match Lock::take() {
        Ok(_lock) => kennel_proxy::remove(),
        Err(error) => {
            tracing::info!("leaving the rules of services as they are: {error}");
            Ok(())
        }
    }
}

fn mode(args: &NodeArgs) -> anyhow::Result<ProxyMode> {
    let is_root = rustix::process::geteuid().is_root();
    match args.proxy {
        _ if args.runtime == RuntimeKind::Simulated => Ok(ProxyMode::None),
        Some(ProxyMode::Nftables) if !is_root => anyhow::bail!(
            "--proxy=nftables needs root, who may change the kernel's rules: start the agent as root, or with --proxy=none"
        ),
        Some(mode) => Ok(mode),
        None if is_root => Ok(ProxyMode::Nftables),
        None => Ok(ProxyMode::None),
    }
}

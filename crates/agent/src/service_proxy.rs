//! The service proxy beside a node.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use kennel_node::agent::ProxyLink;
use kennel_node::cleanup::Resources;
use kennel_proxy::{KernelError, Lock, Metrics, Proxy};
pub use kennel_proxy::{Lock as ProxyLock, METRICS};
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::args::{NodeArgs, ProxyMode, RuntimeKind};

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

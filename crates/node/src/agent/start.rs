//! Starts the components of a node, connects them, and stops them.
//!
//! ```text
//!   manifests ─┐
//!   API ───────┴▶ pods::manager ─▶ runtime, inputs, probes
//!                   ▲ commands
//!   pressure ───────┘ └▶ heartbeat ─▶ API ◀─ lease, mirror
//!   kubelet API ◀─ server
//! ```
//!
//! Components that do not need the API server start without it. When the agent stops, pods keep running: the next
//! agent adopts them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Backoff, Policy};
use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::metrics::Observed;
use kennel_client::write::Writer;
use kennel_core::pod::eviction::{Pressures, Signal, Threshold};
use kennel_network::Network;
use kube::Client;
use kube::client::Body;
use rustls::ServerConfig;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::health::AgentHealth;
use super::heartbeat::Heartbeat;
use super::identity::join::SERVING_FILE;
use super::identity::rotate::Certifier;
use super::identity::{Authorities, CertificateResolver, Expirations, IdentityError, authorities};
use super::lease::{Claim, Holder, Lease, LeaseError};
use super::machine::Machine;
use super::node;
use super::proxy_link::ProxyLink;
use super::serving::ServingCertificate;
use super::settings::{PodNetwork, Settings};
use crate::inputs::Inputs;
use crate::kubelet_api::{self, ServerContext};
use crate::manifests::mirror::{self, Mirror};
use crate::manifests::{self, Manifests};
use crate::network::{self, NetworkState};
use crate::pods::{
    CachedPod, Command, CommandSender, Dependencies, Origin, PodCache, PodUpdate, manager, source,
};
use crate::pressure::{self, Pressure};
use crate::probes::Prober;
use crate::runtime::{InstrumentedRuntime, Runtime};

/// Before an unreachable API server is tried again.
const CLAIM_RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(10));
/// For the container runtime to say where CNI is configured, before a node is registered without that.
const CNI_TIMEOUT: Duration = Duration::from_secs(2);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pod updates that may wait for a receiver. Senders wait when it is full: they read watches and files, which can wait.
const UPDATE_QUEUE_CAPACITY: usize = 64;

/// What a node needs to start.
pub struct Start {
    pub settings: Arc<Settings>,
    pub machine: Machine,
    pub runtime: Arc<dyn Runtime>,
    /// None for static pods alone.
    pub cluster: Option<Cluster>,
    /// For the kubelet API.
    pub listener: Option<TcpListener>,
    pub health: Arc<AgentHealth>,
    /// The service proxy beside the node, if there is one.
    pub service_proxy: ProxyLink,
    /// Notified once the node manages its pods, which does not need the API server.
    pub started: Option<oneshot::Sender<()>>,
}

/// The cluster that a node belongs to.
pub struct Cluster {
    pub client: Client,
    /// The authorities of client certificates at the kubelet API.
    pub authorities: Authorities,
    /// Whether the first of them signs the node's certificates. Those of another Kubernetes may not.
    pub authorities_sign: bool,
    /// When the node's certificates end.
    pub expirations: Arc<Expirations>,
    /// Issues the serving certificate.
    pub certifier: Arc<dyn Certifier>,
    /// The API server's URL if it runs in another process, so that the node requests no certificate for its addresses.
    pub server: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Lease(LeaseError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Network(#[from] kennel_network::Error),
}

impl From<LeaseError> for StartError {
    /// The request for the Lease is the first one with the node's certificate.
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Failed { node, failure } if failure.is(401) => {
                Self::Identity(IdentityError::Rejected { node })
            }
            other => Self::Lease(other),
        }
    }
}

/// Runs a node until `stop`.
pub async fn run(start: Start, stop: CancellationToken) -> Result<(), StartError> {
    let stop = stop.child_token();
    let tasks = TaskTracker::new();
    let (agent, receivers) = Agent::new(&start, tasks.clone(), stop.clone());
    let cache = Arc::clone(&agent.cache);
    let data_dir = users_data_dir(&start);
    let (ended, lease) = match agent.run(receivers, start).await {
        Ok(lease) => (Ok(()), lease),
        Err(error) => (Err(error), None),
    };
    stop.cancel();
    tasks.close();
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!("some components of the node did not stop in time");
    }
    if let Some(lease) = lease {
        lease.release().await;
    }
    let alive = |cached: &&Arc<CachedPod>| cached.observed.running().next().is_some();
    let running = cache.all().iter().filter(alive).count();
    if running > 0 {
        let (pods, them) = match running {
            1 => ("pod keeps", "it"),
            _ => ("pods keep", "them"),
        };
        tracing::info!(
            "{running} {pods} running, and the next start takes {them} over; to end {them}: kennel reset --keep-data \
             --data-dir {}",
            data_dir.display()
        );
    }
    ended
}

/// The data directory that the user chose. That of a node in the server's process is in the server's.
fn users_data_dir(start: &Start) -> PathBuf {
    let data = &start.settings.paths.data;
    let is_embedded = |cluster: &Cluster| cluster.server.is_none();
    let embedded = start.cluster.as_ref().is_some_and(is_embedded);
    let parent = data.parent().filter(|_| embedded);
    parent.unwrap_or(data).to_owned()
}

/// What the components of a node share.
struct Agent {
    settings: Arc<Settings>,
    runtime: Arc<dyn Runtime>,
    runtime_metrics: Arc<InstrumentedRuntime>,
    cache: Arc<PodCache>,
    /// The node's own object: the one to register at first, then the stored one.
    node: watch::Sender<Arc<Value>>,
    pods: mpsc::Sender<PodUpdate>,
    commands: CommandSender,
    resolver: Arc<CertificateResolver>,
    pressures: watch::Sender<Pressures>,
    network: watch::Sender<NetworkState>,
    static_pod_metrics: Arc<manifests::Metrics>,
    eviction_metrics: Arc<pressure::Metrics>,
    health: Arc<AgentHealth>,
    service_proxy: ProxyLink,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Agent {
    fn new(start: &Start, tasks: TaskTracker, stop: CancellationToken) -> (Self, Receivers) {
        let settings = &start.settings;
        let status = node::status(settings, &start.machine, &start.runtime.about());
        let object = node::object(settings, &node::labels(settings), &status);
        let (pods, updates) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
        let (commands, received_commands) = CommandSender::channel();
        let receivers = Receivers {
            updates,
            commands: received_commands,
        };
        // All components call the runtime through this wrapper, which counts and times operations.
        let runtime_metrics = Arc::new(InstrumentedRuntime::new(Arc::clone(&start.runtime)));
        let agent = Self {
            settings: Arc::clone(settings),
            runtime: Arc::clone(&runtime_metrics) as Arc<dyn Runtime>,
            runtime_metrics,
            cache: Arc::default(),
            node: start.service_proxy.node_sender(object),
            pods,
            commands,
            resolver: Arc::default(),
            pressures: watch::channel(Pressures::default()).0,
            network: watch::channel(starting(settings.pod_network)).0,
            static_pod_metrics: Arc::default(),
            eviction_metrics: Arc::default(),
            health: Arc::clone(&start.health),
            service_proxy: start.service_proxy.clone(),
            tasks,
            stop,
        };
        (agent, receivers)
    }

    /// Returns the Lease, if the agent holds it at its end.
    async fn run(self, receivers: Receivers, start: Start) -> Result<Option<Lease>, StartError> {
        let Some(cluster) = start.cluster else {
            let writer = Writer::new(no_api(), Fence::open());
            self.run_pods(receivers, no_api(), writer, None, vec![Origin::File]);
            self.run_manifests(None, None);
            self.run_eviction(None);
            notify(start.started);
            self.stop.cancelled().await;
            return Ok(None);
        };
        let network = self.open_pod_network()?;
        // Whatever speaks for the node writes through this fence, which only the Lease opens.
        let fence = Fence::closed();
        let writer = Writer::new(cluster.client.clone(), fence.clone());
        let holder = Holder::current(&start.machine);
        let unfenced = Writer::new(cluster.client.clone(), Fence::open());
        let mut lease = Lease::new(unfenced, fence, &self.settings.node_name, holder);
        // Another agent of this name keeps this one from starting; an unreachable API server does not.
        let claimed = match lease.claim(&self.stop).await? {
            Claim::Ours => true,
            Claim::Unknown(_) => false,
            Claim::Stopped => return Ok(None),
        };
        let sources = vec![Origin::File, Origin::Api];
        let recorder = self.recorder(&writer);
        let (client, events) = (cluster.client.clone(), Some(&recorder));
        self.run_pods(receivers, client, writer.clone(), events, sources);
        let mirror = self.run_mirror(&writer);
        self.run_manifests(Some(recorder.clone()), Some(mirror.static_pods));
        self.run_eviction(Some(recorder.clone()));
        self.serve_kubelet_api(start.listener, &cluster)?;
        self.warn_of_expirations(&cluster, recorder.clone());
        notify(start.started);
        if !claimed && !claim_when_reachable(&mut lease, &self.stop).await? {
            return Ok(None);
        }
        self.expect_pod_network().await;
        self.run_pod_network(network, &cluster, &writer, &recorder);
        self.follow_addresses();
        let heartbeat = self.heartbeat(&cluster, writer, recorder);
        self.run_under_lease(&mut lease, &cluster, heartbeat, mirror.mirror_pods)
            .await?;
        Ok(Some(lease))
    }

    /// Registers the node and runs its pods while the Lease is held.
    async fn run_under_lease(
        &self,
        lease: &mut Lease,
        cluster: &Cluster,
        heartbeat: Heartbeat,
        mirror_pods: mpsc::Sender<PodUpdate>,
    ) -> Result<(), LeaseError> {
        let mut renewing = std::pin::pin!(lease.run(self.node.subscribe(), self.stop.clone()));
        tokio::select! {
            ended = &mut renewing => return ended,
            () = self.join(cluster, heartbeat, mirror_pods) => {}
        }
        renewing.await
    }

    /// The pod manager and the rotation of its containers' logs.
    fn run_pods(
        &self,
        receivers: Receivers,
        client: Client,
        writer: Writer,
        recorder: Option<&Recorder>,
        sources: Vec<Origin>,
    ) {
        let settings = Arc::clone(&self.settings);
        let inputs = Inputs::new(client, settings, self.runtime.about());
        inputs.set_node(self.node.subscribe());
        if let Some(recorder) = recorder {
            inputs.set_recorder(recorder.clone());
        }
        let dependencies = Dependencies {
            runtime: Arc::clone(&self.runtime),
            inputs: Arc::new(inputs),
            probes: Arc::new(Prober::new(Arc::clone(&self.runtime))),
            settings: Arc::clone(&self.settings),
            writer,
            cache: Arc::clone(&self.cache),
            node: self.node.subscribe(),
            pressures: self.pressures.subscribe(),
            sources,
        };
        let Receivers { updates, commands } = receivers;
        let manager = manager::run(dependencies, updates, commands, self.stop.clone());
        let health = Arc::clone(&self.health);
        self.tasks
            .spawn(async move { Box::pin(health.watch_manager(manager)).await });
        let health = Arc::clone(&self.health);
        self.tasks
            .spawn(health.watch_runtime(Arc::clone(&self.runtime), self.stop.clone()));
        let (runtime, cache) = (Arc::clone(&self.runtime), Arc::clone(&self.cache));
        let paths = self.settings.paths.clone();
        let rotation =
            kubelet_api::container_logs::rotate(runtime, cache, paths, self.stop.clone());
        self.tasks.spawn(rotation);
    }

    /// Hard and soft eviction thresholds. A runtime without images has no image disk.
    fn thresholds(&self) -> Vec<Threshold> {
        let (hard, soft) = (&self.settings.eviction_hard, &self.settings.eviction_soft);
        let mut all = [hard.as_slice(), soft.as_slice()].concat();
        if !self.runtime.about().images {
            all.retain(|one| !matches!(one.signal, Signal::ImageDisk | Signal::ImageInodes));
        }
        all
    }

    fn serve_kubelet_api(
        &self,
        listener: Option<TcpListener>,
        cluster: &Cluster,
    ) -> Result<(), StartError> {
        let Some(listener) = listener else {
            return Ok(());
        };
        let tls = self.kubelet_api_tls(cluster.authorities.clone())?;
        let mut metrics = vec![
            Arc::clone(&self.static_pod_metrics) as Arc<dyn Observed>,
            Arc::clone(&self.eviction_metrics) as Arc<dyn Observed>,
            Arc::clone(&self.runtime_metrics) as Arc<dyn Observed>,
            Arc::clone(&cluster.expirations) as Arc<dyn Observed>,
        ];
        metrics.extend(self.service_proxy.metrics.clone());
        let context = ServerContext {
            runtime: Arc::clone(&self.runtime),
            pod_cache: Arc::clone(&self.cache),
            settings: Arc::clone(&self.settings),
            client: Some(cluster.client.clone()),
            health: Arc::clone(&self.health),
            metrics,
        };
        self.tasks.spawn(kubelet_api::serve(
            listener,
            tls,
            context,
            self.stop.clone(),
        ));
        Ok(())
    }

    /// The TLS configuration of the kubelet API, which follows the authorities.
    fn kubelet_api_tls(
        &self,
        mut authorities: Authorities,
    ) -> Result<watch::Receiver<Arc<ServerConfig>>, StartError> {
        let resolver = Arc::clone(&self.resolver);
        let current = authorities::parse(&authorities.borrow_and_update())?;
        let (sender, receiver) = watch::channel(resolver.server_config(&current)?);
        let stop = self.stop.clone();
        let follow = async move {
            loop {
                authorities::changed(&mut authorities).await;
                let parsed = authorities::parse(&authorities.borrow_and_update());
                match parsed.and_then(|new| resolver.server_config(&new)) {
                    Ok(config) => drop(sender.send_replace(config)),
                    Err(error) => tracing::warn!("{error}"),
                }
            }
        };
        self.tasks
            .spawn(async move { stop.run_until_cancelled(follow).await });
        Ok(receiver)
    }

    /// Warns of certificates that end soon.
    fn warn_of_expirations(&self, cluster: &Cluster, recorder: Recorder) {
        let expirations = Arc::clone(&cluster.expirations);
        let (name, stop) = (self.settings.node_name.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let warn = expirations.warn(&name, &recorder);
            stop.run_until_cancelled(warn).await
        });
    }

    fn run_manifests(&self, events: Option<Recorder>, mirror: Option<mpsc::Sender<PodUpdate>>) {
        let Some(dir) = &self.settings.manifest_dir else {
            return;
        };
        let manifests = Manifests {
            dir: dir.clone(),
            node_name: self.settings.node_name.clone(),
            runtime: Arc::clone(&self.runtime),
            cache: Arc::clone(&self.cache),
            events,
            metrics: Arc::clone(&self.static_pod_metrics),
            pods: self.pods.clone(),
            mirror,
        };
        self.tasks
            .spawn(manifests::run(manifests, self.stop.clone()));
    }

    fn run_eviction(&self, events: Option<Recorder>) {
        let paths = self.settings.paths.clone();
        let pressure = Pressure {
            meter: Arc::new(pressure::Machine::new(Arc::clone(&self.runtime), paths)),
            cache: Arc::clone(&self.cache),
            commands: self.commands.clone(),
            node_name: self.settings.node_name.clone(),
            events,
            thresholds: self.thresholds(),
            max_pod_grace: self.settings.eviction_max_pod_grace,
            pressures: self.pressures.clone(),
            metrics: Arc::clone(&self.eviction_metrics),
        };
        self.tasks.spawn(pressure::run(pressure, self.stop.clone()));
    }

    /// Starts the manager of mirror pods. Returns where it receives updates.
    fn run_mirror(&self, writer: &Writer) -> MirrorSenders {
        let (static_pods, received_static_pods) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
        let (mirror_pods, received_mirror_pods) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
        let mirror = Mirror {
            writer: writer.clone(),
            node: self.node.subscribe(),
            commands: self.commands.clone(),
            static_pods: received_static_pods,
            mirror_pods: received_mirror_pods,
        };
        self.tasks.spawn(mirror::run(mirror, self.stop.clone()));
        MirrorSenders {
            static_pods,
            mirror_pods,
        }
    }

    /// Records events about the node.
    fn recorder(&self, writer: &Writer) -> Recorder {
        let name = &self.settings.node_name;
        let (recorder, write_events) =
            Recorder::on_node(writer.clone(), "kubelet", name, self.stop.clone());
        self.tasks.spawn(write_events);
        recorder
    }

    fn heartbeat(&self, cluster: &Cluster, writer: Writer, recorder: Recorder) -> Heartbeat {
        Heartbeat {
            client: cluster.client.clone(),
            writer,
            object: (**self.node.borrow()).clone(),
            runtime: Arc::clone(&self.runtime),
            pressures: self.pressures.subscribe(),
            network: self.network.subscribe(),
            settings: Arc::clone(&self.settings),
            services: self.service_proxy.problem.clone(),
            node: self.node.clone(),
            recorder,
            unready: None,
        }
    }

    /// Another agent of this network namespace keeps this one from starting, if a user has asked for the network.
    fn open_pod_network(&self) -> Result<Option<Network>, StartError> {
        if !self
            .settings
            .pod_network
            .is_some_and(|network| network.required)
        {
            return Ok(None);
        }
        Ok(Some(Network::open()?))
    }

    /// Before the node is registered: without a configuration of somebody else, a node whose agent was not told what to do will
    /// get the agent's own network, and takes no pods until then. A node whose runtime does not answer is not ready because of that.
    async fn expect_pod_network(&self) {
        if self.settings.pod_network.is_none() {
            return;
        }
        let places = tokio::time::timeout(CNI_TIMEOUT, self.runtime.cni()).await;
        let Ok(Ok(Some(places))) = places else {
            return;
        };
        if !matches!(places.foreign(), Ok(None)) {
            return;
        }
        self.network.send_if_modified(|state| match state {
            NetworkState::Starting { expected, .. } => !std::mem::replace(expected, true),
            _ => false,
        });
    }

    /// Connects the node's pods to those of other nodes, or takes back what an earlier agent published of that.
    fn run_pod_network(
        &self,
        network: Option<Network>,
        cluster: &Cluster,
        writer: &Writer,
        recorder: &Recorder,
    ) {
        let stop = self.stop.clone();
        let mut node = self.node.subscribe();
        let Some(PodNetwork {
            mode, link_recheck, ..
        }) = self.settings.pod_network
        else {
            let writer = writer.clone();
            let leave = async move {
                let registered = node
                    .wait_for(|node| node["metadata"]["uid"].is_string())
                    .await;
                if let Ok(node) = registered.map(|node| Arc::clone(&node)) {
                    network::withdraw(&writer, &node).await;
                }
            };
            self.tasks
                .spawn(async move { stop.run_until_cancelled(leave).await });
            return;
        };
        let manager = network::Manager {
            name: self.settings.node_name.clone(),
            mode,
            network,
            client: cluster.client.clone(),
            writer: writer.clone(),
            node,
            addresses: self.settings.addresses.subscribe(),
            runtime: Arc::clone(&self.runtime),
            state: self.network.clone(),
            recorder: recorder.clone(),
            paths: self.settings.paths.clone(),
            link_recheck,
        };
        self.tasks
            .spawn(async move { stop.run_until_cancelled(manager.run()).await });
    }

    fn follow_addresses(&self) {
        if self.settings.follow_addresses {
            let (settings, stop) = (Arc::clone(&self.settings), self.stop.clone());
            self.tasks.spawn(async move {
                let follow = settings.addresses.follow(settings.address_peer.as_ref());
                stop.run_until_cancelled(follow).await
            });
        }
    }

    /// Registers the node, then watches its pods and gets its serving certificate.
    async fn join(
        &self,
        cluster: &Cluster,
        heartbeat: Heartbeat,
        mirror_pods: mpsc::Sender<PodUpdate>,
    ) {
        let (registered, mut is_registered) = watch::channel(false);
        self.tasks
            .spawn(heartbeat.run(registered, self.stop.clone()));
        // Fails if the agent stops before.
        if is_registered.wait_for(|done| *done).await.is_err() {
            return;
        }
        self.run_serving_certificate(cluster);
        let (client, name) = (cluster.client.clone(), self.settings.node_name.clone());
        let (pods, stop) = (self.pods.clone(), self.stop.clone());
        self.tasks
            .spawn(async move { source::api(client, &name, pods, mirror_pods, stop).await });
    }

    fn run_serving_certificate(&self, cluster: &Cluster) {
        let settings = &self.settings;
        let certificate = ServingCertificate {
            node: settings.node_name.clone(),
            addresses: settings.addresses.clone(),
            file: settings.paths.data.join("pki").join(SERVING_FILE),
            authorities: cluster.authorities.clone(),
            authorities_sign: cluster.authorities_sign,
            expirations: Arc::clone(&cluster.expirations),
            certifier: Arc::clone(&cluster.certifier),
            server: cluster.server.clone(),
            resolver: Arc::clone(&self.resolver),
        };
        let stop = self.stop.clone();
        self.tasks
            .spawn(async move { stop.run_until_cancelled(certificate.run()).await });
    }
}

/// What the pod manager receives.
struct Receivers {
    updates: mpsc::Receiver<PodUpdate>,
    commands: mpsc::Receiver<Command>,
}

fn starting(network: Option<PodNetwork>) -> NetworkState {
    network.map_or(NetworkState::Off, |PodNetwork { required, .. }| {
        NetworkState::Starting {
            required,
            expected: false,
        }
    })
}

fn notify(started: Option<oneshot::Sender<()>>) {
    if let Some(started) = started {
        // The receiver may have gone away.
        let _ignored = started.send(());
    }
}

/// A client whose requests all fail, for static pods alone.
fn no_api() -> Client {
    let refuse = |_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(std::io::Error::other("there is no API server"))
    };
    Client::new(tower::service_fn(refuse), "default")
}

/// Where the manager of mirror pods receives updates.
struct MirrorSenders {
    static_pods: mpsc::Sender<PodUpdate>,
    mirror_pods: mpsc::Sender<PodUpdate>,
}

/// Tries to take the Lease until the API server can be reached. Returns whether it is ours; it is not if `stop` came before.
async fn claim_when_reachable(
    lease: &mut Lease,
    stop: &CancellationToken,
) -> Result<bool, LeaseError> {
    let mut retry = Backoff::new(CLAIM_RETRY);
    loop {
        match lease.claim(stop).await? {
            Claim::Ours => return Ok(true),
            Claim::Unknown(failure) => tracing::warn!("cannot reach the API server: {failure}"),
            Claim::Stopped => return Ok(false),
        }
        if stop.run_until_cancelled(retry.sleep()).await.is_none() {
            return Ok(false);
        }
    }
}

//! Puts a node together, and takes it apart in order. Everything that a node is made of is named here; what each
//! part does is its own business.
//!
//! ```text
//!   manifests ─┐
//!   API ───────┴▶ keeper ─▶ runtime, inputs, probes
//!                   ▲ orders
//!   pressure ───────┘ └▶ heartbeat ─▶ API ◀─ lease, mirror
//!   look ◀─ server
//! ```
//!
//! What does not need the API starts without it. Told to stop, it leaves the pods running: the next agent takes
//! them up again.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::metrics::Observed;
use kennel_client::write::Writer;
use kennel_core::pod::eviction::{Pressures, Signal, Threshold};
use kube::Client;
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::heartbeat::Heartbeat;
use super::identity::join::SERVING;
use super::identity::rotate::Certifier;
use super::identity::{IdentityError, Showcase};
use super::lease::{Claim, Holder, Lease, LeaseError};
use super::machine::Machine;
use super::node;
use super::serving::Serving;
use super::settings::Settings;
use crate::inputs::Inputs;
use crate::kubelet_api::{self, ServerContext};
use crate::manifests::mirror::{self, Mirror};
use crate::manifests::{self, Manifests};
use crate::pods::{
    CachedPod, Command, CommandSender, Dependencies, Origin, PodCache, PodUpdate, manager, source,
};
use crate::pressure::{self, Pressure};
use crate::probes::Prober;
use crate::runtime::{InstrumentedRuntime, Runtime};

/// How soon an API that could not be reached is asked again.
const RETRY: Duration = Duration::from_secs(2);
/// What the parts get to finish what they are at.
const END: Duration = Duration::from_secs(10);
/// How many changes of pods may wait for each who hears of them.
const WAITING: usize = 64;

/// What a node is made of.
pub struct Start {
    /// How it is to be run.
    pub settings: Arc<Settings>,
    /// What the machine is.
    pub machine: Machine,
    /// What runs its pods.
    pub runtime: Arc<dyn Runtime>,
    /// The cluster it belongs to; none for static pods alone.
    pub cluster: Option<Cluster>,
    /// Where it answers the server.
    pub listener: Option<TcpListener>,
    /// Told when the node looks after its pods. It does so, too, while the server is away.
    pub begun: Option<oneshot::Sender<()>>,
}

/// The cluster that a node belongs to.
pub struct Cluster {
    /// The way to its API.
    pub client: Client,
    /// Whose certificates are believed when somebody asks the node.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Where the certificate comes from that the node serves with.
    pub certifier: Arc<dyn Certifier>,
    /// The server's URL, if it is elsewhere: no certificate is asked for what it is called.
    pub server: Option<String>,
}

/// Why a node could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another agent has its name, or the API refuses it.
    #[error("{0}")]
    Lease(String),
    /// Its certificates are unusable.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl From<LeaseError> for StartError {
    fn from(error: LeaseError) -> Self {
        Self::Lease(error.to_string())
    }
}

/// Runs a node until told to stop.
pub async fn run(start: Start, stop: CancellationToken) -> Result<(), StartError> {
    let stop = stop.child_token();
    let tasks = TaskTracker::new();
    let (assembly, heard) = Assembly::new(&start, tasks.clone(), stop.clone());
    let directory = Arc::clone(&assembly.directory);
    let ended = assembly.run(heard, start).await;
    stop.cancel();
    tasks.close();
    if tokio::time::timeout(END, tasks.wait()).await.is_err() {
        tracing::warn!("some parts of the node did not end in time");
    }
    let alive = |view: &&Arc<CachedPod>| view.observed.running().next().is_some();
    let left = directory.all().iter().filter(alive).count();
    if left > 0 {
        tracing::info!("{left} pods keep running; the next agent takes them up again");
    }
    ended
}

/// What the parts of a node share.
struct Assembly {
    settings: Arc<Settings>,
    runtime: Arc<dyn Runtime>,
    /// Numbers about the runtime.
    operations: Arc<InstrumentedRuntime>,
    directory: Arc<PodCache>,
    /// The node's own object, as far as it is known.
    node: watch::Sender<Arc<Value>>,
    pods: mpsc::Sender<PodUpdate>,
    orders: CommandSender,
    showcase: Arc<Showcase>,
    /// What the machine lacks.
    pressures: watch::Sender<Pressures>,
    /// Numbers about static pods.
    files: Arc<manifests::Metrics>,
    /// Numbers about evictions.
    evictions: Arc<pressure::Metrics>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Assembly {
    fn new(start: &Start, tasks: TaskTracker, stop: CancellationToken) -> (Self, Heard) {
        let settings = &start.settings;
        let status = node::status(settings, &start.machine, &start.runtime.about());
        let object = node::object(settings, &node::labels(settings), &status);
        let (pods, changes) = mpsc::channel(WAITING);
        let (orders, ordered) = CommandSender::channel();
        let heard = Heard { changes, ordered };
        let operations = Arc::new(InstrumentedRuntime::new(Arc::clone(&start.runtime)));
        let assembly = Self {
            settings: Arc::clone(settings),
            runtime: Arc::clone(&operations) as Arc<dyn Runtime>,
            operations,
            directory: Arc::default(),
            node: watch::channel(Arc::new(object)).0,
            pods,
            orders,
            showcase: Arc::default(),
            pressures: watch::channel(Pressures::default()).0,
            files: Arc::default(),
            evictions: Arc::default(),
            tasks,
            stop,
        };
        (assembly, heard)
    }

    async fn run(self, heard: Heard, start: Start) -> Result<(), StartError> {
        let Some(cluster) = start.cluster else {
            self.keep_pods(heard, nobody(), None, vec![Origin::File]);
            self.run_files(None, None);
            self.stay_alive(None);
            tell(start.begun);
            self.stop.cancelled().await;
            return Ok(());
        };
        let writer = Writer::new(cluster.client.clone(), Fence::open());
        let holder = Holder::own(&start.machine);
        let lease = Lease::new(writer.clone(), &self.settings.node_name, holder);
        // Another agent of this name is a reason not to begin; silence is none.
        let known = matches!(lease.ask().await?, Claim::Ours);
        let sources = vec![Origin::File, Origin::Api];
        let recorder = self.recorder(&writer);
        self.keep_pods(heard, cluster.client.clone(), Some(&recorder), sources);
        let mirrored = self.mirror(&writer);
        self.run_files(Some(recorder.clone()), Some(mirrored.statics));
        self.stay_alive(Some(recorder.clone()));
        self.look(start.listener, &cluster)?;
        tell(start.begun);
        if !known {
            claim(&lease, &self.stop).await?;
        }
        let heartbeat = self.heartbeat(&cluster, writer, recorder);
        self.join(&cluster, heartbeat, mirrored.mirrors).await;
        let uid = || {
            let node = self.node.borrow();
            node["metadata"]["uid"].as_str().map(str::to_owned)
        };
        Ok(lease.keep(uid, self.stop.clone()).await?)
    }

    /// The pods, wherever they come from.
    fn keep_pods(
        &self,
        heard: Heard,
        client: Client,
        recorder: Option<&Recorder>,
        sources: Vec<Origin>,
    ) {
        let settings = Arc::clone(&self.settings);
        let inputs = Inputs::new(client.clone(), settings, self.runtime.about());
        inputs.set_node(self.node.subscribe());
        if let Some(recorder) = recorder {
            inputs.set_recorder(recorder.clone());
        }
        let dependencies = Dependencies {
            runtime: Arc::clone(&self.runtime),
            inputs: Arc::new(inputs),
            probes: Arc::new(Prober::new(Arc::clone(&self.runtime))),
            settings: Arc::clone(&self.settings),
            client,
            cache: Arc::clone(&self.directory),
            node: self.node.subscribe(),
            pressures: self.pressures.subscribe(),
            sources,
        };
        let keeping = manager::run(
            dependencies,
            heard.changes,
            heard.ordered,
            self.stop.clone(),
        );
        self.tasks.spawn(keeping);
        let (runtime, directory) = (Arc::clone(&self.runtime), Arc::clone(&self.directory));
        let paths = self.settings.paths.clone();
        let cutting =
            kubelet_api::container_logs::rotate(runtime, directory, paths, self.stop.clone());
        self.tasks.spawn(cutting);
    }

    /// What must be kept free. Where there are no images, there is no disk of images to keep free.
    fn thresholds(&self) -> Vec<Threshold> {
        let (hard, soft) = (&self.settings.eviction_hard, &self.settings.eviction_soft);
        let mut all = [hard.as_slice(), soft.as_slice()].concat();
        if !self.runtime.about().images {
            all.retain(|one| !matches!(one.signal, Signal::ImageDisk | Signal::ImageInodes));
        }
        all
    }

    /// Looking in: logs, exec and the like.
    fn look(&self, listener: Option<TcpListener>, cluster: &Cluster) -> Result<(), StartError> {
        let Some(listener) = listener else {
            return Ok(());
        };
        let tls = Arc::clone(&self.showcase).server(&cluster.authorities)?;
        let context = ServerContext {
            runtime: Arc::clone(&self.runtime),
            pod_cache: Arc::clone(&self.directory),
            settings: Arc::clone(&self.settings),
            client: Some(cluster.client.clone()),
            metrics: vec![
                Arc::clone(&self.files) as Arc<dyn Observed>,
                Arc::clone(&self.evictions) as Arc<dyn Observed>,
                Arc::clone(&self.operations) as Arc<dyn Observed>,
            ],
        };
        self.tasks.spawn(kubelet_api::serve(
            listener,
            tls,
            context,
            self.stop.clone(),
        ));
        Ok(())
    }

    /// Static pods.
    fn run_files(&self, events: Option<Recorder>, shown: Option<mpsc::Sender<PodUpdate>>) {
        let Some(dir) = &self.settings.manifest_dir else {
            return;
        };
        let manifests = Manifests {
            dir: dir.clone(),
            node_name: self.settings.node_name.clone(),
            runtime: Arc::clone(&self.runtime),
            directory: Arc::clone(&self.directory),
            events,
            metrics: Arc::clone(&self.files),
            pods: self.pods.clone(),
            shown,
        };
        self.tasks
            .spawn(manifests::watch(manifests, self.stop.clone()));
    }

    /// Memory and disks that run full.
    fn stay_alive(&self, events: Option<Recorder>) {
        let paths = self.settings.paths.clone();
        let pressure = Pressure {
            meter: Arc::new(pressure::Machine::new(Arc::clone(&self.runtime), paths)),
            directory: Arc::clone(&self.directory),
            orders: self.orders.clone(),
            node_name: self.settings.node_name.clone(),
            events,
            thresholds: self.thresholds(),
            max_pod_grace: self.settings.eviction_max_pod_grace,
            pressures: self.pressures.clone(),
            metrics: Arc::clone(&self.evictions),
        };
        self.tasks
            .spawn(pressure::keep(pressure, self.stop.clone()));
    }

    /// What the API shows of static pods.
    fn mirror(&self, writer: &Writer) -> Mirrored {
        let (statics, of_files) = mpsc::channel(WAITING);
        let (mirrors, of_api) = mpsc::channel(WAITING);
        let mirror = Mirror {
            writer: writer.clone(),
            node: self.node.subscribe(),
            orders: self.orders.clone(),
            statics: of_files,
            mirrors: of_api,
        };
        self.tasks.spawn(mirror::keep(mirror, self.stop.clone()));
        Mirrored { statics, mirrors }
    }

    /// Events of the node.
    fn recorder(&self, writer: &Writer) -> Recorder {
        let name = &self.settings.node_name;
        let (recorder, recording) =
            Recorder::on_node(writer.clone(), "kubelet", name, self.stop.clone());
        self.tasks.spawn(recording);
        recorder
    }

    /// What tells the cluster how the node is.
    fn heartbeat(&self, cluster: &Cluster, writer: Writer, recorder: Recorder) -> Heartbeat {
        Heartbeat {
            client: cluster.client.clone(),
            writer,
            object: (**self.node.borrow()).clone(),
            runtime: Arc::clone(&self.runtime),
            pressures: self.pressures.subscribe(),
            node: self.node.clone(),
            recorder,
        }
    }

    /// Becomes a node of the cluster: registers, hears of pods, gets its certificate.
    async fn join(
        &self,
        cluster: &Cluster,
        heartbeat: Heartbeat,
        mirrors: mpsc::Sender<PodUpdate>,
    ) {
        let (registered, mut is_registered) = watch::channel(false);
        self.tasks
            .spawn(heartbeat.run(registered, self.stop.clone()));
        // Fails when told to stop before.
        if is_registered.wait_for(|done| *done).await.is_err() {
            return;
        }
        self.serve(cluster);
        let (client, name) = (cluster.client.clone(), self.settings.node_name.clone());
        let (pods, stop) = (self.pods.clone(), self.stop.clone());
        self.tasks
            .spawn(async move { source::api(client, &name, pods, mirrors, stop).await });
    }
}

impl Assembly {
    /// The certificate to serve with.
    fn serve(&self, cluster: &Cluster) {
        let settings = &self.settings;
        let serving = Serving {
            node: settings.node_name.clone(),
            addresses: settings.addresses.clone(),
            file: settings.paths.data.join("pki").join(SERVING),
            authorities: cluster.authorities.clone(),
            certifier: Arc::clone(&cluster.certifier),
            server: cluster.server.clone(),
            showcase: Arc::clone(&self.showcase),
        };
        let stop = self.stop.clone();
        self.tasks
            .spawn(async move { stop.run_until_cancelled(serving.keep()).await });
    }
}

/// What the keeper of pods hears.
struct Heard {
    changes: mpsc::Receiver<PodUpdate>,
    ordered: mpsc::Receiver<Command>,
}

/// Says that the node has begun, if somebody waits for that.
fn tell(begun: Option<oneshot::Sender<()>>) {
    if let Some(begun) = begun {
        // Who went away need not know.
        let _unheard = begun.send(());
    }
}

/// A client of no API at all, for static pods alone.
fn nobody() -> Client {
    let refuse = |_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(std::io::Error::other("there is no server"))
    };
    Client::new(tower::service_fn(refuse), "default")
}

/// Where to tell what the API shows of static pods, or should.
struct Mirrored {
    /// The files' pods.
    statics: mpsc::Sender<PodUpdate>,
    /// What the API has of them.
    mirrors: mpsc::Sender<PodUpdate>,
}

/// Waits until it is sure that nobody else speaks for the node.
async fn claim(lease: &Lease, stop: &CancellationToken) -> Result<(), StartError> {
    loop {
        match lease.ask().await? {
            Claim::Ours => return Ok(()),
            Claim::Unknown(failure) => tracing::warn!("the API cannot be reached: {failure}"),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

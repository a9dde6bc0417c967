//! Turns the flags of a node into its settings, runtime and listener, for `kennel agent` and `kennel up`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use kennel_core::pod_network::Mode;
use kennel_node::agent::addresses::own_address;
use kennel_node::agent::{
    Addresses, ApiAddress, Machine, Paths, PodNetwork, RuntimeRecord, Settings,
};
use kennel_node::cleanup::Resources;
use kennel_node::pressure::thresholds;
use kennel_node::runtime::Runtime;
use kennel_node::runtime::cri::Cri;
use kennel_node::runtime::fake::FakeRuntime;
use kennel_node::runtime::process::{self, Process};
use tokio::net::TcpListener;

use crate::args::{NetworkMode, NodeArgs, RuntimeKind};
use crate::runtime_choice::{self, SelectedRuntime, choose};

/// The default directory of static pods.
const DEFAULT_MANIFEST_DIR: &str = "/etc/kennel/manifests";
/// Where log collectors look for logs.
const DEFAULT_LOG_DIR: &str = "/var/log";

/// Settings that do not come from [`NodeArgs`].
pub struct Place {
    /// The data directory.
    pub data: PathBuf,
    pub api: Option<ApiAddress>,
    /// The address of the kubelet API.
    pub listen: SocketAddr,
    /// The domain of Services.
    pub cluster_domain: String,
    /// [`NodeRuntime::choice`].
    pub runtime: String,
    /// Whether the cluster assigns pod ranges: not known of one that only a kubeconfig leads to.
    pub joined: bool,
    /// A destination that the machine reaches from the node's address, if not the internet.
    pub address_peer: Option<ApiAddress>,
    /// Whether the agent routes the packets of services.
    pub service_proxy: bool,
}

/// The Node's annotation that shows which runtime was chosen, also while that does not answer.
const RUNTIME_ANNOTATION: &str = "agent.kennel.dev/runtime";

/// The node's name: the flag, or the host name.
pub fn name(args: &NodeArgs, machine: &Machine) -> anyhow::Result<String> {
    let name = args.node_name.clone();
    let name = name.unwrap_or_else(|| machine.node_name());
    let allowed = |one: char| matches!(one, 'a'..='z' | '0'..='9' | '-' | '.');
    let is_name = name.starts_with(|one: char| one.is_ascii_alphanumeric())
        && name.ends_with(|one: char| one.is_ascii_alphanumeric())
        && name.chars().all(allowed)
        && name.len() <= 253;
    anyhow::ensure!(
        is_name,
        "{name:?} is not a valid node name: it must consist of lower case letters, digits, '-' and '.'; choose one with \
         --node-name"
    );
    Ok(name)
}

/// The node's addresses: the flag, or the address that reaches the API server.
pub async fn addresses(args: &NodeArgs, api: Option<&ApiAddress>) -> Vec<IpAddr> {
    if !args.node_ip.is_empty() {
        return args.node_ip.clone();
    }
    vec![own_address(api).await]
}

/// How the agent is to connect pods. `joined`: the cluster assigns pod ranges, as far as the agent knows.
fn pod_network(args: &NodeArgs, joined: bool, runtime: &str) -> anyhow::Result<Option<PodNetwork>> {
    let is_root = rustix::process::geteuid().is_root();
    let link_recheck = args.link_recheck_seconds.map(Duration::from_secs);
    let network = |mode, required| PodNetwork {
        mode,
        required,
        link_recheck: link_recheck.unwrap_or(PodNetwork::LINK_RECHECK),
    };
    let mode = match args.network {
        Some(NetworkMode::None) => return Ok(None),
        Some(NetworkMode::Auto) => Mode::Auto,
        Some(NetworkMode::HostGw) => Mode::HostGw,
        Some(NetworkMode::Vxlan) => Mode::Vxlan,
        None => {
            let has_pods = joined && runtime.starts_with("cri ");
            if has_pods && !is_root {
                tracing::info!("not root, so the agent manages no pod network");
            }
            return Ok((has_pods && is_root).then(|| network(Mode::Auto, false)));
        }
    };
    anyhow::ensure!(
        is_root,
        "--network needs root, who may change routes: start the agent as root, or with --network=none"
    );
    Ok(Some(network(mode, true)))
}

pub fn settings(
    args: &NodeArgs,
    name: String,
    addresses: Vec<IpAddr>,
    place: Place,
) -> anyhow::Result<Settings> {
    let soft = args.eviction_soft.as_ref();
    let soft = soft.map_or(&[][..], |soft| soft.0.as_slice());
    let settings = Settings {
        node_name: name,
        addresses: Addresses::new(addresses),
        follow_addresses: args.node_ip.is_empty(),
        address_peer: place.address_peer,
        pod_network: pod_network(args, place.joined, &place.runtime)?,
        paths: Paths {
            logs: logs(args.log_dir.as_deref(), &place.data),
            data: place.data,
        },
        labels: args.node_labels.iter().cloned().collect(),
        annotations: BTreeMap::from([(RUNTIME_ANNOTATION.to_owned(), place.runtime)]),
        taints: args.register_with_taints.clone(),
        listen: place.listen,
        cluster_dns: args.cluster_dns.clone(),
        service_proxy: place.service_proxy,
        cluster_domain: place.cluster_domain,
        api: place.api,
        manifest_dir: Some(manifests(args)),
        max_pods: args.max_pods,
        eviction_hard: args.eviction_hard.0.clone(),
        eviction_soft: thresholds::with_grace_periods(soft, &args.eviction_soft_grace_period)
            .context("--eviction-soft")?,
        eviction_max_pod_grace: Duration::from_secs(args.eviction_max_pod_grace_period.into()),
    };
    Ok(settings)
}

fn manifests(args: &NodeArgs) -> PathBuf {
    let given = args.manifest_dir.as_deref();
    absolute(given.unwrap_or(Path::new(DEFAULT_MANIFEST_DIR)))
}

/// Paths that containers and their shims get must not depend on our working directory.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// `given` is the value of `--log-dir`.
fn logs(given: Option<&Path>, data: &Path) -> PathBuf {
    if let Some(dir) = given {
        return absolute(dir);
    }
    if rustix::process::geteuid().is_root() {
        PathBuf::from(DEFAULT_LOG_DIR)
    } else {
        data.join("logs")
    }
}

/// A runtime, and what to show of its choice.
pub struct NodeRuntime {
    pub runtime: Arc<dyn Runtime>,
    /// Such as `cri unix:///run/containerd/containerd.sock`.
    pub choice: String,
}

/// Opens the runtime that the flags select, or the one that this node has used before, or the one that is found; records the
/// choice and logs it. A container runtime need not run yet: until it does, the node is not ready.
pub async fn runtime(args: &NodeArgs, data: &Path) -> anyhow::Result<NodeRuntime> {
    let before = runtime_choice::used_before(data)?;
    let choice = choose(
        args.runtime,
        args.cri_socket.as_deref(),
        before.as_ref(),
        Path::exists,
    );
    runtime_choice::record(&choice, data).await?;
    let runtime = open(&choice.kind, data, args.pod_max_pids)?;
    Resources::add(data, choice.socket(), &logs(args.log_dir.as_deref(), data))
        .with_context(|| format!("cannot write to {}", data.display()))?;
    if choice.is_doubtful {
        tracing::warn!("using the runtime {}: {}", choice.kind, choice.reason);
    } else {
        tracing::info!("using the runtime {}: {}", choice.kind, choice.reason);
    }
    Ok(NodeRuntime {
        runtime,
        choice: choice.kind.to_string(),
    })
}

/// What an agent used outside of its data directory: what it recorded, or else what an agent with these values of
/// `--cri-socket` and `--log-dir` uses. Values that are given are added to the record.
pub fn resources(
    recorded: Option<Resources>,
    socket: Option<&str>,
    log_dir: Option<&Path>,
    data: &Path,
) -> Resources {
    let is_recorded = recorded.is_some();
    let mut resources = recorded.unwrap_or_default();
    if !is_recorded || socket.is_some() {
        let choice = choose(RuntimeKind::Auto, socket, None, Path::exists);
        let socket = choice.socket().map(Path::to_owned);
        resources.cri_sockets.extend(socket);
    }
    if !is_recorded || log_dir.is_some() {
        resources.log_dirs.insert(logs(log_dir, data));
    }
    resources
}

fn open(
    kind: &SelectedRuntime,
    data: &Path,
    pod_pids_limit: u64,
) -> anyhow::Result<Arc<dyn Runtime>> {
    match kind {
        SelectedRuntime::Simulated => Ok(Arc::new(FakeRuntime::new())),
        SelectedRuntime::Real(RuntimeRecord::Cri { socket }) => {
            Ok(Arc::new(Cri::new(socket, data)))
        }
        SelectedRuntime::Real(RuntimeRecord::Process) => {
            let options = process::Options {
                data: data.to_owned(),
                shim: own_binary()?,
                pod_pids_limit,
            };
            let context = || format!("cannot run processes below {}", data.display());
            Ok(Arc::new(Process::open(options).with_context(context)?))
        }
    }
}

/// The path of this program, which starts containers; after an upgrade, the path of its replacement. Read once: a
/// thread with another mount namespace or root would get a wrong path.
pub fn own_binary() -> anyhow::Result<PathBuf> {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = PATH.get() {
        return Ok(path.clone());
    }
    let path = std::env::current_exe().context("cannot find the path of this program")?;
    let text = path.to_string_lossy();
    let path = text
        .strip_suffix(" (deleted)")
        .map_or(path.clone(), PathBuf::from);
    Ok(PATH.get_or_init(|| path).clone())
}

/// `flag` is named in the error.
pub async fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let context = || format!("cannot listen on {address}; choose another address with {flag}");
    TcpListener::bind(address).await.with_context(context)
}

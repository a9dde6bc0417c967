//! What a real node needs to start, from what was said on the command line: for `kennel agent`, and for the node in
//! `kennel up`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use kennel_node::agent::choose::{Asked, Kind, choose};
use kennel_node::agent::{ApiAddress, Machine, Paths, Settings, machine};
use kennel_node::pressure::thresholds;
use kennel_node::runtime::Runtime;
use kennel_node::runtime::cri::Cri;
use kennel_node::runtime::fake::FakeRuntime;
use kennel_node::runtime::process::{self, Process};
use tokio::net::TcpListener;

use crate::args::{NodeArgs, RuntimeKind};

/// Where static pods are unless somebody says otherwise.
const MANIFESTS: &str = "/etc/kennel/manifests";
/// Where log collectors look for logs.
const LOGS: &str = "/var/log";

/// The longest wait between two looks for a container runtime.
const RUNTIME_WAIT_MAX: Duration = Duration::from_secs(15);

/// What is known of a node before its flags are read.
pub struct Place {
    /// Where it keeps its things.
    pub data: PathBuf,
    /// Where the API is.
    pub api: Option<ApiAddress>,
    /// Where it answers.
    pub listen: SocketAddr,
    /// The domain of services' names.
    pub cluster_domain: String,
}

/// The node's name.
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
        "{name:?} cannot be a node's name: it may have small letters, digits, - and . only; choose one with \
         --node-name"
    );
    Ok(name)
}

/// The node's addresses.
pub async fn addresses(args: &NodeArgs, api: Option<&ApiAddress>) -> Vec<IpAddr> {
    if !args.node_ip.is_empty() {
        return args.node_ip.clone();
    }
    let peer = match api {
        Some(api) => {
            let found = tokio::net::lookup_host((api.host.as_str(), api.port)).await;
            found.ok().and_then(|mut found| found.next())
        }
        None => None,
    };
    vec![machine::address(peer)]
}

/// How the node is to be run.
pub fn settings(
    args: &NodeArgs,
    name: String,
    addresses: Vec<IpAddr>,
    place: Place,
) -> anyhow::Result<Settings> {
    let taints = args.register_with_taints.iter();
    let soft = args.eviction_soft.as_ref();
    let soft = soft.map_or(&[][..], |soft| soft.0.as_slice());
    let settings = Settings {
        node_name: name,
        addresses,
        paths: Paths {
            logs: logs(args, &place.data),
            data: place.data,
        },
        labels: args.node_labels.iter().cloned().collect(),
        taints: taints.map(|taint| taint.0.clone()).collect(),
        listen: place.listen,
        cluster_dns: args.cluster_dns.clone(),
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
    absolute(given.unwrap_or(Path::new(MANIFESTS)))
}

/// What containers and their shims are told must not depend on where we were started.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn logs(args: &NodeArgs, data: &Path) -> PathBuf {
    if let Some(dir) = &args.log_dir {
        return absolute(dir);
    }
    if rustix::process::geteuid().is_root() {
        PathBuf::from(LOGS)
    } else {
        data.join("logs")
    }
}

/// Opens the runtime that was asked for, or that there is, and says which.
pub async fn runtime(args: &NodeArgs, data: &Path) -> anyhow::Result<Arc<dyn Runtime>> {
    let asked = match args.runtime {
        RuntimeKind::Auto => Asked::Auto,
        RuntimeKind::Cri => Asked::Cri,
        RuntimeKind::Process => Asked::Process,
        RuntimeKind::Simulated => Asked::Simulated,
    };
    let choice = choose(asked, args.cri_socket.as_deref(), Path::exists);
    let runtime = open(&choice.kind, data).await?;
    let about = runtime.about();
    tracing::info!(
        "pods are run by {} {}: {}",
        about.name,
        about.version,
        choice.why
    );
    Ok(runtime)
}

async fn open(kind: &Kind, data: &Path) -> anyhow::Result<Arc<dyn Runtime>> {
    match kind {
        Kind::Simulated => Ok(Arc::new(FakeRuntime::new())),
        Kind::Cri(socket) => Ok(Arc::new(container_runtime(socket).await)),
        Kind::Process => {
            let options = process::Options {
                data: data.to_owned(),
                shim: own_binary()?,
            };
            let words = || format!("cannot run processes below {}", data.display());
            Ok(Arc::new(Process::open(options).with_context(words)?))
        }
    }
}

/// Where our own program is, which containers are started with: the one that took its place if it was upgraded.
/// Found out once: below another root, threads with mounts of their own are told a path that leads nowhere.
pub fn own_binary() -> anyhow::Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = FOUND.get() {
        return Ok(path.clone());
    }
    let path = std::env::current_exe().context("where this program is cannot be told")?;
    let text = path.to_string_lossy();
    let path = text
        .strip_suffix(" (deleted)")
        .map_or(path.clone(), PathBuf::from);
    Ok(FOUND.get_or_init(|| path).clone())
}

/// Connects to a container runtime, and waits for one that is not there yet: on a machine that boots, it may start
/// after us.
async fn container_runtime(socket: &Path) -> Cri {
    let mut wait = Duration::from_secs(1);
    loop {
        match Cri::connect(socket).await {
            Ok(runtime) => return runtime,
            Err(error) => tracing::warn!("waiting for the container runtime: {error}"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RUNTIME_WAIT_MAX);
    }
}

/// Listens for the server.
pub async fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let words = || format!("cannot listen on {address}; choose another address with {flag}");
    TcpListener::bind(address).await.with_context(words)
}

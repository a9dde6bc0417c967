//! The command line flags of a node, for `kennel agent` and `kennel up`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kennel_core::duration;
pub use kennel_core::taint::Taint;
use kennel_core::taint::TaintEffect;
use kennel_node::pressure::{Signal, Threshold, ThresholdError, thresholds};
use kennel_node::runtime::process::POD_PIDS_LIMIT_DEFAULT;

use crate::flag_values::{listen_address, server_url};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The node")]
pub struct NodeArgs {
    /// The runtime that runs the pods. It is chosen once: later starts use the same one, and another one only with this flag
    /// and when the first has no pods
    #[arg(long, value_enum, default_value_t, value_name = "RUNTIME")]
    pub runtime: RuntimeKind,

    /// The socket of a CRI v1 container runtime
    /// [default: that of earlier starts, or /run/containerd/containerd.sock if it exists]
    #[arg(long, value_name = "PATH")]
    pub cri_socket: Option<String>,

    /// The node's name [default: the host name in lower case]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,

    /// The node's addresses; the server uses the first one
    /// [default: the address of the default route]
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS")]
    pub node_ip: Vec<IpAddr>,

    /// How pods reach the pods of other nodes
    /// [default: auto for root with a container runtime in a cluster that it has joined, else none]
    #[arg(long, value_enum, value_name = "MODE")]
    pub network: Option<NetworkMode>,

    /// The shortest time between probes of a link with direct routes; for tests
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub link_recheck_seconds: Option<u64>,

    /// Service proxy: what routes packets of services on this machine [default: nftables for root, else none]
    #[arg(long, env = "KENNEL_PROXY", value_enum, value_name = "PROXY")]
    pub proxy: Option<ProxyMode>,

    /// Labels of the node, such as `rack=12,disk=ssd`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE", value_parser = parse_label)]
    pub node_labels: Vec<(String, String)>,

    /// Taints to register a new node with, such as `dedicated=logs:NoSchedule`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE:EFFECT", value_parser = parse_taint)]
    pub register_with_taints: Vec<Taint>,

    /// Maximum number of pods on the node
    #[arg(long, default_value_t = 110, value_name = "PODS")]
    pub max_pods: u32,

    /// Maximum number of processes and threads of a pod, with the process runtime; 0 for no limit
    #[arg(long, default_value_t = POD_PIDS_LIMIT_DEFAULT, value_name = "PIDS")]
    pub pod_max_pids: u64,

    /// Hard eviction thresholds: pods are evicted when less is available; other signals are ignored
    #[arg(long, default_value_t, value_name = "SIGNAL<AMOUNT,…", value_parser = parse_thresholds)]
    pub eviction_hard: Thresholds,

    /// Soft eviction thresholds: pods are evicted when less is available for longer than `--eviction-soft-grace-period`
    #[arg(long, value_name = "SIGNAL<AMOUNT,…", value_parser = parse_thresholds, requires = "eviction_soft_grace_period")]
    pub eviction_soft: Option<Thresholds>,

    /// Grace period of each soft eviction threshold: `memory.available=90s,nodefs.available=2m`
    #[arg(long, value_delimiter = ',', value_name = "SIGNAL=TIME", value_parser = parse_grace_period)]
    pub eviction_soft_grace_period: Vec<(Signal, Duration)>,

    /// Maximum termination grace period of pods that a soft eviction threshold evicts
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub eviction_max_pod_grace_period: u32,

    /// The directory of static pod manifests, which run with or without a server
    /// [default: /etc/kennel/manifests]
    #[arg(long, value_name = "DIR")]
    pub manifest_dir: Option<PathBuf>,

    /// The directory of container logs, in `pods` and `containers` [default: /var/log for root, else `logs` in
    /// the data directory]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// Name servers of pods with the DNS policy `ClusterFirst`
    /// [default: the Service kube-system/kube-dns, if this agent carries the traffic of services]
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS")]
    pub cluster_dns: Vec<IpAddr>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RuntimeKind {
    /// The runtime of earlier starts; at first `cri` if a container runtime's socket is found, else `process`
    #[default]
    Auto,
    /// A container runtime, such as containerd
    Cri,
    /// Plain processes of this machine: no container engine is needed
    Process,
    /// No containers: pods follow a simulated lifecycle
    Simulated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetworkMode {
    /// Direct routes to nodes on the same link where a probe through them answers, VXLAN to the others
    Auto,
    /// Direct routes: all nodes are on one link
    HostGw,
    /// VXLAN to all nodes
    Vxlan,
    /// The agent changes nothing: for CNI daemons such as flannel, Calico and Cilium, and for pods with the host's network
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProxyMode {
    /// The agent, by rules of its own in the kernel's nftables
    Nftables,
    /// No proxy, or one that is not part of this agent, such as kube-proxy or Cilium
    None,
}

/// Eviction thresholds.
#[derive(Clone, Debug)]
pub struct Thresholds(pub Vec<Threshold>);

impl Default for Thresholds {
    fn default() -> Self {
        Self(thresholds::defaults())
    }
}

impl fmt::Display for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(","))
    }
}

fn parse_thresholds(text: &str) -> Result<Thresholds, ThresholdError> {
    thresholds::parse(text).map(Thresholds)
}

/// Why the value of a flag is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// The expected form.
    #[error("it does not have the form {0}")]
    Form(&'static str),
    #[error(transparent)]
    Signal(#[from] ThresholdError),
    #[error("it is not a duration such as 90s or 1m30s")]
    Duration,
    #[error("{0} is not an effect: use NoSchedule, PreferNoSchedule or NoExecute")]
    Effect(String),
}

fn parse_grace_period(text: &str) -> Result<(Signal, Duration), InvalidValue> {
    let (signal, time) = text
        .split_once('=')
        .ok_or(InvalidValue::Form("SIGNAL=TIME"))?;
    let signal = Signal::parse(signal.trim())?;
    let time = duration::parse(time.trim()).ok_or(InvalidValue::Duration)?;
    Ok((signal, time))
}

fn parse_label(text: &str) -> Result<(String, String), InvalidValue> {
    let (key, value) = text
        .split_once('=')
        .ok_or(InvalidValue::Form("KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn parse_taint(text: &str) -> Result<Taint, InvalidValue> {
    let (taint, effect) = text
        .rsplit_once(':')
        .ok_or(InvalidValue::Form("KEY=VALUE:EFFECT"))?;
    let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
    let unknown = || InvalidValue::Effect(effect.to_owned());
    let effect = TaintEffect::parse(effect).ok_or_else(unknown)?;
    Ok(Taint {
        value: value.to_owned(),
        ..Taint::new(key, effect)
    })
}

#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// The server to join, as `kennel token create` prints it; stored after the first time
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig", value_parser = server_url)]
    pub server: Option<String>,

    /// The bootstrap token to join with; not needed once the node has its certificate. All users of this machine can read
    /// the command line of a process: use the variable or --token-file
    #[arg(
        long,
        env = "KENNEL_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub token: Option<String>,

    /// The file with the bootstrap token
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,

    /// The expected hash of the server's certificate authority, `sha256:…`
    #[arg(long, value_name = "HASH")]
    pub ca_hash: Option<String>,

    /// Use the current context of this kubeconfig, of any Kubernetes API, instead of joining
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The directory of the agent's certificates and of pod volumes
    #[arg(long, default_value = "/var/lib/kennel/agent", value_name = "DIR")]
    pub data_dir: PathBuf,

    /// The address of the kubelet API (logs, exec, port-forward, metrics); port 0 chooses a free port
    #[arg(long, default_value = "0.0.0.0:10250", value_name = "ADDRESS", value_parser = listen_address)]
    pub listen: SocketAddr,

    /// The DNS domain of Services
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub cluster_domain: String,

    /// End the pods of this node and delete its files, instead of running it: see `kennel reset`
    #[arg(long)]
    pub cleanup: bool,

    /// With --cleanup, do not ask
    #[arg(long, requires = "cleanup")]
    pub yes: bool,

    #[command(flatten)]
    pub node: NodeArgs,

    #[command(flatten)]
    pub simulated: SimulatedArgs,
}

impl AgentArgs {
    /// Whether to simulate nodes instead of running this machine as one.
    pub fn simulates_nodes(&self) -> bool {
        !self.cleanup
            && self.node.runtime == RuntimeKind::Simulated
            && self.node.node_name.is_none()
            && self.server.is_none()
    }
}

/// The same as `kennel_simulation::NODES_MAX`, which the agent program does not link.
pub const SIMULATED_NODES_MAX: u32 = 122_878;

/// Apply with `--runtime=simulated` and without `--node-name`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulated nodes (--runtime=simulated)")]
pub struct SimulatedArgs {
    /// Number of nodes to simulate
    #[arg(long, default_value_t = 1, value_name = "NODES",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SIMULATED_NODES_MAX)))]
    pub count: u32,

    /// Prefix of the nodes' names; their number follows
    #[arg(long, default_value = "sim-", value_name = "PREFIX")]
    pub node_prefix: String,

    /// The number of the first node, which also determines addresses; for several agents in a cluster
    #[arg(long, default_value_t = 1, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SIMULATED_NODES_MAX)))]
    pub first: u32,

    #[command(flatten)]
    pub scenario: ScenarioArgs,
}

#[derive(Clone, Debug, Args)]
pub struct ScenarioArgs {
    /// The scenario of simulated nodes and their pods: a YAML file, or the name of a built-in one, such as
    /// `bad-release`; see docs/reference/simulation.md [default: every pod is ready at once]
    #[arg(long, value_name = "FILE|NAME")]
    pub scenario: Option<PathBuf>,

    /// Seed of the scenario's random choices: the same seed gives the same run
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_parse_like_the_kubelets_flag() {
        let check = |text: &str, expected: Option<Taint>| {
            assert_eq!(parse_taint(text).ok(), expected, "{text}");
        };
        let whole = Taint {
            value: "c".into(),
            ..Taint::new("a/b", "NoSchedule")
        };
        check("a/b=c:NoSchedule", Some(whole));
        let bare = Taint::new("a", "NoExecute");
        check("a:NoExecute", Some(bare.clone()));
        check("a=:NoExecute", Some(bare));
        check("a=b:Never", None);
        check("a=b", None);
    }

    #[test]
    fn soft_eviction_grace_periods_parse() {
        let check = |text: &str, expected: Result<(Signal, u64), &str>| {
            let expected = expected.map(|(signal, seconds)| (signal, Duration::from_secs(seconds)));
            let found = parse_grace_period(text).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        };
        check("memory.available=90s", Ok((Signal::Memory, 90)));
        check("nodefs.available = 2m", Ok((Signal::NodeDisk, 120)));
        check(
            "memory.available",
            Err("it does not have the form SIGNAL=TIME"),
        );
        check("memory=1m", Err("unsupported eviction signal memory"));
        check("memory.available=1m30s", Ok((Signal::Memory, 90)));
        let wrong = "it is not a duration such as 90s or 1m30s";
        check("memory.available=soon", Err(wrong));
    }
}

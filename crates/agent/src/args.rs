//! What can be said on the command line about a node, whether it has a process of its own (`kennel agent`) or not
//! (`kennel up`).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kennel_core::duration;
use kennel_node::pressure::{Signal, Threshold, ThresholdError, thresholds};
use serde_json::{Value, json};

/// How to run a node.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The node")]
pub struct NodeArgs {
    /// What runs the pods
    #[arg(long, value_enum, default_value_t, value_name = "RUNTIME")]
    pub runtime: RuntimeKind,

    /// The socket of a container runtime that speaks CRI v1
    /// [default: /run/containerd/containerd.sock, if it is there]
    #[arg(long, value_name = "PATH")]
    pub cri_socket: Option<String>,

    /// The node's name [default: the host name, in small letters]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,

    /// The node's addresses, the one that the server reaches it at first
    /// [default: the address that this machine sends from]
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS")]
    pub node_ip: Vec<IpAddr>,

    /// Labels of the node, such as `rack=12,disk=ssd`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE", value_parser = label)]
    pub node_labels: Vec<(String, String)>,

    /// Taints to register a new node with, such as `dedicated=logs:NoSchedule`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE:EFFECT", value_parser = taint)]
    pub register_with_taints: Vec<Taint>,

    /// How many pods the node takes
    #[arg(long, default_value_t = 110, value_name = "PODS")]
    pub max_pods: u32,

    /// What must be kept free on this machine before pods are evicted; nothing but what is named here is watched
    #[arg(long, default_value_t, value_name = "SIGNAL<AMOUNT,…", value_parser = kept_free)]
    pub eviction_hard: Thresholds,

    /// The same with patience: pods are evicted when less was free for as long as `--eviction-soft-grace-period` says
    #[arg(long, value_name = "SIGNAL<AMOUNT,…", value_parser = kept_free, requires = "eviction_soft_grace_period")]
    pub eviction_soft: Option<Thresholds>,

    /// How long less may be free, for each signal of `--eviction-soft`: `memory.available=90s,nodefs.available=2m`
    #[arg(long, value_delimiter = ',', value_name = "SIGNAL=TIME", value_parser = patience)]
    pub eviction_soft_grace_period: Vec<(Signal, Duration)>,

    /// The most seconds that a pod gets to end when `--eviction-soft` evicts it
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub eviction_max_pod_grace_period: u32,

    /// The directory of static pods: a pod for each file, with or without a server
    /// [default: /etc/kennel/manifests]
    #[arg(long, value_name = "DIR")]
    pub manifest_dir: Option<PathBuf>,

    /// Where the logs of containers go, below `pods` and `containers` [default: /var/log for root, else `logs` in
    /// the data directory]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// The name servers of pods that ask for the cluster's
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS")]
    pub cluster_dns: Vec<IpAddr>,
}

/// What runs the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RuntimeKind {
    /// `cri` if a container runtime's socket is found, else `process`
    #[default]
    Auto,
    /// A container runtime, such as containerd
    Cri,
    /// Plain processes of this machine: no container engine is needed
    Process,
    /// Nothing: they live as data says
    Simulated,
}

/// What must be kept free.
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

fn kept_free(text: &str) -> Result<Thresholds, ThresholdError> {
    thresholds::parse(text).map(Thresholds)
}

fn patience(text: &str) -> Result<(Signal, Duration), String> {
    let (signal, time) = text.split_once('=').ok_or("this is no SIGNAL=TIME")?;
    let signal = Signal::parse(signal.trim()).map_err(|error| error.to_string())?;
    let time = duration::parse(time.trim()).ok_or("this is no time such as 90s or 1m30s")?;
    Ok((signal, time))
}

/// A taint, as the API has it.
#[derive(Clone, Debug)]
pub struct Taint(pub Value);

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("this is no KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn taint(text: &str) -> Result<Taint, String> {
    let (what, effect) = text.rsplit_once(':').ok_or("this is no KEY=VALUE:EFFECT")?;
    let (key, value) = what.split_once('=').unwrap_or((what, ""));
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effects.contains(&effect) {
        return Err(format!("{effect} is none of {}", effects.join(", ")));
    }
    let mut taint = json!({"key": key, "effect": effect});
    if !value.is_empty() {
        taint["value"] = value.into();
    }
    Ok(Taint(taint))
}

/// How to run an agent.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// The server to join, as `kennel token create` prints it; remembered after the first time
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub server: Option<String>,

    /// The token to join with; not needed any more once the node has its certificate
    #[arg(
        long,
        env = "KENNEL_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub token: Option<String>,

    /// The hash of the certificate authority that the server must have, `sha256:…`
    #[arg(long, value_name = "HASH")]
    pub ca_hash: Option<String>,

    /// A kubeconfig instead, of any Kubernetes API; its current context is used
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Where the agent keeps its certificates, and the volumes of pods
    #[arg(long, default_value = "/var/lib/kennel/agent", value_name = "DIR")]
    pub data_dir: PathBuf,

    /// Where to answer the server (logs, exec and the like); port 0 chooses a free one
    #[arg(long, default_value = "0.0.0.0:10250", value_name = "ADDRESS")]
    pub listen: SocketAddr,

    /// The domain of services' names
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub cluster_domain: String,

    /// The node
    #[command(flatten)]
    pub node: NodeArgs,

    /// Many nodes
    #[command(flatten)]
    pub simulated: SimulatedArgs,
}

impl AgentArgs {
    /// Whether many nodes are played, instead of this machine being one.
    pub fn plays_many(&self) -> bool {
        self.node.runtime == RuntimeKind::Simulated
            && self.node.node_name.is_none()
            && self.server.is_none()
    }
}

/// The same as `kennel_simulation::NODES_MAX`, which the agent program does not link.
pub const SIMULATED_NODES_MAX: u32 = 61_439;

/// Which nodes to play, with `--runtime=simulated` and no `--node-name`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Many simulated nodes (--runtime=simulated)")]
pub struct SimulatedArgs {
    /// How many nodes to play
    #[arg(long, default_value_t = 1, value_name = "NODES",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SIMULATED_NODES_MAX)))]
    pub count: u32,

    /// What the nodes' names begin with; their number follows
    #[arg(long, default_value = "sim-", value_name = "PREFIX")]
    pub node_prefix: String,

    /// The number of the first node, for more than one agent in a cluster: it decides addresses, too
    #[arg(long, default_value_t = 1, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SIMULATED_NODES_MAX)))]
    pub first: u32,

    /// What happens to them
    #[command(flatten)]
    pub scenario: ScenarioArgs,
}

/// What happens to simulated nodes.
#[derive(Clone, Debug, Args)]
pub struct ScenarioArgs {
    /// A YAML file that says what happens to simulated nodes and their pods; see
    /// docs/reference/simulation.md [default: every pod is ready at once]
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,

    /// Decides what the scenario leaves to chance: the same seed, the same fates
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_read_as_the_kubelets_flag_has_them() {
        let check = |text: &str, expected: Option<Value>| {
            assert_eq!(taint(text).ok().map(|taint| taint.0), expected, "{text}");
        };
        let whole = json!({"key": "a/b", "value": "c", "effect": "NoSchedule"});
        check("a/b=c:NoSchedule", Some(whole));
        let bare = json!({"key": "a", "effect": "NoExecute"});
        check("a:NoExecute", Some(bare.clone()));
        check("a=:NoExecute", Some(bare));
        check("a=b:Never", None);
        check("a=b", None);
    }

    #[test]
    fn patience_is_read() {
        let check = |text: &str, expected: Result<(Signal, u64), &str>| {
            let expected = expected.map(|(signal, seconds)| (signal, Duration::from_secs(seconds)));
            assert_eq!(patience(text), expected.map_err(str::to_owned), "{text}");
        };
        check("memory.available=90s", Ok((Signal::Memory, 90)));
        check("nodefs.available = 2m", Ok((Signal::NodeDisk, 120)));
        check("memory.available", Err("this is no SIGNAL=TIME"));
        check("memory=1m", Err("unsupported eviction signal memory"));
        check("memory.available=1m30s", Ok((Signal::Memory, 90)));
        let wrong = "this is no time such as 90s or 1m30s";
        check("memory.available=soon", Err(wrong));
    }
}

//! What can be said on the command line about a real node, whether it has a process of its own (`kennel agent`) or
//! not (`kennel up`), and about the tokens that machines join with.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use kennel_node::pressure::{BadThreshold, Signal, Threshold, thresholds};
use kennel_node::scenario::duration;
use serde_json::{Value, json};

use crate::args::ScenarioArgs;

/// How to run a node.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The node")]
pub(crate) struct NodeArgs {
    /// What runs the pods
    #[arg(long, value_enum, default_value_t, value_name = "RUNTIME")]
    pub(crate) runtime: RuntimeKind,

    /// The socket of a container runtime that speaks CRI v1
    /// [default: /run/containerd/containerd.sock, if it is there]
    #[arg(long, value_name = "PATH")]
    pub(crate) cri_socket: Option<String>,

    /// The node's name [default: the host name, in small letters]
    #[arg(long, value_name = "NAME")]
    pub(crate) node_name: Option<String>,

    /// The node's addresses, the one that the server reaches it at first
    /// [default: the address that this machine sends from]
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS")]
    pub(crate) node_ip: Vec<IpAddr>,

    /// Labels of the node, such as `rack=12,disk=ssd`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) node_labels: Vec<(String, String)>,

    /// Taints to register a new node with, such as `dedicated=logs:NoSchedule`
    #[arg(long, value_delimiter = ',', value_name = "KEY=VALUE:EFFECT", value_parser = taint)]
    pub(crate) register_with_taints: Vec<Taint>,

    /// How many pods the node takes
    #[arg(long, default_value_t = 110, value_name = "PODS")]
    pub(crate) max_pods: u32,

    /// What must be kept free on this machine before pods are evicted; nothing but what is named here is watched
    #[arg(long, default_value_t, value_name = "SIGNAL<AMOUNT,…", value_parser = kept_free)]
    pub(crate) eviction_hard: Thresholds,

    /// The same with patience: pods are evicted when less was free for as long as `--eviction-soft-grace-period` says
    #[arg(long, value_name = "SIGNAL<AMOUNT,…", value_parser = kept_free, requires = "eviction_soft_grace_period")]
    pub(crate) eviction_soft: Option<Thresholds>,

    /// How long less may be free, for each signal of `--eviction-soft`: `memory.available=90s,nodefs.available=2m`
    #[arg(long, value_delimiter = ',', value_name = "SIGNAL=TIME", value_parser = patience)]
    pub(crate) eviction_soft_grace_period: Vec<(Signal, Duration)>,

    /// The most seconds that a pod gets to end when `--eviction-soft` evicts it
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub(crate) eviction_max_pod_grace_period: u32,

    /// The directory of static pods: a pod for each file, with or without a server
    /// [default: /etc/kennel/manifests]
    #[arg(long, value_name = "DIR")]
    pub(crate) manifest_dir: Option<PathBuf>,

    /// Where the logs of containers go, below `pods` and `containers` [default: /var/log for root, else `logs` in
    /// the data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,

    /// The name servers of pods that ask for the cluster's
    #[arg(long, value_delimiter = ',', value_name = "ADDRESS")]
    pub(crate) cluster_dns: Vec<IpAddr>,
}

/// What runs the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuntimeKind {
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
pub(crate) struct Thresholds(pub(crate) Vec<Threshold>);

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

fn kept_free(text: &str) -> Result<Thresholds, BadThreshold> {
    thresholds::parse(text).map(Thresholds)
}

fn patience(text: &str) -> Result<(Signal, Duration), String> {
    let (signal, time) = text.split_once('=').ok_or("this is no SIGNAL=TIME")?;
    let signal = Signal::named(signal.trim()).map_err(|error| error.to_string())?;
    let time = duration(time.trim()).ok_or("this is no time such as 90s or 1m30s")?;
    Ok((signal, time))
}

/// A taint, as the API has it.
#[derive(Clone, Debug)]
pub(crate) struct Taint(pub(crate) Value);

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
pub(crate) struct AgentArgs {
    /// The server to join, as `kennel token create` prints it; remembered after the first time
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub(crate) server: Option<String>,

    /// The token to join with; not needed any more once the node has its certificate
    #[arg(
        long,
        env = "KENNEL_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) token: Option<String>,

    /// The hash of the certificate authority that the server must have, `sha256:…`
    #[arg(long, value_name = "HASH")]
    pub(crate) ca_hash: Option<String>,

    /// A kubeconfig instead, of any Kubernetes API; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Where the agent keeps its certificates, and the volumes of pods
    #[arg(long, default_value = "/var/lib/kennel/agent", value_name = "DIR")]
    pub(crate) data_dir: PathBuf,

    /// Where to answer the server (logs, exec and the like); port 0 chooses a free one
    #[arg(long, default_value = "0.0.0.0:10250", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,

    /// The domain of services' names
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub(crate) cluster_domain: String,

    #[command(flatten)]
    pub(crate) node: NodeArgs,

    #[command(flatten)]
    pub(crate) simulated: SimulatedArgs,
}

/// Which nodes to play, with `--runtime=simulated` and no `--node-name`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Many simulated nodes (--runtime=simulated)")]
pub(crate) struct SimulatedArgs {
    /// How many nodes to play
    #[arg(long, default_value_t = 1, value_name = "NODES",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(kennel_node::simulated::NODES_MAX)))]
    pub(crate) count: u32,

    /// What the nodes' names begin with; their number follows
    #[arg(long, default_value = "sim-", value_name = "PREFIX")]
    pub(crate) node_prefix: String,

    /// The number of the first node, for more than one agent in a cluster: it decides addresses, too
    #[arg(long, default_value_t = 1, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(kennel_node::simulated::NODES_MAX)))]
    pub(crate) first: u32,

    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
}

/// What to do with tokens.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) what: TokenVerb,

    /// The administrator's kubeconfig [default: admin.kubeconfig in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The server's data directory
    #[arg(
        long,
        global = true,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

/// The verbs of tokens.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token, and print the line to run on a machine that is to join
    Create {
        /// How long it lives: 90m, 24h, 7d; 0 for ever
        #[arg(long, default_value = "24h", value_name = "TIME", value_parser = lifetime)]
        ttl: Duration,

        /// The server's URL as the machines reach it [default: the kubeconfig's; this machine's address instead of
        /// the loopback one, if the server answers there]
        #[arg(long, value_name = "URL")]
        server: Option<String>,

        /// What it is for, for `kennel token list`
        #[arg(long, default_value = "", value_name = "WORDS")]
        description: String,
    },

    /// Show all tokens, without their secrets
    List,

    /// Delete a token: who has not joined with it yet cannot any more
    Delete {
        /// The part before the dot, or all of it
        token: String,
    },
}

/// A time such as `90m`, `24h`, `7d` or `0`.
fn lifetime(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "this is no time such as 90m, 24h or 7d";
    // Nobody means more than a thousand years.
    const MAX: u64 = 366 * 1000 * 86_400;
    let split = text.find(|one: char| !one.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| WRONG)?;
    let seconds = match unit {
        "" if number == 0 => 0,
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(WRONG.to_owned()),
    };
    let seconds = number.checked_mul(seconds).filter(|all| *all <= MAX);
    Ok(Duration::from_secs(seconds.ok_or(WRONG)?))
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

    #[test]
    fn lifetimes_are_read() {
        let check = |text: &str, expected: Option<u64>| {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(lifetime(text).ok(), expected, "{text}");
        };
        check("0", Some(0));
        check("90m", Some(5400));
        check("24h", Some(86_400));
        check("7d", Some(604_800));
        check("5", None);
        check("h", None);
        check("1w", None);
        check("99999999999999999999d", None);
        check("18446744073709551615d", None);
    }
}

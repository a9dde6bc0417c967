//! The command line of `kennel bench`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use kennel_simulation::NODES_MAX;
use serde_json::Value;

use super::manifest::{max_unavailable, policy_entry};

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    /// Kubeconfig of the cluster; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Number of simulated nodes
    #[arg(long, default_value_t = 1000, value_name = "NODES",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    pub(crate) nodes: u32,

    /// Give each node a client of its own: certificate, TLS connection, watches and lease (needs an administrator's kubeconfig);
    /// without =KIND those of an agent
    #[arg(long, value_enum, value_name = "KIND", num_args = 0..=1, require_equals = true,
          default_missing_value = "agent")]
    pub(crate) connections: Option<ConnectionKind>,

    /// With --connections: offer no HTTP/2, so that each watch of a node has a TLS connection of its own
    #[arg(long, requires = "connections")]
    pub(crate) http1: bool,

    /// maxUnavailable of the rolling update: a number or a percentage
    #[arg(long, default_value = "10%", value_name = "NUMBER", value_parser = max_unavailable)]
    pub(crate) max_unavailable: Value,

    /// Annotation `rollout.kennel.dev/KEY` of the DaemonSet, for a rolling update in stages (may be repeated)
    #[arg(long = "policy", value_name = "KEY=VALUE", value_parser = policy_entry)]
    pub(crate) policy: Vec<(String, String)>,

    /// Process of the control plane, whose CPU time and peak memory to report (may be repeated)
    #[arg(long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,

    /// First measure this long without load but heartbeats
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: Option<u64>,

    /// How often each node renews its lease; 10 s, or up to 30 s with more than 20,000 nodes. Control planes take nodes for dead
    /// that do not renew it for 40 s or so
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) heartbeat: Option<u64>,

    /// Timeout of each step
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub(crate) timeout: u64,

    /// First remove the objects of an earlier run
    #[arg(long)]
    pub(crate) clean: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// What a node with a connection of its own asks the API for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConnectionKind {
    /// What a Kennel agent does: also tokens of service accounts, and the watches of services and of the pod network, with
    /// one Service over the DaemonSet
    Agent,
    /// Only the watches of its pods and its Node
    Plain,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable
    #[default]
    Table,
    /// Machine-readable
    Json,
}

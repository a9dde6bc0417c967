//! What can be said to `kennel bench`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use kennel_node::simulated::NODES_MAX;
use serde_json::Value;

use super::manifest::max_unavailable;

/// How to measure.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    /// The kubeconfig of the cluster; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// How many nodes to bring
    #[arg(long, default_value_t = 1000, value_name = "NODES",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    pub(crate) nodes: u32,

    /// How many daemons the rolling update may replace at once: a number or a percentage
    #[arg(long, default_value = "10%", value_name = "NUMBER", value_parser = max_unavailable)]
    pub(crate) max_unavailable: Value,

    /// A process of the control plane, whose processor time and peak memory to report (may be repeated)
    #[arg(long = "pid", value_name = "PID")]
    pub(crate) pids: Vec<u32>,

    /// First watch the nodes do nothing but send heartbeats for so long
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: Option<u64>,

    /// How long each step may take
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub(crate) timeout: u64,

    /// Remove what an earlier run has left, and then begin
    #[arg(long)]
    pub(crate) clean: bool,

    /// What to print at the end
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// How the figures are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

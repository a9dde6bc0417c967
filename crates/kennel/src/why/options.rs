//! The command line of `kennel why`.

use clap::Args as ClapArgs;

use crate::inspect::options::{ClusterArgs, DaemonSetName, Output};

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    /// The DaemonSet: ds/NAME, daemonset/NAME or NAME
    #[arg(value_name = "DAEMONSET")]
    pub(crate) daemon_set: DaemonSetName,

    /// Explain this node in detail: every rule, its pods and containers, the last events
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Name every node, instead of at most eight per group
    #[arg(long)]
    pub(crate) all: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

//! The command line of `kennel why`.

use clap::Args as ClapArgs;

use crate::inspect::options::{ClusterArgs, Output};

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    /// DaemonSets or their pods: ds/NAME, ds NAME, NAME, pod/NAME [default: all DaemonSets of the namespace]
    #[arg(value_name = "DAEMONSET")]
    pub(crate) targets: Vec<String>,

    /// Look in all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,

    /// Explain this node in detail: every rule, its pods and containers, the last events
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Name every node, instead of at most eight per group; of several DaemonSets, show more than problems
    #[arg(long)]
    pub(crate) all: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

impl WhyArgs {
    /// The node to explain. `node/NAME` is what `kubectl get nodes -o name` prints.
    pub(super) fn node(&self) -> Option<&str> {
        let node = self.node.as_deref()?;
        let (kind, name) = node.split_once('/').unwrap_or(("node", node));
        let is_node = matches!(kind, "no" | "node" | "nodes");
        Some(if is_node { name } else { node })
    }
}

//! How patient to be with silent nodes, as it is said on the command line.

use std::time::Duration;

use clap::Args;
use kennel_control::nodes::lifecycle;

/// How patient to be with silent nodes. The names are kube-controller-manager's.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Silent nodes")]
pub(crate) struct LifecycleArgs {
    /// How long a node may be silent before it counts as unreachable
    #[arg(long, default_value_t = 50, value_name = "SECONDS")]
    pub(crate) node_monitor_grace_period: u64,

    /// The same for a node that has not said yet how it is
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) node_startup_grace_period: u64,

    /// How many nodes per second lose their pods, in a zone that is well
    #[arg(long, default_value_t = 0.1, value_name = "NODES")]
    pub(crate) node_eviction_rate: f64,

    /// The same in a large zone that is disturbed; in a small one that is, none do
    #[arg(long, default_value_t = 0.01, value_name = "NODES")]
    pub(crate) secondary_node_eviction_rate: f64,

    /// The part of a zone that must be silent for the zone to be disturbed
    #[arg(long, default_value_t = 0.55, value_name = "FRACTION")]
    pub(crate) unhealthy_zone_threshold: f64,

    /// A zone with more nodes than this is large
    #[arg(long, default_value_t = 50, value_name = "NODES")]
    pub(crate) large_cluster_size_threshold: usize,
}

impl LifecycleArgs {
    /// As the controller understands it.
    pub(crate) fn settings(self) -> lifecycle::Settings {
        lifecycle::Settings {
            grace: Duration::from_secs(self.node_monitor_grace_period),
            startup_grace: Duration::from_secs(self.node_startup_grace_period),
            rates: lifecycle::Rates {
                eviction: self.node_eviction_rate,
                secondary_eviction: self.secondary_node_eviction_rate,
                unhealthy_zone_threshold: self.unhealthy_zone_threshold,
                large_zone: self.large_cluster_size_threshold,
            },
        }
    }
}

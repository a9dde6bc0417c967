//! The flags of node failure detection and eviction, named as in kube-controller-manager.

use std::time::Duration;

use clap::Args;
use kennel_control::nodes::lifecycle;

#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Node failure and eviction")]
pub(crate) struct EvictionArgs {
    /// Time without a heartbeat after which a node is unreachable
    #[arg(long, default_value_t = 50, value_name = "SECONDS")]
    pub(crate) node_monitor_grace_period: u64,

    /// The same for a node that has not reported its status yet
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) node_startup_grace_period: u64,

    /// Eviction rate for healthy zones, in nodes per second
    #[arg(long, default_value_t = 0.1, value_name = "NODES")]
    pub(crate) node_eviction_rate: f64,

    /// Eviction rate for large zones that are unhealthy; small unhealthy zones are not evicted from
    #[arg(long, default_value_t = 0.01, value_name = "NODES")]
    pub(crate) secondary_node_eviction_rate: f64,

    /// Fraction of unreachable nodes at which a zone is unhealthy
    #[arg(long, default_value_t = 0.55, value_name = "FRACTION")]
    pub(crate) unhealthy_zone_threshold: f64,

    /// Number of nodes above which a zone is large
    #[arg(long, default_value_t = 50, value_name = "NODES")]
    pub(crate) large_cluster_size_threshold: usize,
}

impl EvictionArgs {
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

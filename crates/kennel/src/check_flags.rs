//! The flags that name the servers that checks of rollout policies may query.

use clap::Args;
use kennel_control::daemonset::{CheckHost, CheckSettings, PrometheusUrl};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Checks of rollouts")]
pub(crate) struct CheckArgs {
    /// Prometheus server that `check: prometheus ...` of rollout policies asks
    ///
    /// Its base URL, such as `http://prometheus.monitoring:9090`; queries go to /api/v1/query below it. Without
    /// it, a stage with such a check pauses at its end. https needs a certificate that this machine trusts, or
    /// that the file in `$SSL_CERT_FILE` has.
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus_url: Option<PrometheusUrl>,

    /// Host that `check: webhook URL` of rollout policies may name, as HOST or HOST:PORT (may be repeated)
    ///
    /// Whoever may annotate a DaemonSet chooses the URL, and this process sends the request from its own
    /// network, so no host is allowed by default. Without a port, every port of the host is.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) allow_check_host: Vec<CheckHost>,
}

impl CheckArgs {
    pub(crate) fn settings(self) -> CheckSettings {
        CheckSettings {
            prometheus: self.prometheus_url,
            hosts: self.allow_check_host,
        }
    }
}

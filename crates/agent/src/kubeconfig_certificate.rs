//! Warns of the end of the client certificate of a kubeconfig, for programs that run for long and are no agents.

use std::time::Duration;

use kennel_client::clock;
use kennel_client::metrics::{Observed, Page};
use kennel_core::certificates::expiry;
use kennel_node::agent::identity::expiration::Lifetime;
use kennel_node::agent::identity::kubeconfig;
use kube::Config;

/// How often the log warns.
const LOG_INTERVAL: Duration = Duration::from_hours(24);
/// How often to look: the wall clock may jump.
const INTERVAL: Duration = Duration::from_mins(10);

kennel_core::metrics! {
    pub METRICS;
    Gauge CERTIFICATE_ENDS = "kennel_kubeconfig_certificate_expiration_timestamp_seconds" []
        "When the client certificate of the kubeconfig ends, in seconds since 1970; +Inf without one. Nobody renews it.";
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct KubeconfigCertificate(Option<Lifetime>);

impl KubeconfigCertificate {
    pub fn of(config: &Config) -> Self {
        Self(kubeconfig::client_lifetime(&config.auth_info))
    }

    /// Warns, once a day, when it ends soon. Never returns.
    pub async fn warn(self) {
        loop {
            let now = clock::now();
            let ending = self
                .0
                .filter(|(begin, end)| expiry::is_expiring(*begin, *end, now));
            let pause = if let Some((_, end)) = ending {
                const WHAT: &str = "the client certificate of the kubeconfig";
                tracing::warn!("{}", expiry::warning(WHAT, end, now, kubeconfig::REMEDY));
                LOG_INTERVAL
            } else {
                INTERVAL
            };
            tokio::time::sleep(pause).await;
        }
    }
}

impl Observed for KubeconfigCertificate {
    fn show(&self, page: &mut Page) {
        match self.0 {
            Some((_, end)) => page.number(&CERTIFICATE_ENDS, end.as_secs()),
            None => page.number(&CERTIFICATE_ENDS, "+Inf"),
        }
    }
}

//! Warns of the end of the client certificate of a kubeconfig, for programs that run for long and are no agents.

use kennel_client::expiry::{self, Lifetime};
use kennel_client::metrics::{Observed, Page};
use kennel_node::agent::identity::kubeconfig;
use kube::Config;

const WHAT: &str = "the client certificate of the kubeconfig";

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

    /// Warns in the log, once a day, when it ends soon, and passes the warning to `record` every ten minutes. Never returns.
    pub async fn warn(self, record: impl Fn(String) + Send) {
        let warnings = |now| {
            let ending = self.0.and_then(|lifetime| {
                expiry::warning_of_others(WHAT, lifetime, now, kubeconfig::REMEDY)
            });
            ending.into_iter().collect()
        };
        expiry::warn(warnings, record).await;
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

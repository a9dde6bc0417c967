//! Renews the certificates of a running server that expire soon, publishes a new CA, warns of what
//! ends within 30 days, those for etcd included, and deletes revocations and claims of joining machines that are not needed any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_core::certificates::expiry;
use kennel_types::Timestamp;
use serde_json::json;

use crate::api::Api;
use crate::bootstrap;
use crate::certificates::Listed;
use crate::join_claims;
use crate::object::{self, Document};
use crate::registry;
use crate::request::User;
use crate::revocation;
use crate::status::Result;
use crate::verbs;

/// A certificate is logged once in this time; its event is there as long as it ends soon.
const LOG_INTERVAL: Duration = Duration::from_hours(24);

/// The component of the events.
const COMPONENT: &str = "kennel-server";
/// Events are about the Service of the API server.
const SERVICE: &str = "kubernetes";

#[derive(Default)]
pub(crate) struct CertificateRenewal {
    /// When each certificate, and each problem of a file, was logged last.
    logged: BTreeMap<String, Timestamp>,
}

/// Runs until it is dropped.
pub(crate) async fn run(api: Arc<Api>, interval: Duration) {
    let mut renewal = CertificateRenewal::default();
    loop {
        renewal.pass(&api).await;
        tokio::time::sleep(interval).await;
    }
}

impl CertificateRenewal {
    pub(crate) async fn pass(&mut self, api: &Arc<Api>) {
        let certificates = &api.settings.certificates;
        match certificates.renew_due() {
            Ok(false) => {}
            Ok(true) => bootstrap::restore_namespace_defaults(api).await,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(cause, "cannot renew certificates: {error}");
            }
        }
        let now = certificates.now();
        for one in certificates.list().iter().filter(|one| one.expiring) {
            let warning = one.warning(now);
            if self.is_due(&one.name, now) {
                tracing::warn!(certificate = one.name, "{warning}");
            }
            if let Err(error) = record_event(api, one, &warning).await {
                tracing::debug!(error = error.message, "cannot record an event");
            }
        }
        for problem in certificates.problems() {
            if self.is_due(&problem, now) {
                tracing::warn!("{problem}");
            }
        }
        let oldest = certificates.oldest_authority();
        revocation::delete_obsolete(&*api.store, oldest).await;
        join_claims::delete_settled(&*api.store).await;
    }

    /// Whether to log this now.
    fn is_due(&mut self, what: &str, now: Timestamp) -> bool {
        self.logged
            .retain(|_, at| now.saturating_since(*at) < LOG_INTERVAL);
        let is_due = !self.logged.contains_key(what);
        self.logged.entry(what.to_owned()).or_insert(now);
        is_due
    }
}

/// One event per certificate and end. It is created again when it has expired.
async fn record_event(api: &Api, certificate: &Listed, message: &str) -> Result<()> {
    let row = registry::core("events");
    let end = certificate.not_after.as_secs();
    let name = format!("{SERVICE}.{}-{end:x}", certificate.name);
    let namespace = Some("default");
    if api.store.get(&object::key(row, namespace, &name)).is_some() {
        return Ok(());
    }
    let now = crate::clock::now();
    let event = json!({
        "metadata": {"name": name},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Service", "namespace": "default", "name": SERVICE,
        },
        "reason": expiry::REASON, "message": message, "type": "Warning", "count": 1,
        "source": {"component": COMPONENT}, "reportingComponent": COMPONENT,
        "firstTimestamp": now, "lastTimestamp": now,
    });
    let user = User::master("system:kennel");
    verbs::insert(api, &user, row, namespace, Document::new(event)).await
}

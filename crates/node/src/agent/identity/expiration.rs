//! When the node's certificates end: for metrics, and for warnings in the log and in events.

use std::sync::Mutex;

use kennel_client::clock;
use kennel_client::events::{Note, Recorder, Reference};
pub use kennel_client::expiry::Lifetime;
use kennel_client::metrics::{Observed, Page};
use kennel_core::certificates::expiry::{self, RenewedBy};
use kennel_types::Timestamp;

use super::request::Purpose;
use super::{Certificate, kubeconfig};
use crate::sync::lock;

kennel_core::metrics! {
    pub METRICS;
    Gauge CLIENT_TTL = "kubelet_certificate_manager_client_ttl_seconds" []
        "Seconds until the node's client certificate expires; negative if it has expired, +Inf without one.";
    Gauge SERVING_TTL = "kubelet_certificate_manager_server_ttl_seconds" []
        "Seconds until the node's serving certificate expires; negative if it has expired, +Inf without one.";
}

/// The lifetimes of the certificates in use.
#[derive(Debug, Default)]
pub struct Expirations {
    /// The agent does not renew its client certificate: it is a kubeconfig's.
    is_from_kubeconfig: bool,
    client: Mutex<Option<Lifetime>>,
    serving: Mutex<Option<Lifetime>>,
}

impl Expirations {
    /// With the client certificate of a kubeconfig, if that has one.
    pub fn of_kubeconfig(client: Option<Lifetime>) -> Self {
        Self {
            is_from_kubeconfig: true,
            client: Mutex::new(client),
            serving: Mutex::default(),
        }
    }

    fn of(&self, purpose: Purpose) -> &Mutex<Option<Lifetime>> {
        match purpose {
            Purpose::Client => &self.client,
            Purpose::Serving => &self.serving,
        }
    }

    /// Records a certificate that is in use from now on.
    pub fn set(&self, purpose: Purpose, certificate: &Certificate) {
        let at = Timestamp::from_secs;
        let lifetime = (at(certificate.not_before), at(certificate.not_after));
        *lock(self.of(purpose)) = Some(lifetime);
    }

    /// The warnings of certificates that end soon.
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let both = [Purpose::Client, Purpose::Serving].into_iter();
        let ending = both.filter_map(|purpose| {
            let (not_before, not_after) = (*lock(self.of(purpose)))?;
            let what = format!("the {} certificate of this node", purpose.as_str());
            let (by, remedy) = match purpose {
                Purpose::Client if self.is_from_kubeconfig => {
                    (RenewedBy::Others, kubeconfig::REMEDY)
                }
                _ => (
                    RenewedBy::Kennel,
                    "its renewal fails, see the log of the agent",
                ),
            };
            expiry::is_expiring(not_before, not_after, now, by)
                .then(|| expiry::warning(&what, not_after, now, remedy))
        });
        ending.collect()
    }

    /// Warns until it is dropped.
    pub async fn warn(&self, node: &str, recorder: &Recorder) {
        let record = |warning| {
            let note = Note::new(true, expiry::REASON, warning);
            recorder.emit(Reference::own_node(node), note);
        };
        kennel_client::expiry::warn(|now| self.warnings(now), record).await;
    }
}

impl Observed for Expirations {
    fn show(&self, page: &mut Page) {
        let now = clock::now();
        for (metric, purpose) in [
            (&CLIENT_TTL, Purpose::Client),
            (&SERVING_TTL, Purpose::Serving),
        ] {
            let lifetime = *lock(self.of(purpose));
            match lifetime {
                Some((_, end)) => page.number(metric, end.millis_since(now).div_euclid(1000)),
                None => page.number(metric, "+Inf"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kennel_client::fence::Fence;
    use kennel_client::write::Writer;
    use kube::client::Body;
    use serde_json::Value;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn what_ends_soon_is_an_event_of_the_node() {
        let (written, mut events) = mpsc::channel(4);
        let service = tower::service_fn(move |request: Request<Body>| {
            let written = written.clone();
            async move {
                let body = request.into_body().collect_bytes().await.unwrap();
                let event: Value = serde_json::from_slice(&body).unwrap();
                written.send(event).await.unwrap();
                Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
            }
        });
        let writer = Writer::new(kube::Client::new(service, "default"), Fence::open());
        let stop = CancellationToken::new();
        let (recorder, writing) = Recorder::on_node(writer, "kubelet", "n1", stop);
        tokio::spawn(writing);
        let expirations = Expirations::default();
        let now = clock::now();
        let day = 86_400_000;
        let lifetime = (
            now.saturating_add_millis(-340 * day),
            now.saturating_add_millis(25 * day),
        );
        *lock(&expirations.client) = Some(lifetime);
        let event = tokio::select! {
            () = expirations.warn("n1", &recorder) => None,
            event = events.recv() => event,
        };
        let event = event.expect("it warns until it is dropped");
        assert_eq!(event["involvedObject"]["kind"], "Node");
        assert_eq!(event["involvedObject"]["name"], "n1");
        let said = (&event["reason"], &event["type"]);
        assert_eq!(said, (&expiry::REASON.into(), &"Warning".into()));
        let message = event["message"].as_str().unwrap();
        assert!(
            message.starts_with("the client certificate of this node expires in 2"),
            "{message}"
        );
    }

    #[test]
    fn the_certificate_of_a_kubeconfig_is_not_renewed() {
        let at = Timestamp::from_secs;
        let lifetime = (at(0), at(365 * 86_400));
        let expirations = Expirations::of_kubeconfig(Some(lifetime));
        assert!(expirations.warnings(at(330 * 86_400)).is_empty());
        let warnings = expirations.warnings(at(340 * 86_400));
        let [warning] = &warnings[..] else {
            panic!("one warning: {warnings:?}");
        };
        assert!(warning.contains("the client certificate of this node expires in 25 days"));
        assert!(warning.ends_with(kubeconfig::REMEDY), "{warning}");
        // A short one, too, is warned of for a month.
        let expirations = Expirations::of_kubeconfig(Some((at(0), at(90 * 86_400))));
        assert!(expirations.warnings(at(60 * 86_400)).is_empty());
        assert_eq!(expirations.warnings(at(61 * 86_400)).len(), 1);
    }

    #[test]
    fn certificates_that_end_soon_are_warned_of_and_shown() {
        let expirations = Expirations::default();
        let now = clock::now();
        assert!(expirations.warnings(now).is_empty());
        let page = |expirations: &Expirations| Page::of([expirations as &dyn Observed]);
        assert!(page(&expirations).contains("client_ttl_seconds +Inf"));
        let day = 86_400_000;
        let ends = |days: i64| {
            (
                now.saturating_add_millis(-335 * day),
                now.saturating_add_millis(days * day),
            )
        };
        *lock(&expirations.client) = Some(ends(40));
        *lock(&expirations.serving) = Some(ends(29));
        let warnings = expirations.warnings(now);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("the serving certificate of this node expires in 29 days"));
        *lock(&expirations.serving) = Some(ends(-1));
        assert!(page(&expirations).contains("server_ttl_seconds -864"));
        // The moved clock tells, not the machine's.
        assert_eq!(
            expirations
                .warnings(now.saturating_add_millis(-100 * day))
                .len(),
            0
        );
    }
}

//! The cleaner: deletes requests that are issued, refused or abandoned for long enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::Error;
use kennel_client::clock::Clock;
use kennel_client::feed::Identity;
use kennel_client::fence::Fence;
use kennel_client::pace::Pace;
use kennel_client::write::{Call, Writer};
use kennel_core::certificates::lifetime::{self, Stage};
use kennel_types::{Monotonic, Timestamp};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::request::end_of;
use super::{PATH, condition, has_certificate};
use crate::frame::{self, Context, Controller, Update, Watches};
use crate::informers::Informers;

/// How long to wait after a failed deletion.
const RETRY: Duration = Duration::from_secs(5);
/// How many requests are deleted at once.
const AT_ONCE: usize = 8;

struct Cleaner {
    writer: Writer,
    /// When each is deleted, by uid.
    requests: BTreeMap<Arc<str>, (Identity, Timestamp)>,
    /// The same, by time.
    due: BTreeSet<(Timestamp, Arc<str>)>,
}

/// Runs until `stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut watches = Watches::default();
    let requests = informers.certificate_requests();
    watches.add("certificatesigningrequests", requests, |update| update);
    let cleaner = Cleaner {
        writer: Writer::new(client, Fence::open()),
        requests: BTreeMap::new(),
        due: BTreeSet::new(),
    };
    frame::run(cleaner, watches, stop)
}

impl Controller for Cleaner {
    type Event = Update<Arc<CertificateSigningRequest>>;
    /// A request whose deletion failed.
    type Outcome = Option<Identity>;

    fn name(&self) -> &'static str {
        "certificate cleaner"
    }

    fn pace(&self) -> Pace {
        Pace::steady(AT_ONCE)
    }

    fn handle(&mut self, event: Self::Event, _: &mut Context<Self>) {
        match event {
            Update::Applied(request) => {
                self.insert(Identity::of(&*request), expires_at(&request));
            }
            Update::Gone(id) => drop(self.remove(&id.uid)),
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        let now = cx.timestamp();
        while let Some((at, uid)) = self.due.first().cloned()
            && at <= now
        {
            let id = self.remove(&uid).expect("both maps hold the same requests");
            let writer = self.writer.clone();
            cx.spawn(async move { (!delete(&writer, &id).await).then_some(id) });
        }
    }

    fn completed(&mut self, failed: Option<Identity>, cx: &mut Context<Self>) {
        if let Some(id) = failed
            && !self.requests.contains_key(&id.uid)
        {
            self.insert(id, cx.timestamp() + RETRY);
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        self.due.first().map(|(at, _)| clock.when(*at))
    }
}

impl Cleaner {
    fn insert(&mut self, id: Identity, at: Timestamp) {
        self.remove(&id.uid);
        self.due.insert((at, id.uid.clone()));
        self.requests.insert(id.uid.clone(), (id, at));
    }

    fn remove(&mut self, uid: &str) -> Option<Identity> {
        let (id, at) = self.requests.remove(uid)?;
        self.due.remove(&(at, id.uid.clone()));
        Some(id)
    }
}

/// When a request is deleted.
fn expires_at(request: &CertificateSigningRequest) -> Timestamp {
    let timestamp = |time: &Option<Time>| time.as_ref().map(Timestamp::from).unwrap_or_default();
    let created = timestamp(&request.metadata.creation_timestamp);
    let since = |condition: CertificateSigningRequestCondition| {
        timestamp(&condition.last_update_time).max(created)
    };
    let refused = condition(request, "Denied").or_else(|| condition(request, "Failed"));
    let stage = if let Some(refused) = refused {
        Stage::Denied(since(refused))
    } else if let Some(approved) = condition(request, "Approved") {
        let status = request.status.as_ref();
        let certificate = status.and_then(|status| status.certificate.as_ref());
        match certificate.filter(|_| has_certificate(request)) {
            Some(certificate) => Stage::Issued(since(approved), end_of(&certificate.0)),
            None => Stage::Approved(since(approved)),
        }
    } else {
        Stage::Pending
    };
    lifetime::expires_at(created, stage)
}

/// Returns false if the deletion has to be tried again.
async fn delete(writer: &Writer, id: &Identity) -> bool {
    let call = Call::delete(format!("{PATH}/{}", id.name), &id.uid);
    match writer.send(&call).await {
        Ok(_) => {
            tracing::info!("deleted the expired certificate request {}", id.name);
            true
        }
        Err(failure) if failure.is(404) || failure.is(409) => true,
        Err(failure) => {
            tracing::warn!("deleting certificate request {} failed: {failure}", id.name);
            false
        }
    }
}

//! The cleaner: requests go when nobody needs them any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::StreamExt as _;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kennel_client::feed::{Change, Identity};
use kennel_client::fence::Fence;
use kennel_client::informer::Changes;
use kennel_client::work::Work;
use kennel_client::write::{Call, Writer};
use kennel_client::{Error, clock};
use kennel_core::certificates::age::{self, Stage};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::request::end_of;
use super::{PATH, condition, has_certificate};
use crate::informers::Informers;

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How many requests are deleted at once.
const AT_ONCE: usize = 8;

/// Runs until told to stop. Subscribe (by calling this) before the informers run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let seen = informers.certificate_requests();
    let cleaner = Cleaner {
        writer: Writer::new(client, Fence::open()),
        requests: BTreeMap::new(),
        due: BTreeSet::new(),
        work: Work::new(AT_ONCE),
    };
    cleaner.run(seen, stop)
}

struct Cleaner {
    writer: Writer,
    /// When each goes, by its uid, in seconds since the epoch.
    requests: BTreeMap<Arc<str>, (Identity, i64)>,
    /// The same, in order.
    due: BTreeSet<(i64, Arc<str>)>,
    /// Those whose deletion failed.
    work: Work<Option<(Identity, i64)>>,
}

impl Cleaner {
    async fn run(
        mut self,
        mut seen: Changes<CertificateSigningRequest>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        tracing::info!("certificate cleaner started");
        loop {
            let next = self.due.first().map(|(at, _)| at.saturating_mul(1000));
            tokio::select! {
                () = stop.cancelled() => break,
                change = seen.next() => match change {
                    Some(Change::Applied(request)) => {
                        self.put(Identity::of(&*request), goes_at(&request));
                    }
                    Some(Change::Gone(id)) => drop(self.take(&id.uid)),
                    Some(Change::Synced) => {}
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("certificate requests")),
                },
                failed = self.work.next() => {
                    if let Some((id, at)) = failed && !self.requests.contains_key(&id.uid) {
                        self.put(id, at);
                    }
                }
                () = clock::sleep_until(next) => self.delete_due(),
            }
        }
        self.work.finish().await;
        tracing::info!("certificate cleaner stopped");
        Ok(())
    }

    fn put(&mut self, id: Identity, at: i64) {
        self.take(&id.uid);
        self.due.insert((at, id.uid.clone()));
        self.requests.insert(id.uid.clone(), (id, at));
    }

    fn take(&mut self, uid: &str) -> Option<Identity> {
        let (id, at) = self.requests.remove(uid)?;
        self.due.remove(&(at, id.uid.clone()));
        Some(id)
    }

    fn delete_due(&mut self) {
        let now = clock::now_ms() / 1000;
        while let Some((at, uid)) = self.due.first().cloned()
            && at <= now
        {
            let id = self.take(&uid).expect("both say the same");
            let writer = self.writer.clone();
            self.work.push(async move {
                let done = delete(&writer, &id).await;
                (!done).then(|| (id, now + RETRY.as_secs().cast_signed()))
            });
        }
    }
}

/// When a request goes, in seconds since the epoch.
fn goes_at(request: &CertificateSigningRequest) -> i64 {
    let seconds = |time: &Option<Time>| time.as_ref().map_or(0, |time| time.0.as_second());
    let created = seconds(&request.metadata.creation_timestamp);
    let since = |condition: CertificateSigningRequestCondition| {
        seconds(&condition.last_update_time).max(created)
    };
    let refused = condition(request, "Denied").or_else(|| condition(request, "Failed"));
    let stage = if let Some(refused) = refused {
        Stage::Refused(since(refused))
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
    age::goes_at(created, stage)
}

async fn delete(writer: &Writer, id: &Identity) -> bool {
    let call = Call::delete(format!("{PATH}/{}", id.name), &id.uid);
    match writer.send(&call).await {
        Ok(_) => {
            tracing::info!("certificate request {} is past its time", id.name);
            true
        }
        Err(failure) if failure.is(404) || failure.is(409) => true,
        Err(failure) => {
            tracing::warn!("deleting certificate request {} failed: {failure}", id.name);
            false
        }
    }
}

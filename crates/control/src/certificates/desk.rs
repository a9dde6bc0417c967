//! Requests as they come in, each looked at by one at a time, and again after a while where that is needed.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::StreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kennel_client::Error;
use kennel_client::feed::Change;
use kennel_client::informer::Changes;
use kennel_client::work::Work;
use tokio_util::sync::CancellationToken;

/// How many requests are looked at at once.
const AT_ONCE: usize = 16;
/// How long to wait before a request is looked at again; doubled each time.
const AGAIN: Duration = Duration::from_millis(200);
/// And at most so long.
const AGAIN_MAX: Duration = Duration::from_mins(5);

/// What came of looking at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing more to do, until it changes.
    Done,
    /// It should be looked at again.
    Again,
}

enum Ended {
    Judged(Arc<str>, Verdict),
    Due(Arc<str>),
}

/// A request that somebody has to look at.
struct Entry {
    latest: Arc<CertificateSigningRequest>,
    /// Somebody looks at it.
    busy: bool,
    /// It has changed meanwhile.
    changed: bool,
    tries: u32,
}

/// Lets `judge` look at all requests that it `concerns`, until told to stop.
pub(super) async fn run<F>(
    name: &'static str,
    mut seen: Changes<CertificateSigningRequest>,
    stop: CancellationToken,
    concerns: fn(&CertificateSigningRequest) -> bool,
    judge: impl Fn(Arc<CertificateSigningRequest>) -> F,
) -> Result<(), Error>
where
    F: Future<Output = Verdict> + Send + 'static,
{
    tracing::info!("{name} started");
    let mut desk = Desk {
        entries: HashMap::new(),
        work: Work::new(AT_ONCE),
        judge,
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            change = seen.next() => match change {
                Some(Change::Applied(request)) if concerns(&request) => desk.put(request),
                Some(Change::Applied(request)) => desk.take(request.metadata.uid.as_deref()),
                Some(Change::Gone(id)) => desk.take(Some(&id.uid)),
                Some(Change::Synced) => {}
                None if stop.is_cancelled() => break,
                None => return Err(Error::WatchEnded("certificate requests")),
            },
            ended = desk.work.next() => desk.ended(ended),
        }
    }
    desk.work.finish().await;
    tracing::info!("{name} stopped");
    Ok(())
}

struct Desk<J> {
    entries: HashMap<Arc<str>, Entry>,
    work: Work<Ended>,
    judge: J,
}

impl<J, F> Desk<J>
where
    J: Fn(Arc<CertificateSigningRequest>) -> F,
    F: Future<Output = Verdict> + Send + 'static,
{
    fn put(&mut self, request: Arc<CertificateSigningRequest>) {
        let uid: Arc<str> = request.metadata.uid.as_deref().unwrap_or_default().into();
        let entry = self.entries.entry(uid.clone()).or_insert_with(|| Entry {
            latest: request.clone(),
            busy: false,
            changed: false,
            tries: 0,
        });
        entry.latest = request;
        entry.changed = true;
        self.look(&uid);
    }

    fn take(&mut self, uid: Option<&str>) {
        self.entries.remove(uid.unwrap_or_default());
    }

    fn look(&mut self, uid: &Arc<str>) {
        let Some(entry) = self.entries.get_mut(uid).filter(|entry| !entry.busy) else {
            return;
        };
        (entry.busy, entry.changed) = (true, false);
        let (uid, judging) = (uid.clone(), (self.judge)(entry.latest.clone()));
        self.work
            .push(async move { Ended::Judged(uid, judging.await) });
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Due(uid) => self.look(&uid),
            Ended::Judged(uid, verdict) => {
                let Some(entry) = self.entries.get_mut(&uid) else {
                    return;
                };
                entry.busy = false;
                if entry.changed {
                    self.look(&uid);
                } else if verdict == Verdict::Again {
                    let delay = AGAIN.saturating_mul(2_u32.saturating_pow(entry.tries));
                    entry.tries += 1;
                    self.work.later(delay.min(AGAIN_MAX), Ended::Due(uid));
                }
            }
        }
    }
}

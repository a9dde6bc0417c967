//! Leader election with a Lease, with the timing of Kubernetes' own clients: 15 s, 10 s, 2 s.
//!
//! A [`Fence`] is open while this process certainly holds the lease: after each renewal that the API confirmed, counted
//! from before the request was sent, and for less time than other candidates wait before they take the lease. Clocks of
//! different machines are not compared: another holder's lease expires when this process has not observed a renewal for
//! the lease's duration.

mod record;

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::fence::Fence;
use crate::metrics::{Observed, Page};
use crate::pulse;
use crate::write::{Call, Failure, Writer};
use record::Record;

/// The timing of the election. All candidates must use the same.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// After which other candidates take an unrenewed lease. Whole seconds.
    pub duration: Duration,
    /// After which the holder stops without a confirmed renewal. The rest of the duration is for writes in flight.
    pub renew_deadline: Duration,
    /// How often the holder renews, and other candidates try.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A lease, and the candidate.
#[derive(Clone, Debug)]
pub struct Lease {
    pub namespace: String,
    pub name: String,
    /// The `holderIdentity`, unique per process.
    pub identity: String,
    pub timing: Timing,
}

/// `namespace/name`.
impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The API refuses the lease to this process: it could never lead.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the lease {namespace}/{name} for leader election")]
pub struct ElectionError {
    pub namespace: String,
    pub name: String,
    #[source]
    pub failure: Failure,
}

/// How often in a row the API may refuse the lease before that counts: a server that has just started, or a role that is
/// being applied, refuses for a moment.
const REFUSALS_MAX: u32 = 3;

/// Rights are missing, or the namespace is.
fn is_refusal(failure: &Failure) -> bool {
    failure.is(401) || failure.is(403) || failure.is(404)
}

/// A candidate for the lease, or its holder.
pub struct Elector {
    lease: Lease,
    /// With a fence that is always open: it writes the lease itself.
    writer: Writer,
    fence: Fence,
    /// The lease as last observed, and when its spec was first observed.
    observed: Option<(Value, Instant)>,
}

impl Elector {
    /// Opens and closes `fence`. `writer` must not be fenced by it.
    pub fn new(lease: Lease, writer: Writer, fence: Fence) -> Self {
        Self {
            lease,
            writer,
            fence,
            observed: None,
        }
    }

    /// Tries once to take the lease.
    pub async fn try_acquire(&mut self) -> bool {
        matches!(self.try_once().await, Ok(true))
    }

    /// Waits until this process holds the lease. False if `stop` is cancelled before. Says once why it waits, and again
    /// when the reason changes.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> Result<bool, ElectionError> {
        let mut said = String::new();
        let mut refusals = 0;
        loop {
            pulse::beat();
            let tried = tokio::select! {
                tried = self.try_once() => tried,
                () = stop.cancelled() => return Ok(false),
            };
            let refused = tried.as_ref().is_err_and(is_refusal);
            refusals = if refused { refusals + 1 } else { 0 };
            match tried {
                Ok(true) => {
                    let Lease { identity, .. } = &self.lease;
                    tracing::info!("{identity} became leader by the lease {}", self.lease);
                    return Ok(true);
                }
                Err(failure) if refusals == REFUSALS_MAX => return Err(self.refused(failure)),
                waiting => self.log_waiting(waiting, &mut said),
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(false),
                () = tokio::time::sleep(self.lease.timing.retry) => {}
            }
        }
    }

    fn log_waiting(&self, waiting: Result<bool, Failure>, said: &mut String) {
        let failed = waiting.is_err();
        let why = match waiting {
            Err(failure) => format!("cannot take the lease {} yet: {failure}", self.lease),
            Ok(_) => format!(
                "standing by: the lease {} is held by {:?}",
                self.lease,
                self.holder()
            ),
        };
        if why == *said {
            return;
        }
        if failed {
            tracing::warn!("{why}");
        } else {
            tracing::info!("{why}");
        }
        *said = why;
    }

    fn refused(&self, failure: Failure) -> ElectionError {
        ElectionError {
            namespace: self.lease.namespace.clone(),
            name: self.lease.name.clone(),
            failure,
        }
    }

    /// Renews the lease until `stop` is cancelled or the lease is lost.
    pub async fn renew(&mut self, stop: &CancellationToken) {
        let deadline = self.lease.timing.renew_deadline;
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.lease.timing.retry) => {}
            }
            // A hanging request must not delay the deadline.
            let left = deadline.saturating_sub(renewed.elapsed());
            let tried = tokio::time::timeout(left, self.try_once()).await;
            if let Ok(Err(failure)) = &tried {
                tracing::warn!("renewing the lease {} failed: {failure}", self.lease);
            }
            match tried {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) if self.is_taken() => break,
                _ if renewed.elapsed() < deadline => {}
                _ => break,
            }
        }
        self.fence.close();
        let holder = self.holder();
        tracing::error!(
            "lost the lease {}; its holder is {holder:?} now",
            self.lease
        );
    }

    /// Runs `term` while this process holds the lease, and again each time it acquires it, until `stop` is cancelled or a
    /// term ends by itself. When the lease is lost, the term is dropped where it stands. When `stop` is cancelled, the
    /// term is awaited, and the lease released afterwards.
    pub async fn lead<F: Future>(
        mut self,
        stop: &CancellationToken,
        mut term: impl FnMut() -> F,
    ) -> Result<Option<F::Output>, ElectionError> {
        while self.acquire(stop).await? {
            let ended = {
                let mut working = std::pin::pin!(term());
                let early = tokio::select! {
                    ended = &mut working => Some(ended),
                    () = self.renew(stop) => None,
                };
                match early {
                    None if stop.is_cancelled() => Some(working.await),
                    early => early,
                }
            };
            if ended.is_some() {
                self.release().await;
                return Ok(ended);
            }
        }
        Ok(None)
    }

    /// Releases the lease, so that other candidates need not wait. Call it when all writes have ended.
    pub async fn release(mut self) {
        self.fence.close();
        let Some((observed, _)) = self.observed.take() else {
            return;
        };
        let record = Record::of(&observed);
        if record.holder != self.lease.identity {
            return;
        }
        let body = record.released(&observed, &clock::now_micros());
        if let Err(failure) = self.writer.send(&Call::replace(self.path(), &body)).await {
            tracing::warn!("releasing the lease failed: {failure}");
        }
    }

    fn is_taken(&self) -> bool {
        let holder = self.holder();
        !holder.is_empty() && holder != self.lease.identity
    }

    fn holder(&self) -> String {
        let observed = self.observed.as_ref();
        observed.map_or_else(String::new, |(lease, _)| Record::of(lease).holder)
    }

    /// Takes or renews the lease if possible, and opens the fence until the renew deadline.
    async fn try_once(&mut self) -> Result<bool, Failure> {
        let began = self.fence.now();
        let ours = self.take_or_renew(began.at).await?;
        if ours {
            let deadline = self.lease.timing.renew_deadline;
            self.fence.open_from(began, deadline);
        }
        Ok(ours)
    }

    async fn take_or_renew(&mut self, now: Instant) -> Result<bool, Failure> {
        let live = match self.writer.send(&Call::get(self.path())).await {
            Ok(answer) => answer.tree()?,
            Err(failure) if failure.is(404) => return self.create(now).await,
            Err(failure) => return Err(failure),
        };
        self.observe(live.clone(), now);
        let record = Record::of(&live);
        let ours = record.holder == self.lease.identity;
        if !ours && !record.holder.is_empty() && !self.has_expired(&record, now) {
            return Ok(false);
        }
        let Lease {
            identity, timing, ..
        } = &self.lease;
        let body = record.held(&live, identity, timing.duration, &clock::now_micros());
        self.write(&Call::replace(self.path(), &body), now).await
    }

    /// Returns false if another candidate was faster.
    async fn write(&mut self, call: &Call, now: Instant) -> Result<bool, Failure> {
        match self.writer.send(call).await {
            Ok(answer) => {
                self.observe(answer.tree()?, now);
                Ok(true)
            }
            Err(failure) if failure.is(409) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn create(&mut self, now: Instant) -> Result<bool, Failure> {
        let Lease {
            namespace,
            name,
            identity,
            timing,
        } = &self.lease;
        let now_micros = clock::now_micros();
        let body = record::new(namespace, name, identity, timing.duration, &now_micros);
        let call = Call::create(collection(namespace), body.to_string());
        self.write(&call, now).await
    }

    fn observe(&mut self, live: Value, now: Instant) {
        let since = match &self.observed {
            Some((before, since)) if before["spec"] == live["spec"] => *since,
            _ => now,
        };
        self.observed = Some((live, since));
    }

    /// Whether no renewal was observed for the duration of the holder's lease.
    fn has_expired(&self, record: &Record, now: Instant) -> bool {
        let since = self.observed.as_ref().map_or(now, |(_, since)| *since);
        now.duration_since(since) >= record.duration
    }

    fn path(&self) -> String {
        format!("{}/{}", collection(&self.lease.namespace), self.lease.name)
    }
}

kennel_core::metrics! {
    pub METRICS;
    Gauge LEADS = "leader_election_master_status" ["name"]
        "Whether this process holds the lease: 1 if it does, 0 if not.";
}

/// The metric of Kubernetes' own components that shows who is the leader.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// Open while this process is the leader.
    pub fence: Fence,
    pub name: String,
}

impl Observed for Leadership {
    fn show(&self, page: &mut Page) {
        let labels = format!("name=\"{}\"", self.name);
        let leading = i64::from(self.fence.is_open());
        page.rows(&LEADS, [(labels, leading)]);
    }
}

fn collection(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

#[cfg(test)]
mod tests;

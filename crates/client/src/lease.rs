//! Leader election with a Lease, with the timing of Kubernetes' own clients: 15 s, 10 s, 2 s.
//!
//! A [`Fence`] is open while this process certainly holds the lease: after each renewal that the API confirmed, counted
//! from before the request was sent, and for less time than other candidates wait before they take the lease. Clocks of
//! different machines are not compared: another holder's lease expires when this process has not observed a renewal for
//! the lease's duration.

mod record;

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::fence::Fence;
use crate::metrics::{Observed, Page};
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

    /// Waits until this process holds the lease. False if `stop` is cancelled before.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        let mut logged = String::new();
        loop {
            let acquired = tokio::select! {
                acquired = self.try_once() => acquired,
                () = stop.cancelled() => return false,
            };
            if acquired {
                tracing::info!("{} became leader", self.lease.identity);
                return true;
            }
            let holder = self.holder();
            if holder != logged {
                tracing::info!("the lease is held by {holder:?}; waiting");
                logged = holder;
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(self.lease.timing.retry) => {}
            }
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
            match tokio::time::timeout(left, self.try_once()).await {
                Ok(true) => renewed = Instant::now(),
                Ok(false) if self.is_taken() => break,
                Ok(false) | Err(_) if renewed.elapsed() < deadline => {}
                Ok(false) | Err(_) => break,
            }
        }
        self.fence.close();
        tracing::error!("lost the lease; its holder is {:?} now", self.holder());
    }

    /// Runs `term` while this process holds the lease, and again each time it acquires it, until `stop` is cancelled or a
    /// term ends by itself. When the lease is lost, the term is dropped where it stands. When `stop` is cancelled, the
    /// term is awaited, and the lease released afterwards.
    pub async fn lead<F: Future>(
        mut self,
        stop: &CancellationToken,
        mut term: impl FnMut() -> F,
    ) -> Option<F::Output> {
        while self.acquire(stop).await {
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
                return ended;
            }
        }
        None
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
    async fn try_once(&mut self) -> bool {
        let began = Instant::now();
        match self.take_or_renew(began).await {
            Ok(true) => {
                self.fence
                    .open_until(began + self.lease.timing.renew_deadline);
                true
            }
            Ok(false) => false,
            Err(failure) => {
                tracing::warn!("taking or renewing the lease failed: {failure}");
                false
            }
        }
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

//! Leader election by a Lease, by the rules of Kubernetes' own clients: 15 s, 10 s, 2 s.
//!
//! A [`Fence`] is open while the lease is surely ours: from each renewal that the API confirmed,
//! counted from before it was asked for, and for less time than others wait until they take it.
//! Clocks of different machines are not compared: how long another holder has been silent is counted
//! from when we saw its last renewal.

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

/// How patient everybody is. All who want a lease must agree on it.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long others wait for a silent holder: whole seconds.
    pub duration: Duration,
    /// How long the holder goes on without a renewal that was confirmed. What is left of the duration
    /// is for writes that have begun.
    pub renew_deadline: Duration,
    /// How often the holder renews and others try.
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

/// Which lease, and who we are.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What we call ourselves in it: different for every process.
    pub identity: String,
    /// How patient everybody is.
    pub timing: Timing,
}

/// One who wants the lease, or has it.
pub struct Elector {
    lease: Lease,
    /// Its own fence is open: the lease is what opens the others'.
    writer: Writer,
    fence: Fence,
    /// The lease as we last saw it, and when we saw it change.
    seen: Option<(Value, Instant)>,
}

impl Elector {
    /// An elector that opens and closes `fence`. `writer` must not wait for that fence.
    pub fn new(lease: Lease, writer: Writer, fence: Fence) -> Self {
        Self {
            lease,
            writer,
            fence,
            seen: None,
        }
    }

    /// Waits until the lease is ours. False if told to stop before.
    pub async fn win(&mut self, stop: &CancellationToken) -> bool {
        let mut told = String::new();
        loop {
            let won = tokio::select! {
                won = self.try_once() => won,
                () = stop.cancelled() => return false,
            };
            if won {
                tracing::info!("{} became leader", self.lease.identity);
                return true;
            }
            let holder = self.holder();
            if holder != told {
                tracing::info!("the lease is held by {holder:?}; waiting");
                told = holder;
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(self.lease.timing.retry) => {}
            }
        }
    }

    /// Renews the lease until told to stop, or until it is lost.
    pub async fn hold(&mut self, stop: &CancellationToken) {
        let deadline = self.lease.timing.renew_deadline;
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.lease.timing.retry) => {}
            }
            // A request that hangs must not keep us from noticing that the time is over.
            let left = deadline.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.try_once()).await {
                Ok(true) => renewed = Instant::now(),
                Ok(false) if self.is_taken() => break,
                Ok(false) | Err(_) if renewed.elapsed() < deadline => {}
                Ok(false) | Err(_) => break,
            }
        }
        self.fence.close();
        tracing::error!("the lease is lost: {:?} has it now", self.holder());
    }

    /// Runs `term` whenever and as long as the lease is ours, until told to stop or until a term ends
    /// by itself. When the lease is lost, the term is dropped where it stands; when told to stop, it
    /// is waited for, and the lease is given back after it.
    pub async fn lead<F: Future>(
        mut self,
        stop: &CancellationToken,
        mut term: impl FnMut() -> F,
    ) -> Option<F::Output> {
        while self.win(stop).await {
            let ended = {
                let mut working = std::pin::pin!(term());
                let early = tokio::select! {
                    ended = &mut working => Some(ended),
                    () = self.hold(stop) => None,
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

    /// Gives the lease back, so that others need not wait. Call it when all writes have ended.
    pub async fn release(mut self) {
        self.fence.close();
        let Some((seen, _)) = self.seen.take() else {
            return;
        };
        let record = Record::of(&seen);
        if record.holder != self.lease.identity {
            return;
        }
        let body = record.released(&seen, &clock::now_micros());
        if let Err(failure) = self.writer.send(&Call::replace(self.path(), &body)).await {
            tracing::warn!("the lease could not be given back: {failure}");
        }
    }

    fn is_taken(&self) -> bool {
        let holder = self.holder();
        !holder.is_empty() && holder != self.lease.identity
    }

    fn holder(&self) -> String {
        let seen = self.seen.as_ref();
        seen.map_or_else(String::new, |(seen, _)| Record::of(seen).holder)
    }

    /// Takes or renews the lease, if it can be had, and opens the fence for as long as it is ours.
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
                tracing::warn!("the lease could not be taken or renewed: {failure}");
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
        if !ours && !record.holder.is_empty() && !self.is_silent(&record, now) {
            return Ok(false);
        }
        let Lease {
            identity, timing, ..
        } = &self.lease;
        let body = record.held(&live, identity, timing.duration, &clock::now_micros());
        match self.writer.send(&Call::replace(self.path(), &body)).await {
            Ok(answer) => {
                self.observe(answer.tree()?, now);
                Ok(true)
            }
            // Someone was faster.
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
        match self.writer.send(&call).await {
            Ok(answer) => {
                self.observe(answer.tree()?, now);
                Ok(true)
            }
            Err(failure) if failure.is(409) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn observe(&mut self, live: Value, now: Instant) {
        let same = self
            .seen
            .as_ref()
            .is_some_and(|(seen, _)| seen["spec"] == live["spec"]);
        let since = match &self.seen {
            Some((_, since)) if same => *since,
            _ => now,
        };
        self.seen = Some((live, since));
    }

    /// Has the holder not renewed for as long as its lease lasts, as far as we saw?
    fn is_silent(&self, record: &Record, now: Instant) -> bool {
        let since = self.seen.as_ref().map_or(now, |(_, since)| *since);
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

/// Shows whether the lease is ours, as Kubernetes' own components do.
#[derive(Clone, Debug)]
pub struct Leadership {
    /// The fence that the lease opens.
    pub fence: Fence,
    /// The lease's name.
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

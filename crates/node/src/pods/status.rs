//! The status manager: writes pod statuses to the API server, and deletes pods that have terminated.
//!
//! It sends only the newest status of each pod, and only if the API server has another one. Failed writes are retried
//! without end. A static pod's status goes to its mirror pod.
//!
//! Callers never wait: they change a pod's entry and mark it as changed, so what is pending is bounded by the number
//! of pods.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kennel_client::work::Work;
use kennel_client::write::{Failure, Writer};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Pod;
use crate::sync::lock;
use entry::{Entry, Request};

const MAX_CONCURRENT_WRITES: usize = 8;
/// Before a failed write is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(20));

#[derive(Clone, Default)]
pub(super) struct StatusManager(Arc<Shared>);

#[derive(Default)]
struct Shared {
    pods: Mutex<Pods>,
    changed: Notify,
}

/// All keys are uids of pods.
#[derive(Default)]
struct Pods {
    entries: BTreeMap<String, Entry>,
    /// The uids of static pods' mirror pods.
    mirrors: BTreeMap<String, String>,
    /// Entries that may have something to write.
    changed: BTreeSet<String>,
}

impl StatusManager {
    /// Returns the manager and the future that writes, which runs until `stop`.
    pub(super) fn new(writer: Writer, stop: CancellationToken) -> (Self, impl Future<Output = ()>) {
        let manager = Self::default();
        let sender = Sender {
            shared: Arc::clone(&manager.0),
            writer,
            work: Work::new(MAX_CONCURRENT_WRITES),
        };
        (manager, sender.run(stop))
    }

    pub(super) fn set_status(&self, pod: &Pod, status: Value) {
        self.change(&pod.id.uid, |pods| {
            pods.entry(pod).newest = Some(Arc::new(status));
        });
    }

    /// Compares the status that the API server has with what was written, and writes again if they differ.
    pub(super) fn observe(&self, pod: &Pod) {
        self.change(&pod.id.uid, |pods| {
            if let Some(entry) = pods.entries.get_mut(&pod.id.uid) {
                entry.resend_if_overwritten(pod.api_status());
            }
        });
    }

    /// Deletes the pod from the API once its last status is written.
    pub(super) fn delete(&self, pod: &Pod) {
        self.change(&pod.id.uid, |pods| pods.entry(pod).delete = true);
    }

    pub(super) fn forget(&self, uid: &str) {
        let mut pods = self.0.pods();
        pods.entries.remove(uid);
        pods.mirrors.remove(uid);
    }

    pub(super) fn set_mirror(&self, uid: &str, mirror: Option<String>) {
        self.change(uid, |pods| {
            if let Some(entry) = pods.entries.get_mut(uid) {
                entry.set_target(mirror.clone());
            }
            match mirror {
                Some(mirror) => pods.mirrors.insert(uid.to_owned(), mirror),
                None => pods.mirrors.remove(uid),
            };
        });
    }

    fn change(&self, uid: &str, change: impl FnOnce(&mut Pods)) {
        let mut pods = self.0.pods();
        change(&mut pods);
        pods.changed.insert(uid.to_owned());
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn pods(&self) -> MutexGuard<'_, Pods> {
        lock(&self.pods)
    }
}

impl Pods {
    fn entry(&mut self, pod: &Pod) -> &mut Entry {
        let uid = &pod.id.uid;
        let mirror = self.mirrors.get(uid);
        let entry = self.entries.entry(uid.clone());
        entry.or_insert_with(|| Entry::new(pod, mirror.cloned()))
    }
}

enum Done {
    Written(String, Request, Result<(), Failure>),
    RetryDue(String),
}

struct Sender {
    shared: Arc<Shared>,
    writer: Writer,
    work: Work<Done>,
}

impl Sender {
    async fn run(mut self, stop: CancellationToken) {
        let shared = Arc::clone(&self.shared);
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.work.finish().await,
                () = shared.changed.notified() => {
                    let changed = std::mem::take(&mut shared.pods().changed);
                    for uid in changed {
                        self.write_next(&uid);
                    }
                }
                done = self.work.next() => match done {
                    Done::Written(uid, request, result) => self.on_written(&uid, request, result),
                    Done::RetryDue(uid) => self.on_retry_due(&uid),
                },
            }
        }
    }

    /// Starts the next write of a pod, if there is one and none is in flight.
    fn write_next(&mut self, uid: &str) {
        let next = self
            .shared
            .pods()
            .entries
            .get_mut(uid)
            .and_then(Entry::next);
        let Some((request, call)) = next else {
            return;
        };
        let (writer, uid) = (self.writer.clone(), uid.to_owned());
        self.work.push(async move {
            let result = writer.send(&call).await.map(drop);
            Done::Written(uid, request, result)
        });
    }

    fn on_retry_due(&mut self, uid: &str) {
        if let Some(entry) = self.shared.pods().entries.get_mut(uid) {
            entry.busy = false;
        }
        self.write_next(uid);
    }

    fn on_written(&mut self, uid: &str, request: Request, result: Result<(), Failure>) {
        let mut pods = self.shared.pods();
        let Some(entry) = pods.entries.get_mut(uid) else {
            return;
        };
        entry.busy = false;
        match result {
            Ok(()) => entry.written(request),
            Err(failure) if failure.is(404) || (request.is_deletion() && failure.is(409)) => {
                entry.target_is_gone();
            }
            Err(failure) if failure.is(422) || failure.is(400) => {
                tracing::error!(pod = %entry.pod.name, "the API server rejects the pod's status: {failure}");
                entry.written(request);
            }
            Err(failure) => {
                let delay = backoff::delay(&RETRY, entry.failures);
                entry.failures += 1;
                entry.busy = true;
                tracing::debug!(pod = %entry.pod.name, ?delay, "retrying the write of the pod's status: {failure}");
                drop(pods);
                return self.work.later(delay, Done::RetryDue(uid.to_owned()));
            }
        }
        entry.failures = 0;
        drop(pods);
        self.write_next(uid);
    }
}

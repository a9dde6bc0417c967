//! What a worker has to handle next. Senders never wait: each kind of message replaces or joins the one that is
//! pending, so a mailbox holds at most one of each.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kennel_core::pod::status::PodFailure;
use tokio::sync::Notify;

use crate::pods::Pod;
use crate::sync::lock;

#[derive(Default)]
pub(in crate::pods) struct Mailbox {
    pending: Mutex<Pending>,
    changed: Notify,
}

#[derive(Default)]
pub(super) struct Pending {
    /// The newest version of the pod, if it has changed.
    pub(super) pod: Option<Arc<Pod>>,
    /// The pod's source does not have it any more.
    pub(super) removed: bool,
    /// The runtime reported a change of the pod.
    pub(super) observe: bool,
    /// The pod is to be evicted, with this grace period.
    pub(super) eviction: Option<(PodFailure, Duration)>,
}

impl Mailbox {
    pub(in crate::pods) fn set_pod(&self, pod: Arc<Pod>) {
        self.post(|pending| pending.pod = Some(pod));
    }

    pub(in crate::pods) fn remove(&self) {
        self.post(|pending| pending.removed = true);
    }

    pub(in crate::pods) fn observe(&self) {
        self.post(|pending| pending.observe = true);
    }

    /// The first failure and the shortest grace period count.
    pub(in crate::pods) fn evict(&self, failure: PodFailure, grace: Duration) {
        self.post(|pending| match &mut pending.eviction {
            Some((_, shortest)) => *shortest = grace.min(*shortest),
            None => pending.eviction = Some((failure, grace)),
        });
    }

    fn post(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut lock(&self.pending));
        self.changed.notify_one();
    }

    /// Waits until something is pending and takes it. Loses nothing if the future is dropped.
    pub(super) async fn receive(&self) -> Pending {
        self.changed.notified().await;
        std::mem::take(&mut lock(&self.pending))
    }
}

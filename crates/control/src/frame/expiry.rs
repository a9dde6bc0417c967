//! A controller that deletes each object when it expires, and tries again later if that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Failures, Policy};
use kennel_client::clock::Clock;
use kennel_client::pace::Pace;
use kennel_client::write::{Call, Writer};
use kennel_types::{Monotonic, Timestamp};

use super::{Context, Controller, Update};

/// Before an object whose deletion failed is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_mins(1));

/// How many objects are deleted at once.
const AT_ONCE: usize = 8;

/// An object, and when to delete it.
pub struct Expiring {
    pub uid: Arc<str>,
    /// Kind and name, for the log.
    pub label: String,
    /// `Timestamp::MAX` for never.
    pub at: Timestamp,
    pub deletion: Call,
}

/// See the [module](self).
pub struct Expirations {
    name: &'static str,
    writer: Writer,
    /// By uid.
    objects: BTreeMap<Arc<str>, Expiring>,
    /// The same, by time.
    due: BTreeSet<(Timestamp, Arc<str>)>,
    /// By uid.
    failures: Failures<Arc<str>>,
}

impl Expirations {
    /// `name` is for the log.
    pub fn new(name: &'static str, writer: Writer) -> Self {
        Self {
            name,
            writer,
            objects: BTreeMap::new(),
            due: BTreeSet::new(),
            failures: Failures::new(RETRY),
        }
    }

    fn insert(&mut self, object: Expiring) {
        self.remove(&object.uid);
        self.due.insert((object.at, object.uid.clone()));
        self.objects.insert(object.uid.clone(), object);
    }

    fn remove(&mut self, uid: &str) -> Option<Expiring> {
        let object = self.objects.remove(uid)?;
        self.due.remove(&(object.at, object.uid.clone()));
        Some(object)
    }
}

pub enum Outcome {
    Deleted,
    Failed(Expiring),
    RetryDue(Expiring),
}

impl Controller for Expirations {
    type Event = Update<Expiring>;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        self.name
    }

    fn pace(&self) -> Pace {
        Pace::steady(AT_ONCE)
    }

    fn handle(&mut self, event: Self::Event, _: &mut Context<Self>) {
        match event {
            Update::Applied(object) => self.insert(object),
            Update::Gone(id) => {
                self.remove(&id.uid);
                self.failures.reset(&id.uid);
            }
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        let now = cx.timestamp();
        while let Some((at, uid)) = self.due.first().cloned()
            && at <= now
        {
            let object = self.remove(&uid);
            let object = object.expect("both maps hold the same objects");
            let writer = self.writer.clone();
            cx.spawn(async move {
                if delete(&writer, &object).await {
                    Outcome::Deleted
                } else {
                    Outcome::Failed(object)
                }
            });
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Deleted => {}
            // Waits by the monotonic clock; when it expires is a matter of wall time.
            Outcome::Failed(object) => {
                let delay = self.failures.next_delay(object.uid.clone());
                cx.after(delay, Outcome::RetryDue(object));
            }
            Outcome::RetryDue(object) => {
                if !self.objects.contains_key(&object.uid) {
                    self.insert(object);
                }
            }
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        self.due.first().map(|(at, _)| clock.when(*at))
    }
}

/// Returns false if the deletion has to be tried again.
async fn delete(
    writer: &Writer,
    Expiring {
        label, deletion, ..
    }: &Expiring,
) -> bool {
    match writer.send(deletion).await {
        Ok(_) => {
            tracing::info!("deleted the expired {label}");
            true
        }
        // Deleted, or changed: the watch delivers which.
        Err(failure) if failure.is(404) || failure.is(409) => true,
        Err(failure) => {
            tracing::warn!("deleting {label} failed: {failure}");
            false
        }
    }
}

//! The hub of one collection: indexes its watchers and sends each event to those it matches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kennel_store::{Event, Store, WatchEnd};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::filter::Place;
use super::{Change, Filter, Shared};
use crate::object::{self, Head};
use crate::registry::{RESOURCES, Resource};
use crate::snapshots::Snapshots;

/// How many events a watcher may be behind before its watch ends. A burst of a large cluster (a few thousand
/// pods) must fit; at 3 KiB a pod, a full buffer refers to no more bytes than the store's history.
pub const BUFFER_EVENTS: usize = 8192;

/// How often a collection without events advances its position: well below the minute between bookmarks, so
/// that each bookmark has a newer resourceVersion.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// An event for one watcher.
pub type Delivery = (Arc<Shared>, Change);

/// What a watcher receives at once: all events of a revision that concern it, because a client that has some of them goes on after
/// the revision, without the others.
pub enum Batch {
    One(Delivery),
    /// A transaction of etcd, or the end of one of its leases, changed several objects.
    Several(Vec<Delivery>),
}

/// The state that the hub and a watcher share.
struct Registration {
    id: u64,
    filter: Filter,
    /// Set when the hub ended the watch because its buffer was full.
    too_slow: AtomicBool,
}

/// The hub's side of a watcher. Only the hub holds the sender: dropping it ends the watch.
struct Watcher {
    registration: Arc<Registration>,
    sender: mpsc::Sender<Batch>,
}

/// The hub of one collection.
pub struct Hub {
    prefix: String,
    /// The last revision whose events were sent to the watchers.
    position: AtomicU64,
    watchers: Mutex<Watchers>,
}

type Index = HashMap<Box<str>, Vec<Watcher>>;

/// Watchers by the most selective part of their filter. Each is in exactly one index.
#[derive(Default)]
struct Watchers {
    closed: bool,
    next_id: u64,
    count: usize,
    all: Vec<Watcher>,
    by_namespace: Index,
    by_name: Index,
    by_field: HashMap<usize, Index>,
    by_label: HashMap<Box<str>, Index>,
}

impl Watchers {
    fn insert(&mut self, watcher: Watcher) {
        self.count += 1;
        let shelf = match watcher.registration.filter.place() {
            Place::All => return self.all.push(watcher),
            Place::Name(_) => &mut self.by_name,
            Place::Namespace(_) => &mut self.by_namespace,
            Place::Field(field, _) => self.by_field.entry(*field).or_default(),
            Place::Label(key, _) => self.by_label.entry(key.clone()).or_default(),
        };
        let value = watcher.registration.filter.place().value().into();
        shelf.entry(value).or_default().push(watcher);
    }

    /// Removes a watcher, and its index entry if that becomes empty.
    fn remove(&mut self, registration: &Registration) {
        let place = registration.filter.place();
        let shelf = match place {
            Place::All => {
                let before = self.all.len();
                self.all.retain(|w| w.registration.id != registration.id);
                self.count -= before - self.all.len();
                return;
            }
            Place::Name(_) => Some(&mut self.by_name),
            Place::Namespace(_) => Some(&mut self.by_namespace),
            Place::Field(field, _) => self.by_field.get_mut(field),
            Place::Label(key, _) => self.by_label.get_mut(key),
        };
        let Some(shelf) = shelf else { return };
        let Some(list) = shelf.get_mut(place.value()) else {
            return;
        };
        let before = list.len();
        list.retain(|w| w.registration.id != registration.id);
        self.count -= before - list.len();
        if list.is_empty() {
            shelf.remove(place.value());
        }
    }

    /// Calls `visit` with every watcher whose filter may match an object with this head.
    fn candidates(&self, head: &Head, visit: &mut impl FnMut(&Watcher)) {
        let mut visit_all = |list: Option<&Vec<Watcher>>| {
            list.into_iter().flatten().for_each(&mut *visit);
        };
        visit_all(self.by_name.get(&head.name));
        for (field, values) in &self.by_field {
            visit_all(head.field_at(*field).and_then(|value| values.get(value)));
        }
        for (key, values) in &self.by_label {
            visit_all(head.label(key).and_then(|value| values.get(value)));
        }
        visit_all(self.by_namespace.get(&head.namespace));
        visit_all(Some(&self.all));
    }

    fn each(&self, visit: &mut impl FnMut(&Watcher)) {
        self.all.iter().for_each(&mut *visit);
        let shelves = [&self.by_name, &self.by_namespace].into_iter();
        let shelves = shelves
            .chain(self.by_field.values())
            .chain(self.by_label.values());
        shelves.flat_map(HashMap::values).flatten().for_each(visit);
    }
}

/// The watcher's side of a watch.
pub struct Subscription {
    hub: Arc<Hub>,
    registration: Arc<Registration>,
    pub receiver: mpsc::Receiver<Batch>,
}

impl Subscription {
    /// How many watchers the collection has.
    pub(super) fn watchers(&self) -> usize {
        self.hub.watchers()
    }

    /// Whether the hub ended the watch because its buffer was full.
    pub fn was_too_slow(&self) -> bool {
        self.registration.too_slow.load(Ordering::Acquire)
    }

    /// The last revision whose events were sent to the watchers.
    pub fn position(&self) -> u64 {
        self.hub.position()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.lock().remove(&self.registration);
    }
}

impl Hub {
    fn new(prefix: String, position: u64) -> Self {
        Self {
            prefix,
            position: AtomicU64::new(position),
            watchers: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last revision whose events were sent to the watchers.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    pub fn watchers(&self) -> usize {
        self.lock().count
    }

    /// Starts a watch. `None` when the server is shutting down.
    pub fn subscribe(self: &Arc<Self>, filter: Filter) -> Option<Subscription> {
        let (sender, receiver) = mpsc::channel(BUFFER_EVENTS);
        let mut watchers = self.lock();
        if watchers.closed {
            return None;
        }
        watchers.next_id += 1;
        let id = watchers.next_id;
        let registration = Arc::new(Registration {
            id,
            filter,
            too_slow: AtomicBool::new(false),
        });
        watchers.insert(Watcher {
            registration: Arc::clone(&registration),
            sender,
        });
        Some(Subscription {
            hub: Arc::clone(self),
            registration,
            receiver,
        })
    }

    /// Sends events of whole revisions to the watchers, in order, and ends the watches whose buffer is full.
    fn send(&self, events: &[Arc<Event<Head>>]) {
        let Some(last) = events.last() else { return };
        let mut slow = Vec::new();
        let mut watchers = self.lock();
        for revision in events.chunk_by(|one, next| one.revision == next.revision) {
            match revision {
                [event] => send_one(&watchers, event, &mut slow),
                several => send_several(&watchers, several, &mut slow),
            }
        }
        for registration in slow {
            registration.too_slow.store(true, Ordering::Release);
            watchers.remove(&registration);
        }
        self.position.store(last.revision, Ordering::Release);
    }

    /// Ends all watches and refuses new ones.
    fn close(&self) {
        let mut watchers = self.lock();
        *watchers = Watchers {
            closed: true,
            next_id: watchers.next_id,
            ..Watchers::default()
        };
    }
}

fn send_one(watchers: &Watchers, event: &Arc<Event<Head>>, slow: &mut Vec<Arc<Registration>>) {
    for_concerned(watchers, event, |watcher, shared, change| {
        let batch = Batch::One((Arc::clone(shared), change));
        send(&watcher.sender, &watcher.registration, batch, slow);
    });
}

/// Sends the events of one revision.
fn send_several(
    watchers: &Watchers,
    events: &[Arc<Event<Head>>],
    slow: &mut Vec<Arc<Registration>>,
) {
    type Waiting = (mpsc::Sender<Batch>, Arc<Registration>, Vec<Delivery>);
    let mut batches: HashMap<u64, Waiting> = HashMap::new();
    for event in events {
        for_concerned(watchers, event, |watcher, shared, change| {
            let registration = &watcher.registration;
            let new = || (watcher.sender.clone(), Arc::clone(registration), Vec::new());
            let (.., batch) = batches.entry(registration.id).or_insert_with(new);
            batch.push((Arc::clone(shared), change));
        });
    }
    for (sender, registration, batch) in batches.into_values() {
        send(&sender, &registration, Batch::Several(batch), slow);
    }
}

fn send(
    sender: &mpsc::Sender<Batch>,
    registration: &Arc<Registration>,
    batch: Batch,
    slow: &mut Vec<Arc<Registration>>,
) {
    let is_full = sender.try_send(batch).is_err();
    if is_full && !slow.iter().any(|t| t.id == registration.id) {
        slow.push(Arc::clone(registration));
    }
}

/// Calls `found` for each watcher that the event concerns, with what it means to it.
fn for_concerned(
    watchers: &Watchers,
    event: &Arc<Event<Head>>,
    mut found: impl FnMut(&Watcher, &Arc<Shared>, Change),
) {
    if watchers.count == 0 {
        return;
    }
    let mut shared = None;
    let mut deliver = |watcher: &Watcher| {
        let Some(change) = Change::of(event, &watcher.registration.filter) else {
            return;
        };
        let shared = shared.get_or_insert_with(|| Arc::new(Shared::new(Arc::clone(event))));
        found(watcher, shared, change);
    };
    let after = event.after.as_ref();
    if let Some(record) = after {
        watchers.candidates(&record.head, &mut deliver);
    }
    if let Some(record) = &event.before {
        // Watchers that the new version matches already got the event.
        let mut only_old = |watcher: &Watcher| {
            if !after.is_some_and(|r| watcher.registration.filter.place().covers(&r.head)) {
                deliver(watcher);
            }
        };
        watchers.candidates(&record.head, &mut only_old);
    }
}

/// The hubs of all collections.
pub struct Hubs {
    all: Vec<(&'static str, Arc<Hub>)>,
    changed: Arc<Notify>,
    ending: CancellationToken,
}

impl Hubs {
    /// One hub per stored collection, at the store's current revision.
    pub fn new(revision: u64) -> Self {
        let mut hubs: Vec<(&'static str, Arc<Hub>)> = Vec::new();
        // The watch of a projection follows that of its source.
        for row in RESOURCES.iter().filter(|row| row.projection.is_none()) {
            if !hubs.iter().any(|(storage, _)| *storage == row.storage()) {
                let hub = Hub::new(object::prefix(row, None), revision);
                hubs.push((row.storage(), Arc::new(hub)));
            }
        }
        Self {
            all: hubs,
            changed: Arc::default(),
            ending: CancellationToken::new(),
        }
    }

    /// Cancelled when all watches end, for streams without a hub.
    pub fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    pub fn of(&self, row: &Resource) -> &Arc<Hub> {
        let found = self
            .all
            .iter()
            .find(|(storage, _)| *storage == row.storage());
        &found
            .expect("every row's storage has a hub, by construction")
            .1
    }

    pub fn watchers(&self) -> usize {
        self.all.iter().map(|(_, hub)| hub.watchers()).sum()
    }

    /// Waits until `holds`, which is checked after every write.
    pub async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that no write is missed.
            changed.as_mut().enable();
            if holds() {
                return;
            }
            changed.await;
        }
    }

    pub fn close(&self) {
        self.ending.cancel();
        self.all.iter().for_each(|(_, hub)| hub.close());
    }

    /// Feeds every hub from the store until the store closes.
    pub(crate) fn start(&self, store: &Arc<dyn Store<Head>>, snapshots: &Arc<Snapshots>) {
        for (_, hub) in &self.all {
            let feed = feed(
                Arc::clone(hub),
                Arc::clone(store),
                Arc::clone(snapshots),
                Arc::clone(&self.changed),
            );
            tokio::spawn(feed);
        }
    }
}

/// Feeds a hub from the store. If it falls behind the store's history, it ends all watches of the collection
/// (their clients list again) and continues from the current revision.
async fn feed(
    hub: Arc<Hub>,
    store: Arc<dyn Store<Head>>,
    snapshots: Arc<Snapshots>,
    changed: Arc<Notify>,
) {
    loop {
        let Ok(mut watch) = store.watch(&hub.prefix, hub.position()) else {
            hub.end_all(store.revision());
            continue;
        };
        loop {
            let Ok(next) = tokio::time::timeout(PROGRESS_INTERVAL, watch.next()).await else {
                hub.advance(watch.progress());
                continue;
            };
            match next {
                Ok(events) => {
                    hub.send(&events);
                    changed.notify_waiters();
                }
                Err(WatchEnd::TooSlow) => break,
                Err(WatchEnd::Reset) => {
                    snapshots.clear();
                    hub.end_all(store.revision());
                    break;
                }
                Err(WatchEnd::Closed) => return hub.close(),
            }
        }
    }
}

impl Hub {
    /// Advances the position when other collections have changed, so that bookmarks advance too.
    fn advance(&self, position: Option<u64>) {
        self.position
            .fetch_max(position.unwrap_or(0), Ordering::AcqRel);
    }

    fn end_all(&self, position: u64) {
        let mut watchers = self.lock();
        let fresh = Watchers {
            next_id: watchers.next_id,
            ..Watchers::default()
        };
        let old = std::mem::replace(&mut *watchers, fresh);
        old.each(&mut |watcher| watcher.registration.too_slow.store(true, Ordering::Release));
        self.position.store(position, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;

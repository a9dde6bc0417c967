//! The hub of one collection: who watches what, and who gets an event.

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

/// Events a watcher may be behind before it is cut off. A burst of one sync round of a large
/// cluster (a few thousand pods) must fit; at 3 KiB a pod the shared bytes behind a full buffer
/// stay within the store's own history.
pub const BUFFER_EVENTS: usize = 8192;

/// How often a quiet collection learns how far the others have come. Well below the minute between
/// bookmarks, so that each of them says something new.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// What a watcher is handed.
pub type Delivery = (Arc<Shared>, Change);

/// What the hub and a watcher both know.
struct Ticket {
    id: u64,
    filter: Filter,
    /// Set when the watcher was too slow and has been cut off.
    too_slow: AtomicBool,
}

/// A watcher as the hub sees it. Only the hub holds the sender: dropping it ends the watch.
struct Watcher {
    ticket: Arc<Ticket>,
    sender: mpsc::Sender<Delivery>,
}

/// The hub of one collection.
pub struct Hub {
    prefix: String,
    /// The last revision whose events have been handed out.
    position: AtomicU64,
    watchers: Mutex<Watchers>,
}

type Shelf = HashMap<Box<str>, Vec<Watcher>>;

/// Watchers by the most selective thing they ask for. Each stands in exactly one place.
#[derive(Default)]
struct Watchers {
    closed: bool,
    next_id: u64,
    count: usize,
    all: Vec<Watcher>,
    by_namespace: Shelf,
    by_name: Shelf,
    by_field: HashMap<usize, Shelf>,
    by_label: HashMap<Box<str>, Shelf>,
}

impl Watchers {
    fn insert(&mut self, watcher: Watcher) {
        self.count += 1;
        let shelf = match watcher.ticket.filter.place() {
            Place::All => return self.all.push(watcher),
            Place::Name(_) => &mut self.by_name,
            Place::Namespace(_) => &mut self.by_namespace,
            Place::Field(field, _) => self.by_field.entry(*field).or_default(),
            Place::Label(key, _) => self.by_label.entry(key.clone()).or_default(),
        };
        let value = watcher.ticket.filter.place().value().into();
        shelf.entry(value).or_default().push(watcher);
    }

    /// Forgets a watcher, and its place when nobody else stands there.
    fn remove(&mut self, ticket: &Ticket) {
        let place = ticket.filter.place();
        let shelf = match place {
            Place::All => {
                let before = self.all.len();
                self.all.retain(|w| w.ticket.id != ticket.id);
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
        list.retain(|w| w.ticket.id != ticket.id);
        self.count -= before - list.len();
        if list.is_empty() {
            shelf.remove(place.value());
        }
    }

    /// Calls `visit` with every watcher that an object with this head may concern.
    fn candidates(&self, head: &Head, visit: &mut impl FnMut(&Watcher)) {
        let mut visit_all = |list: Option<&Vec<Watcher>>| {
            list.into_iter().flatten().for_each(&mut *visit);
        };
        visit_all(self.by_name.get(&head.name));
        for (field, values) in &self.by_field {
            visit_all(head.fields.get(*field).and_then(|value| values.get(value)));
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

/// A watcher's end of the line.
pub struct Subscription {
    hub: Arc<Hub>,
    ticket: Arc<Ticket>,
    /// Events as they come.
    pub receiver: mpsc::Receiver<Delivery>,
}

impl Subscription {
    /// Whether the hub has cut this watcher off because it did not keep up.
    pub fn was_too_slow(&self) -> bool {
        self.ticket.too_slow.load(Ordering::Acquire)
    }

    /// The last revision whose events have been handed out.
    pub fn position(&self) -> u64 {
        self.hub.position()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.lock().remove(&self.ticket);
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

    /// The last revision whose events have been handed out.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// How many watchers there are.
    pub fn watchers(&self) -> usize {
        self.lock().count
    }

    /// Begins a watch. `None` when the server is shutting down.
    pub fn subscribe(self: &Arc<Self>, filter: Filter) -> Option<Subscription> {
        let (sender, receiver) = mpsc::channel(BUFFER_EVENTS);
        let mut watchers = self.lock();
        if watchers.closed {
            return None;
        }
        watchers.next_id += 1;
        let id = watchers.next_id;
        let ticket = Arc::new(Ticket {
            id,
            filter,
            too_slow: AtomicBool::new(false),
        });
        watchers.insert(Watcher {
            ticket: Arc::clone(&ticket),
            sender,
        });
        Some(Subscription {
            hub: Arc::clone(self),
            ticket,
            receiver,
        })
    }

    /// Hands events out, in order, and drops watchers that do not keep up.
    fn hand_out(&self, events: &[Arc<Event<Head>>]) {
        let Some(last) = events.last() else { return };
        let mut slow = Vec::new();
        let mut watchers = self.lock();
        for event in events {
            hand_out_one(&watchers, event, &mut slow);
        }
        for ticket in slow {
            ticket.too_slow.store(true, Ordering::Release);
            watchers.remove(&ticket);
        }
        self.position.store(last.revision, Ordering::Release);
    }

    /// Ends all watches; later ones are refused.
    fn close(&self) {
        let mut watchers = self.lock();
        *watchers = Watchers {
            closed: true,
            next_id: watchers.next_id,
            ..Watchers::default()
        };
    }
}

fn hand_out_one(watchers: &Watchers, event: &Arc<Event<Head>>, slow: &mut Vec<Arc<Ticket>>) {
    if watchers.count == 0 {
        return;
    }
    let mut shared = None;
    let mut deliver = |watcher: &Watcher| {
        let ticket = &watcher.ticket;
        let Some(change) = Change::of(event, &ticket.filter) else {
            return;
        };
        let shared = shared.get_or_insert_with(|| Arc::new(Shared::new(Arc::clone(event))));
        let full = watcher
            .sender
            .try_send((Arc::clone(shared), change))
            .is_err();
        if full && !slow.iter().any(|t| t.id == ticket.id) {
            slow.push(Arc::clone(ticket));
        }
    };
    let after = event.after.as_ref();
    if let Some(record) = after {
        watchers.candidates(&record.head, &mut deliver);
    }
    if let Some(record) = &event.before {
        // Watchers found through the new state already got the event.
        let mut only_old = |watcher: &Watcher| {
            if !after.is_some_and(|r| watcher.ticket.filter.place().covers(&r.head)) {
                deliver(watcher);
            }
        };
        watchers.candidates(&record.head, &mut only_old);
    }
}

/// The hubs of all collections.
pub struct Hubs {
    all: Vec<(&'static str, Arc<Hub>)>,
    moved: Arc<Notify>,
    ending: CancellationToken,
}

impl Hubs {
    /// One hub per stored collection, positioned at the store's present revision.
    pub fn new(revision: u64) -> Self {
        let mut hubs: Vec<(&'static str, Arc<Hub>)> = Vec::new();
        for row in RESOURCES {
            if !hubs.iter().any(|(storage, _)| *storage == row.storage) {
                let hub = Hub::new(object::prefix(row, None), revision);
                hubs.push((row.storage, Arc::new(hub)));
            }
        }
        Self {
            all: hubs,
            moved: Arc::default(),
            ending: CancellationToken::new(),
        }
    }

    /// Cancelled when all watches end, for those that no hub feeds.
    pub fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// The hub of a resource.
    pub fn of(&self, row: &Resource) -> &Arc<Hub> {
        let found = self.all.iter().find(|(storage, _)| *storage == row.storage);
        &found
            .expect("every row's storage has a hub, by construction")
            .1
    }

    /// The number of watchers of all collections.
    pub fn watchers(&self) -> usize {
        self.all.iter().map(|(_, hub)| hub.watchers()).sum()
    }

    /// Waits until a condition holds that only a write can bring about.
    pub async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before looking, so that no write goes by unseen.
            moved.as_mut().enable();
            if holds() {
                return;
            }
            moved.await;
        }
    }

    /// Ends all watches.
    pub fn close(&self) {
        self.ending.cancel();
        self.all.iter().for_each(|(_, hub)| hub.close());
    }

    /// Feeds every hub from the store until the store closes.
    pub fn start(&self, store: &Arc<dyn Store<Head>>) {
        for (_, hub) in &self.all {
            let feed = feed(Arc::clone(hub), Arc::clone(store), Arc::clone(&self.moved));
            tokio::spawn(feed);
        }
    }
}

/// Follows the store. Should this ever fall behind the store's own bound, all watchers of the
/// collection are cut off (they list again), and following goes on from the present.
async fn feed(hub: Arc<Hub>, store: Arc<dyn Store<Head>>, moved: Arc<Notify>) {
    loop {
        let Ok(mut watch) = store.watch(&hub.prefix, hub.position()) else {
            hub.cut_all_off(store.revision());
            continue;
        };
        loop {
            let Ok(next) = tokio::time::timeout(PROGRESS_EVERY, watch.next()).await else {
                hub.advance(watch.progress());
                continue;
            };
            match next {
                Ok(events) => {
                    hub.hand_out(&events);
                    moved.notify_waiters();
                }
                Err(WatchEnd::TooSlow) => break,
                Err(WatchEnd::Closed) => return hub.close(),
            }
        }
    }
}

impl Hub {
    /// Nothing happened here, but the world went on: later bookmarks may say so.
    fn advance(&self, position: Option<u64>) {
        self.position
            .fetch_max(position.unwrap_or(0), Ordering::AcqRel);
    }

    fn cut_all_off(&self, position: u64) {
        let mut watchers = self.lock();
        let fresh = Watchers {
            next_id: watchers.next_id,
            ..Watchers::default()
        };
        let old = std::mem::replace(&mut *watchers, fresh);
        old.each(&mut |watcher| watcher.ticket.too_slow.store(true, Ordering::Release));
        self.position.store(position, Ordering::Release);
    }
}

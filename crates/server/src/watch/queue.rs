//! The live events that wait to be sent to one watcher.
//!
//! Of a resource whose rows say so (`coalesced`), a state that a newer event of the same object replaces is not sent. A slice of a
//! large service has 25 kB and changes with each of its pods, and each node watches it: without this, one rolling update would
//! send terabytes. Two things make events wait here: a client that reads slowly, and the [`Pace`] of the whole collection.
//!
//! What a watcher sees stays a history that could have been: only `MODIFIED` events are left out, the last event of each object is
//! always sent, and revisions only grow, so that a client that resumes after any event misses nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::hub::{BUFFER_EVENTS, Delivery};
use super::{Change, Shared};

/// The bytes per second that events of one collection may cost to all its watchers together before they have to wait: half of
/// a network of 1 Gbit/s.
const EGRESS_BYTES_PER_SECOND: u64 = 64 << 20;
/// How long an event waits at most, so that clients learn soon that an endpoint is gone.
const HOLD_MAX: Duration = Duration::from_secs(3);
/// Shorter waits cost more than they save.
const HOLD_MIN: Duration = Duration::from_millis(2);

/// See the [module](self).
pub(super) enum Queue {
    /// Every event is sent.
    All(VecDeque<Delivery>),
    /// Events that a newer one has replaced are gone.
    Latest {
        /// Several objects can change at one revision.
        by_revision: BTreeMap<(u64, Arc<str>), Delivery>,
        /// The revision of the last waiting event of each object.
        last: HashMap<Arc<str>, u64>,
    },
}

impl Queue {
    pub(super) fn new(coalesced: bool) -> Self {
        if coalesced {
            Self::Latest {
                by_revision: BTreeMap::new(),
                last: HashMap::new(),
            }
        } else {
            Self::All(VecDeque::new())
        }
    }

    pub(super) fn push(&mut self, shared: Arc<Shared>, change: Change) {
        match self {
            Self::All(events) => events.push_back((shared, change)),
            Self::Latest { by_revision, last } => {
                let (revision, key) = (shared.event.revision, &shared.event.key);
                let before = last.insert(Arc::clone(key), revision);
                // A client has to learn of each object that comes or goes.
                let is_replaced = |(_, change): &Delivery| *change == Change::Modified;
                if let Some(before) = before.map(|before| (before, Arc::clone(key)))
                    && by_revision.get(&before).is_some_and(is_replaced)
                {
                    by_revision.remove(&before);
                }
                let at = (revision, Arc::clone(key));
                by_revision.insert(at, (shared, change));
            }
        }
    }

    /// The next event to send.
    pub(super) fn pop(&mut self) -> Option<Delivery> {
        match self {
            Self::All(events) => events.pop_front(),
            Self::Latest { by_revision, last } => {
                let ((revision, key), event) = by_revision.pop_first()?;
                if last.get(&key) == Some(&revision) {
                    last.remove(&key);
                }
                Some(event)
            }
        }
    }

    /// The revision of the next event.
    pub(super) fn next_revision(&self) -> Option<u64> {
        match self {
            Self::All(events) => events.front().map(|(shared, _)| shared.event.revision),
            Self::Latest { .. } => self.waiting().map(|(first, _)| first),
        }
    }

    /// The revisions of the first and the last event that wait; of resources that send every state, nothing.
    fn waiting(&self) -> Option<(u64, u64)> {
        let Self::Latest { by_revision, .. } = self else {
            return None;
        };
        let ((first, _), _) = by_revision.first_key_value()?;
        let ((last, _), _) = by_revision.last_key_value()?;
        Some((*first, *last))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(events) => events.len(),
            Self::Latest { by_revision, .. } => by_revision.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No more is taken from the watcher's buffer, whose end would end the watch.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= BUFFER_EVENTS
    }
}

/// Events are sent in batches: what waits when one begins. The next batch of a watcher waits as long as it takes to send the last
/// one to all watchers of the collection, however fast events come meanwhile.
#[derive(Default)]
pub(super) struct Pace {
    sent: u64,
    until: Option<Instant>,
    /// The last revision of the batch that is being sent, or was sent last.
    batch_until: u64,
}

impl Pace {
    /// Whether the next event that waits belongs to the batch that is being sent. If not, and `may_begin`, it begins the next one.
    pub(super) fn admits(&mut self, queue: &Queue, may_begin: bool) -> bool {
        let Some((first, last)) = queue.waiting() else {
            return true;
        };
        if first > self.batch_until && may_begin {
            self.batch_until = last;
        }
        first <= self.batch_until
    }

    /// Whether every event of the batch is sent.
    pub(super) fn batch_is_sent(&self, queue: &Queue) -> bool {
        queue
            .waiting()
            .is_none_or(|(first, _)| first > self.batch_until)
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// The batch is sent: the next one has to wait.
    pub(super) fn hold(&mut self, now: Instant, watchers: usize) {
        let bytes = std::mem::take(&mut self.sent).saturating_mul(watchers as u64);
        let hold = Duration::from_millis(bytes.saturating_mul(1000) / EGRESS_BYTES_PER_SECOND);
        self.until = (hold >= HOLD_MIN).then(|| now + hold.min(HOLD_MAX));
    }

    /// Until when events wait.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether events wait.
    pub(super) fn is_holding(&mut self, now: Instant) -> bool {
        self.until = self.until.filter(|until| now < *until);
        self.until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use kennel_store::{Event, Record};
    use serde_json::json;

    use super::*;
    use crate::object::{self, Head};

    fn record(name: &str, revision: u64) -> Arc<Record<Head>> {
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "ns", "uid": name},
        });
        let bytes = object.to_string().into_bytes();
        let key = format!("/registry/endpointslices/ns/{name}");
        let head = object::decode(&key, &bytes).unwrap();
        Arc::new(Record {
            key: key.as_str().into(),
            value: bytes.into(),
            head,
            created: revision,
            modified: revision,
        })
    }

    /// Pushes these events, as `revision change name`; returns those that are popped, likewise.
    fn sent(coalesced: bool, events: &[&str]) -> Vec<String> {
        let mut queue = Queue::new(coalesced);
        for event in events {
            let words: Vec<&str> = event.split(' ').collect();
            let [revision, change, name] = words[..] else {
                panic!("{event}");
            };
            let revision = revision.parse().unwrap();
            let (change, before, after) = match change {
                "A" => (Change::Added, false, true),
                "M" => (Change::Modified, true, true),
                _ => (Change::Deleted, true, false),
            };
            let event = Event {
                revision,
                key: name.into(),
                before: before.then(|| record(name, revision - 1)),
                after: after.then(|| record(name, revision)),
            };
            queue.push(Arc::new(Shared::new(Arc::new(event))), change);
        }
        let mut popped = Vec::new();
        while let Some((shared, change)) = queue.pop() {
            let change = &change.word()[..1];
            popped.push(format!(
                "{} {change} {}",
                shared.event.revision, shared.event.key
            ));
        }
        if let Queue::Latest { last, .. } = queue {
            assert!(last.is_empty());
        }
        popped
    }

    #[test]
    fn n2_8_only_states_that_a_newer_one_replaces_are_left_out() {
        let check = |events: &[&str], expected: &[&str]| {
            assert_eq!(sent(true, events), expected, "{events:?}");
            assert_eq!(sent(false, events), events);
        };
        check(&["1 M a", "2 M b", "3 M a", "4 M a"], &["2 M b", "4 M a"]);
        // A watcher learns of each object that comes or goes.
        check(&["1 A a", "2 M a", "3 M a"], &["1 A a", "3 M a"]);
        check(&["1 M a", "2 D a"], &["2 D a"]);
        check(&["1 A a", "2 D a"], &["1 A a", "2 D a"]);
        check(
            &["1 M a", "2 D a", "3 A a", "4 M a", "5 M a"],
            &["2 D a", "3 A a", "5 M a"],
        );
        // A transaction changes several objects at one revision.
        check(&["1 M a", "1 M b", "2 M a", "2 D b"], &["2 M a", "2 D b"]);
        check(&["1 M a", "1 M b", "1 A c"], &["1 M a", "1 M b", "1 A c"]);
    }

    /// However long events wait, they take the memory of one per object.
    #[test]
    fn n2_8_a_queue_is_bounded_by_the_number_of_objects() {
        let mut queue = Queue::new(true);
        for revision in 1..=10_000 {
            let name = if revision % 2 == 0 { "a" } else { "b" };
            let event = Event {
                revision,
                key: name.into(),
                before: Some(record(name, revision)),
                after: Some(record(name, revision)),
            };
            queue.push(Arc::new(Shared::new(Arc::new(event))), Change::Modified);
            assert!(queue.len() <= 2);
        }
    }

    /// Otherwise a client that reads as fast as slices change would get every state, and the pace would never apply.
    #[test]
    fn n2_8_events_that_come_while_others_are_sent_belong_to_the_next_batch() {
        let modified = |queue: &mut Queue, name: &str, revision: u64| {
            let event = Event {
                revision,
                key: name.into(),
                before: Some(record(name, revision)),
                after: Some(record(name, revision)),
            };
            queue.push(Arc::new(Shared::new(Arc::new(event))), Change::Modified);
        };
        let (mut pace, mut queue) = (Pace::default(), Queue::new(true));
        modified(&mut queue, "a", 1);
        modified(&mut queue, "b", 2);
        assert!(pace.admits(&queue, true));
        queue.pop();
        modified(&mut queue, "a", 3);
        modified(&mut queue, "c", 4);
        assert!(pace.admits(&queue, false), "b belongs to the batch");
        assert!(!pace.batch_is_sent(&queue));
        queue.pop();
        assert!(pace.batch_is_sent(&queue));
        assert!(!pace.admits(&queue, false), "a and c wait");
        assert!(pace.admits(&queue, true), "until the next batch begins");
        assert!(!pace.batch_is_sent(&queue));
    }

    #[test]
    fn n2_8_the_wait_is_bounded_and_short_where_few_watch() {
        let wait = |bytes: usize, watchers: usize| {
            let (mut pace, now) = (Pace::default(), Instant::now());
            pace.sent(bytes);
            pace.hold(now, watchers);
            pace.until().map(|until| (until - now).as_millis())
        };
        // One slice of 100 endpoints, for the nodes of a small cluster and of the largest.
        assert_eq!(wait(25_000, 3), None);
        assert_eq!(wait(25_000, 100), Some(37));
        assert_eq!(wait(25_000, 5_000), Some(1862));
        assert_eq!(wait(50 * 25_000, 5_000), Some(3000));
    }
}

//! Which events are written, by the rules of Kubernetes' own correlator (rule 3.10.2): repeated events are counted, similar
//! ones are aggregated, and objects with too many events are rate-limited. [`Limits`] may be wider than upstream's.
//!
//! Pure: the time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kennel_types::Monotonic;

use super::{Note, Reference};
use crate::rate::TokenBucket;

/// How many events a recorder writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many on one object at once.
    burst: f64,
    /// After that, one in this many seconds.
    refill_seconds: f64,
    /// From this number of different messages on, events are aggregated.
    similar: Option<usize>,
}

impl Limits {
    /// Upstream's.
    pub(super) const KUBERNETES: Self = Self {
        burst: 25.0,
        refill_seconds: 300.0,
        similar: Some(10),
    };
    /// For transitions of an object, each of which is written to the API anyway: two for each stage of a rollout of a
    /// hundred stages at once, and each with its own message.
    pub(super) const TRANSITIONS: Self = Self {
        burst: 200.0,
        refill_seconds: 30.0,
        similar: None,
    };
}

/// Events with the same reason are similar if they come within this time.
const SIMILAR_WITHIN: Duration = Duration::from_mins(10);
/// How many entries each cache holds.
const CACHED: usize = 4096;

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// A new event. `key` is for [`Correlator::written`].
    Create { message: String, key: String },
    /// An existing event with a new count. `first` is its first timestamp.
    Count {
        name: String,
        count: u64,
        message: String,
        first: String,
        key: String,
    },
    /// The object has too many events.
    Drop,
}

/// An event that was written.
#[derive(Clone, Debug, Default)]
struct Logged {
    name: String,
    count: u64,
    first: String,
}

#[derive(Default)]
struct Similar {
    messages: BTreeSet<String>,
    last: Monotonic,
}

/// What has been written so far.
pub(super) struct Correlator {
    limits: Limits,
    similar: Cache<Similar>,
    logged: Cache<Logged>,
    buckets: Cache<TokenBucket>,
}

impl Correlator {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            similar: Cache::default(),
            logged: Cache::default(),
            buckets: Cache::default(),
        }
    }

    pub(super) fn decide(&mut self, about: &Reference, note: &Note, now: Monotonic) -> Decision {
        let object = about.key();
        let kind = format!("{object}\n{}\n{}", note.warning, note.reason);
        let (key, message) = self.aggregate(kind, &about.field_path, note, now);
        let known = self.logged.get(&key, now).filter(|logged| logged.count > 0);
        let decision = match known {
            Some(logged) => {
                logged.count += 1;
                Decision::Count {
                    name: logged.name.clone(),
                    count: logged.count,
                    message,
                    first: logged.first.clone(),
                    key,
                }
            }
            None => Decision::Create { message, key },
        };
        if self.is_allowed(object, now) {
            decision
        } else {
            Decision::Drop
        }
    }

    /// An event was written.
    pub(super) fn written(
        &mut self,
        key: String,
        name: String,
        count: u64,
        first: String,
        now: Monotonic,
    ) {
        self.logged.put(key, Logged { name, count, first }, now);
    }

    fn aggregate(
        &mut self,
        kind: String,
        part: &str,
        note: &Note,
        now: Monotonic,
    ) -> (String, String) {
        let alone = format!("{kind}\n{part}\n{}", note.message);
        let Some(most) = self.limits.similar else {
            return (alone, note.message.clone());
        };
        let similar = self.similar.entry(kind.clone(), now, Similar::default);
        if now.saturating_since(similar.last) > SIMILAR_WITHIN {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(note.message.clone());
        if similar.messages.len() < most {
            return (alone, note.message.clone());
        }
        similar.messages.pop_first();
        let message = format!("(combined from similar events): {}", note.message);
        (kind, message)
    }

    fn is_allowed(&mut self, object: String, now: Monotonic) -> bool {
        let Limits {
            burst,
            refill_seconds,
            ..
        } = self.limits;
        let full = || TokenBucket::full(burst, 1.0 / refill_seconds, now);
        self.buckets.entry(object, now, full).take(now)
    }
}

/// A map that evicts the least recently used entry.
struct Cache<V> {
    entries: BTreeMap<String, (Monotonic, V)>,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        let entries = BTreeMap::new();
        Self { entries }
    }
}

impl<V> Cache<V> {
    fn get(&mut self, key: &str, now: Monotonic) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn put(&mut self, key: String, value: V, now: Monotonic) {
        if !self.entries.contains_key(&key) {
            self.evict();
        }
        self.entries.insert(key, (now, value));
    }

    fn entry(&mut self, key: String, now: Monotonic, new: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(&key) {
            self.evict();
        }
        let (used, value) = self.entries.entry(key).or_insert_with(|| (now, new()));
        *used = now;
        value
    }

    fn evict(&mut self) {
        while self.entries.len() >= CACHED {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> Reference {
        Reference {
            api_version: "apps/v1",
            kind: "DaemonSet",
            namespace: "ns".into(),
            name: name.into(),
            uid: "u".into(),
            resource_version: String::new(),
            field_path: String::new(),
        }
    }

    fn note(message: &str) -> Note {
        Note::new(false, "SuccessfulCreate", message)
    }

    /// Decides, and records as written what should be written, under a name made from its message.
    fn decide(correlator: &mut Correlator, name: &str, message: &str, seconds: u64) -> String {
        let now = Monotonic::since_start(Duration::from_secs(seconds));
        match correlator.decide(&about(name), &note(message), now) {
            Decision::Create { message, key } => {
                correlator.written(key, format!("name of {message}"), 1, "t0".into(), now);
                format!("create {message}")
            }
            Decision::Count {
                count,
                message,
                name,
                ..
            } => format!("{count} × {message} as {name}"),
            Decision::Drop => "drop".to_owned(),
        }
    }

    #[test]
    fn s3_10_2_repeated_events_are_counted() {
        let mut correlator = Correlator::new(Limits::KUBERNETES);
        assert_eq!(decide(&mut correlator, "d", "a", 0), "create a");
        assert_eq!(decide(&mut correlator, "d", "a", 1), "2 × a as name of a");
        assert_eq!(decide(&mut correlator, "d", "a", 2), "3 × a as name of a");
        assert_eq!(decide(&mut correlator, "other", "a", 2), "create a");
    }

    #[test]
    fn events_on_two_parts_of_an_object_are_distinct() {
        let mut correlator = Correlator::new(Limits::KUBERNETES);
        let mut started = |part: &str| {
            let about = Reference {
                field_path: part.to_owned(),
                ..about("d")
            };
            match correlator.decide(&about, &note("Container started"), Monotonic::START) {
                Decision::Create { key, .. } => key,
                other => panic!("{other:?}"),
            }
        };
        let one = started("spec.containers{a}");
        assert_ne!(one, started("spec.containers{b}"));
    }

    #[test]
    fn s3_10_2_similar_events_are_aggregated() {
        let mut correlator = Correlator::new(Limits::KUBERNETES);
        for number in 1..10 {
            let message = format!("pod {number}");
            assert_eq!(
                decide(&mut correlator, "d", &message, 0),
                format!("create {message}")
            );
        }
        let combined = "(combined from similar events): ";
        let first = decide(&mut correlator, "d", "pod x", 1);
        assert_eq!(first, format!("create {combined}pod x"));
        let second = decide(&mut correlator, "d", "pod y", 2);
        assert_eq!(
            second,
            format!("2 × {combined}pod y as name of {combined}pod x")
        );
        let later = decide(&mut correlator, "d", "pod z", 700);
        assert_eq!(later, "create pod z");
    }

    #[test]
    fn s3_10_2_events_on_one_object_are_rate_limited() {
        let mut correlator = Correlator::new(Limits::KUBERNETES);
        let heard = (0..100).filter(|_| decide(&mut correlator, "d", "a", 0) != "drop");
        assert_eq!(heard.count(), 25);
        assert_eq!(decide(&mut correlator, "d", "a", 299), "drop");
        assert_ne!(decide(&mut correlator, "d", "a", 300), "drop");
        assert_eq!(decide(&mut correlator, "d", "a", 301), "drop");
        assert_eq!(decide(&mut correlator, "other", "a", 301), "create a");
    }

    #[test]
    fn transitions_are_written_one_by_one() {
        let mut correlator = Correlator::new(Limits::TRANSITIONS);
        for number in 0..200 {
            let message = format!("stage {number}");
            let found = decide(&mut correlator, "d", &message, 0);
            assert_eq!(found, format!("create {message}"));
        }
        assert_eq!(decide(&mut correlator, "d", "stage 200", 29), "drop");
        let next = decide(&mut correlator, "d", "stage 200", 30);
        assert_eq!(next, "create stage 200");
        let again = decide(&mut correlator, "d", "stage 200", 60);
        assert_eq!(again, "2 × stage 200 as name of stage 200");
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = Correlator::new(Limits::KUBERNETES);
        for number in 0..5000 {
            decide(&mut correlator, &format!("d{number}"), "a", number);
        }
        assert_eq!(correlator.logged.entries.len(), CACHED);
        assert_eq!(correlator.buckets.entries.len(), CACHED);
        assert_eq!(
            decide(&mut correlator, "d4999", "a", 5000),
            "2 × a as name of a"
        );
        assert_eq!(decide(&mut correlator, "d0", "a", 5000), "create a");
    }
}

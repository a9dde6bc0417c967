//! Which events become objects, by the rules of Kubernetes' own recorder (rule 3.10.2): what repeats is
//! counted, what is similar is combined, and who talks too much is not heard.
//!
//! Pure: the time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Note, Reference};

/// How many events about one object are let through at once.
const BURST: f64 = 25.0;
/// After that, one in so many seconds.
const REFILL_SECONDS: f64 = 300.0;
/// From so many different messages on, they are combined.
const SIMILAR: usize = 10;
/// Messages are similar if they come within this time.
const SIMILAR_WITHIN: Duration = Duration::from_mins(10);
/// How many things are remembered of each sort.
const REMEMBERED: usize = 4096;

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A new event.
    Create {
        /// Its message.
        message: String,
        /// To remember it by.
        key: String,
    },
    /// One that was there before, with a new count.
    Count {
        /// Its name.
        name: String,
        /// How often it was seen.
        count: u64,
        /// Its message.
        message: String,
        /// When it was first seen.
        first: String,
        /// To remember it by.
        key: String,
    },
    /// Nothing.
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
    last: Duration,
}

struct Bucket {
    tokens: f64,
    last: Duration,
}

/// What has been seen so far.
#[derive(Default)]
pub(super) struct Correlator {
    similar: Remembered<Similar>,
    logged: Remembered<Logged>,
    buckets: Remembered<Bucket>,
}

impl Correlator {
    /// Judges a note. `now` counts from any fixed moment.
    pub(super) fn judge(&mut self, about: &Reference, note: &Note, now: Duration) -> Verdict {
        let object = about.key();
        let kind = format!("{object}\n{}\n{}", note.warning, note.reason);
        let (key, message) = self.combine(kind, &about.field_path, note, now);
        let known = self.logged.get(&key, now).filter(|logged| logged.count > 0);
        let verdict = match known {
            Some(logged) => {
                logged.count += 1;
                Verdict::Count {
                    name: logged.name.clone(),
                    count: logged.count,
                    message,
                    first: logged.first.clone(),
                    key,
                }
            }
            None => Verdict::Create { message, key },
        };
        if self.may_speak(object, now) {
            verdict
        } else {
            Verdict::Drop
        }
    }

    /// Remembers an event that was written.
    pub(super) fn wrote(
        &mut self,
        key: String,
        name: String,
        count: u64,
        first: String,
        now: Duration,
    ) {
        self.logged.put(key, Logged { name, count, first }, now);
    }

    fn combine(
        &mut self,
        kind: String,
        part: &str,
        note: &Note,
        now: Duration,
    ) -> (String, String) {
        let alone = format!("{kind}\n{part}\n{}", note.message);
        let similar = self.similar.entry(kind.clone(), now, Similar::default);
        if now.saturating_sub(similar.last) > SIMILAR_WITHIN {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(note.message.clone());
        if similar.messages.len() < SIMILAR {
            return (alone, note.message.clone());
        }
        similar.messages.pop_first();
        let message = format!("(combined from similar events): {}", note.message);
        (kind, message)
    }

    fn may_speak(&mut self, object: String, now: Duration) -> bool {
        let full = || Bucket {
            tokens: BURST,
            last: now,
        };
        let bucket = self.buckets.entry(object, now, full);
        let passed = now.saturating_sub(bucket.last).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed / REFILL_SECONDS).min(BURST);
        bucket.last = now;
        let may = bucket.tokens >= 1.0;
        if may {
            bucket.tokens -= 1.0;
        }
        may
    }
}

/// A map that forgets what was not used for longest.
struct Remembered<V> {
    entries: BTreeMap<String, (Duration, V)>,
}

impl<V> Default for Remembered<V> {
    fn default() -> Self {
        let entries = BTreeMap::new();
        Self { entries }
    }
}

impl<V> Remembered<V> {
    fn get(&mut self, key: &str, now: Duration) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn put(&mut self, key: String, value: V, now: Duration) {
        if !self.entries.contains_key(&key) {
            self.make_room();
        }
        self.entries.insert(key, (now, value));
    }

    fn entry(&mut self, key: String, now: Duration, new: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(&key) {
            self.make_room();
        }
        let (used, value) = self.entries.entry(key).or_insert_with(|| (now, new()));
        *used = now;
        value
    }

    fn make_room(&mut self) {
        while self.entries.len() >= REMEMBERED {
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
        Note {
            warning: false,
            reason: "SuccessfulCreate".into(),
            message: message.to_owned(),
        }
    }

    /// Judges, and pretends that what should be written was written under its message's name.
    fn judge(correlator: &mut Correlator, name: &str, message: &str, seconds: u64) -> String {
        let now = Duration::from_secs(seconds);
        match correlator.judge(&about(name), &note(message), now) {
            Verdict::Create { message, key } => {
                correlator.wrote(key, format!("name of {message}"), 1, "t0".into(), now);
                format!("create {message}")
            }
            Verdict::Count {
                count,
                message,
                name,
                ..
            } => format!("{count} × {message} as {name}"),
            Verdict::Drop => "drop".to_owned(),
        }
    }

    #[test]
    fn s3_10_2_what_repeats_is_counted() {
        let mut correlator = Correlator::default();
        assert_eq!(judge(&mut correlator, "d", "a", 0), "create a");
        assert_eq!(judge(&mut correlator, "d", "a", 1), "2 × a as name of a");
        assert_eq!(judge(&mut correlator, "d", "a", 2), "3 × a as name of a");
        assert_eq!(judge(&mut correlator, "other", "a", 2), "create a");
    }

    #[test]
    fn the_same_about_two_parts_is_two_events() {
        let mut correlator = Correlator::default();
        let mut started = |part: &str| {
            let about = Reference {
                field_path: part.to_owned(),
                ..about("d")
            };
            match correlator.judge(&about, &note("Container started"), Duration::ZERO) {
                Verdict::Create { key, .. } => key,
                other => panic!("{other:?}"),
            }
        };
        let one = started("spec.containers{a}");
        assert_ne!(one, started("spec.containers{b}"));
    }

    #[test]
    fn s3_10_2_what_is_similar_is_combined() {
        let mut correlator = Correlator::default();
        for number in 1..SIMILAR {
            let message = format!("pod {number}");
            assert_eq!(
                judge(&mut correlator, "d", &message, 0),
                format!("create {message}")
            );
        }
        let combined = "(combined from similar events): ";
        let first = judge(&mut correlator, "d", "pod x", 1);
        assert_eq!(first, format!("create {combined}pod x"));
        let second = judge(&mut correlator, "d", "pod y", 2);
        assert_eq!(
            second,
            format!("2 × {combined}pod y as name of {combined}pod x")
        );
        let later = judge(&mut correlator, "d", "pod z", 700);
        assert_eq!(later, "create pod z");
    }

    #[test]
    fn s3_10_2_who_talks_too_much_is_not_heard_for_a_while() {
        let mut correlator = Correlator::default();
        let heard = (0..100).filter(|_| judge(&mut correlator, "d", "a", 0) != "drop");
        assert_eq!(heard.count(), 25);
        assert_eq!(judge(&mut correlator, "d", "a", 299), "drop");
        assert_ne!(judge(&mut correlator, "d", "a", 300), "drop");
        assert_eq!(judge(&mut correlator, "d", "a", 301), "drop");
        assert_eq!(judge(&mut correlator, "other", "a", 301), "create a");
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = Correlator::default();
        for number in 0..5000 {
            judge(&mut correlator, &format!("d{number}"), "a", number);
        }
        assert_eq!(correlator.logged.entries.len(), REMEMBERED);
        assert_eq!(correlator.buckets.entries.len(), REMEMBERED);
        assert_eq!(
            judge(&mut correlator, "d4999", "a", 5000),
            "2 × a as name of a"
        );
        assert_eq!(judge(&mut correlator, "d0", "a", 5000), "create a");
    }
}

//! Deletes events a TTL after they were last written, an hour by default.
//!
//! A store watch reports the writes; all events are listed only once, at start.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kennel_store::{Op, Revision, WatchEnd};
use kennel_types::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::Api;
use crate::clock;
use crate::object;
use crate::registry;

/// Upstream's default.
pub const TTL_DEFAULT: Duration = Duration::from_hours(1);
/// How many events are deleted concurrently.
const AT_ONCE: usize = 64;

/// Events by the time at which they expire unless they are written again.
struct Queue {
    ttl: Duration,
    waiting: VecDeque<(Instant, Arc<str>, Revision)>,
}

impl Queue {
    fn push(&mut self, now: Instant, key: Arc<str>, revision: Revision) {
        self.waiting.push_back((now + self.ttl, key, revision));
    }

    fn next(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, _, _)| *at)
    }

    /// Takes the expired events, at most [`AT_ONCE`].
    fn due(&mut self, now: Instant) -> Vec<(Arc<str>, Revision)> {
        let due = self.waiting.iter().take(AT_ONCE);
        let due = due.take_while(|(at, _, _)| *at <= now).count();
        let due = self.waiting.drain(..due);
        due.map(|(_, key, revision)| (key, revision)).collect()
    }
}

/// Deletes expired events until the store is closed.
pub(crate) async fn expire_events(api: Arc<Api>) {
    let prefix = object::prefix(registry::core("events"), None);
    loop {
        let Ok(mut watch) = api.store.watch(&prefix, api.store.revision()) else {
            continue;
        };
        let mut queue = stored(&api, &prefix);
        let ended = loop {
            tokio::select! {
                events = watch.next() => match events {
                    Ok(events) => {
                        let now = Instant::now();
                        let written = events.iter().filter_map(|event| event.after.as_ref());
                        for record in written {
                            queue.push(now, record.key.clone(), record.modified);
                        }
                    }
                    Err(end) => break end,
                },
                () = until(queue.next()) => {
                    delete(&api, queue.due(Instant::now())).await;
                }
            }
        };
        if ended == WatchEnd::Closed {
            return;
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The stored events. Their own timestamps tell when they were last written.
fn stored(api: &Api, prefix: &str) -> Queue {
    let (now, today) = (Instant::now(), clock::now());
    let ttl = api.settings.event_ttl;
    let records = api.store.range(prefix, None, None).records.into_iter();
    let left = |record: &object::Stored| left_at(today, &record.value, ttl);
    let mut all: Vec<_> = records
        .map(|record| (now + left(&record), record.key.clone(), record.modified))
        .collect();
    all.sort_unstable();
    let waiting = all.into();
    Queue { ttl, waiting }
}

/// How long an event has still to live.
pub(crate) fn time_left(value: &[u8], ttl: Duration) -> Duration {
    left_at(clock::now(), value, ttl)
}

fn left_at(now: Timestamp, value: &[u8], ttl: Duration) -> Duration {
    let age = last_time(value).map(|time| now.saturating_since(time));
    ttl.saturating_sub(age.unwrap_or_default())
}

/// The latest timestamp of an event. Its creation counts, because a client may report what happened long
/// ago.
fn last_time(value: &[u8]) -> Option<Timestamp> {
    let event: Value = serde_json::from_slice(value).ok()?;
    let times = [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
        &event["firstTimestamp"],
    ];
    let times = times.into_iter().filter_map(Value::as_str);
    times.filter_map(Timestamp::parse).max()
}

/// Deletes events that were not written again.
async fn delete(api: &Api, due: Vec<(Arc<str>, Revision)>) {
    let deletions = due.into_iter().map(|(key, expected)| {
        let key = key.to_string();
        api.store.write(Op::Delete { key, expected })
    });
    // A deletion that fails was of an event that was written again or deleted meanwhile.
    let _outcomes = join_all(deletions).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_expire_an_hour_after_they_were_written() {
        let (ttl, start) = (TTL_DEFAULT, Instant::now());
        let waiting = VecDeque::new();
        let mut queue = Queue { ttl, waiting };
        queue.push(start, "a".into(), 1);
        queue.push(start + Duration::from_secs(5), "b".into(), 2);
        assert_eq!(queue.next(), Some(start + ttl));
        let before = start + ttl - Duration::from_millis(1);
        assert!(queue.due(before).is_empty());
        assert_eq!(queue.due(start + ttl), [("a".into(), 1)]);
        assert_eq!(queue.next(), Some(start + ttl + Duration::from_secs(5)));
    }

    #[test]
    fn timestamps_tell_when_an_event_was_last_written() {
        let check = |event: Value, expected: Option<&str>| {
            let last = last_time(event.to_string().as_bytes());
            let expected = expected.map(|time| Timestamp::parse(time).unwrap());
            assert_eq!(last, expected, "{event}");
        };
        let old = "2026-01-01T00:00:00Z";
        let new = "2026-01-02T00:00:00Z";
        check(
            json!({"firstTimestamp": old, "lastTimestamp": new}),
            Some(new),
        );
        check(
            json!({"eventTime": old, "lastTimestamp": null,
                   "series": {"lastObservedTime": new}}),
            Some(new),
        );
        check(
            json!({"metadata": {"creationTimestamp": old}, "lastTimestamp": null}),
            Some(old),
        );
        // An event that is reported late does not expire at once.
        check(
            json!({"metadata": {"creationTimestamp": new}, "lastTimestamp": old}),
            Some(new),
        );
        check(json!({}), None);
    }
}

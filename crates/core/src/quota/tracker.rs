//! The statuses of all quotas, kept up to date with every change of an object.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kennel_types::{Identity, Timestamp};
use serde_json::{Map, Value, json};

use super::{Kind, Measured, Quota};
use crate::pod::resources::{Amounts, amounts};
use crate::statuses::{Status, Statuses};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Tracker {
    kinds: Vec<Tracked>,
    quotas: Statuses<Quota>,
}

/// The objects of one kind, by namespace and uid.
#[derive(Debug)]
struct Tracked {
    group: String,
    plural: String,
    objects: HashMap<Arc<str>, HashMap<Arc<str>, Measured>>,
}

impl Tracked {
    fn kind(&self) -> Kind<'_> {
        Kind::of(&self.group, &self.plural)
    }
}

impl Tracker {
    /// Adds a kind, whose objects are reported by the number that this returns.
    pub fn add_kind(&mut self, group: &str, plural: &str) -> usize {
        self.kinds.push(Tracked {
            group: group.to_owned(),
            plural: plural.to_owned(),
            objects: HashMap::new(),
        });
        self.kinds.len() - 1
    }

    pub fn kind(&self, number: usize) -> Kind<'_> {
        self.kinds[number].kind()
    }

    /// Whether a quota limits objects of this kind.
    pub fn is_limited(&self, kind: Kind<'_>) -> bool {
        kind.is_counted() && self.quotas.rules().any(|quota| quota.limits(kind))
    }

    pub fn quota(&mut self, id: Identity, object: Value) {
        let quota = Quota::of(&object);
        self.quotas.insert(id, object, quota);
    }

    pub fn quota_gone(&mut self, uid: &str) {
        self.quotas.remove(uid);
    }

    pub fn object(&mut self, kind: usize, id: &Identity, measured: Measured) {
        if let Some(end) = measured.ends() {
            // It counts until then, inclusively.
            let at = end.saturating_add_millis(1);
            self.quotas.change_at(at, &id.namespace);
        }
        let objects = &mut self.kinds[kind].objects;
        let objects = objects.entry(id.namespace.clone()).or_default();
        if objects.get(&id.uid) != Some(&measured) {
            objects.insert(id.uid.clone(), measured);
            self.quotas.change(&id.namespace);
        }
    }

    pub fn object_gone(&mut self, kind: usize, id: &Identity) {
        let objects = &mut self.kinds[kind].objects;
        let Some(own) = objects.get_mut(&id.namespace) else {
            return;
        };
        own.remove(&id.uid);
        if own.is_empty() {
            objects.remove(&id.namespace);
        }
        self.quotas.change(&id.namespace);
    }

    /// When a status changes though no object does.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.quotas.next_deadline()
    }

    /// The statuses to write. Each is being written until one of [`Self::quota`], [`Self::written`] and [`Self::failed`] is
    /// called for it.
    pub fn take(&mut self, now: Timestamp) -> Vec<Status> {
        let kinds = &self.kinds;
        self.quotas.take(now, |namespace, quota, object| {
            let used = used(kinds, quota, namespace, now);
            let (hard, status) = (&quota.hard, &object["status"]);
            if amounts(&status["hard"]) == *hard && amounts(&status["used"]) == used {
                return (None, None);
            }
            let status = json!({"hard": shown(hard), "used": shown(&used)});
            (Some(status), None)
        })
    }

    /// A status was written, or its quota has changed or gone meanwhile, which the watch delivers.
    pub fn written(&mut self, uid: &str) {
        self.quotas.written(uid);
    }

    /// A status could not be written, and is to be taken again.
    pub fn failed(&mut self, uid: &str) {
        self.quotas.failed(uid);
    }
}

fn used(kinds: &[Tracked], quota: &Quota, namespace: &str, now: Timestamp) -> Amounts {
    let mut used = BTreeMap::new();
    for tracked in kinds {
        let objects = tracked.objects.get(namespace);
        let objects = objects.into_iter().flat_map(HashMap::values);
        used.extend(quota.used(tracked.kind(), objects, now));
    }
    used
}

fn shown(amounts: &Amounts) -> Map<String, Value> {
    let amounts = amounts.iter();
    amounts
        .map(|(name, amount)| (name.clone(), amount.to_string().into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::EPOCH;

    fn quota(status: &Value) -> (Identity, Value) {
        let object = json!({
            "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}, "status": status,
        });
        (Identity::new("a", "q", "q-uid"), object)
    }

    fn pod(tracker: &mut Tracker, kind: usize, name: &str, deleted: Option<&str>) {
        let mut object = json!({"metadata": {"deletionGracePeriodSeconds": 0}, "spec": {}});
        if let Some(deleted) = deleted {
            object["metadata"]["deletionTimestamp"] = deleted.into();
        }
        let measured = Measured::of(tracker.kind(kind), &object);
        tracker.object(kind, &Identity::new("a", name, name), measured);
    }

    fn take(tracker: &mut Tracker, now: Timestamp) -> Vec<Value> {
        let statuses = tracker.take(now).into_iter();
        statuses
            .map(|status| status.object["status"].clone())
            .collect()
    }

    fn status(used: &str) -> Value {
        json!({"hard": {"pods": "2"}, "used": {"pods": used}})
    }

    #[test]
    fn a_status_is_written_when_it_differs() {
        let mut tracker = Tracker::default();
        let pods = tracker.add_kind("", "pods");
        assert!(!tracker.is_limited(tracker.kind(pods)));
        let (id, object) = quota(&json!({}));
        tracker.quota(id, object);
        assert!(tracker.is_limited(tracker.kind(pods)));
        pod(&mut tracker, pods, "p", None);
        assert_eq!(take(&mut tracker, NOW), [status("1")]);
        // Not while the first one is being written, but afterwards.
        pod(&mut tracker, pods, "r", None);
        assert_eq!(take(&mut tracker, NOW), [] as [Value; 0]);
        let (id, object) = quota(&status("1"));
        tracker.quota(id, object);
        assert_eq!(take(&mut tracker, NOW), [status("2")]);
        tracker.failed("q-uid");
        assert_eq!(take(&mut tracker, NOW), [status("2")]);
        let (id, object) = quota(&status("2"));
        tracker.quota(id, object);
        assert_eq!(take(&mut tracker, NOW), [] as [Value; 0]);
        tracker.object_gone(pods, &Identity::new("a", "p", "p"));
        assert_eq!(take(&mut tracker, NOW), [status("1")]);
    }

    #[test]
    fn a_pod_stops_counting_when_its_time_is_over() {
        let mut tracker = Tracker::default();
        let pods = tracker.add_kind("", "pods");
        let (id, object) = quota(&status("1"));
        tracker.quota(id, object);
        pod(&mut tracker, pods, "p", Some("1970-01-01T00:00:10Z"));
        assert_eq!(take(&mut tracker, NOW), [] as [Value; 0]);
        let deadline = tracker.next_deadline().unwrap();
        assert_eq!(deadline, Timestamp::from_millis(10_001));
        assert_eq!(take(&mut tracker, deadline), [status("0")]);
        assert_eq!(tracker.next_deadline(), None);
    }
}

//! The statuses of all budgets, kept up to date with every change of a pod.

use std::collections::HashMap;
use std::sync::Arc;

use kennel_types::{Identity, Timestamp};
use serde_json::Value;

use super::{PodFacts, selector, status};
use crate::selector::Selector;
use crate::statuses::{Status, Statuses};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Tracker {
    budgets: Statuses<Selector>,
    /// By namespace and uid.
    pods: HashMap<Arc<str>, HashMap<Arc<str>, PodFacts>>,
    /// How many pods a controller wants, with its namespace.
    scales: HashMap<Arc<str>, i64>,
}

impl Tracker {
    /// Whether there are no budgets.
    pub fn is_empty(&self) -> bool {
        self.budgets.is_empty()
    }

    pub fn budget(&mut self, id: Identity, object: Value) {
        let selector = selector(&object);
        self.budgets.insert(id, object, selector);
    }

    pub fn budget_gone(&mut self, uid: &str) {
        self.budgets.remove(uid);
    }

    pub fn pod(&mut self, id: &Identity, facts: PodFacts) {
        let pods = self.pods.entry(id.namespace.clone()).or_default();
        if pods.get(&id.uid) != Some(&facts) {
            pods.insert(id.uid.clone(), facts);
            self.budgets.change(&id.namespace);
        }
    }

    pub fn pod_gone(&mut self, id: &Identity) {
        if let Some(pods) = self.pods.get_mut(&id.namespace) {
            pods.remove(&id.uid);
            if pods.is_empty() {
                self.pods.remove(&id.namespace);
            }
            self.budgets.change(&id.namespace);
        }
    }

    /// A controller of pods, with how many it wants.
    pub fn controller(&mut self, id: &Identity, scale: i64) {
        if self.scales.insert(id.uid.clone(), scale) != Some(scale) {
            self.budgets.change(&id.namespace);
        }
    }

    pub fn controller_gone(&mut self, id: &Identity) {
        self.scales.remove(&id.uid);
        self.budgets.change(&id.namespace);
    }

    /// When a status changes though nothing else does.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.budgets.next_deadline()
    }

    /// The statuses to write. Each is being written until one of [`Self::budget`], [`Self::written`] and [`Self::failed`] is
    /// called for it.
    pub fn take(&mut self, now: Timestamp) -> Vec<Status> {
        let (pods, scales) = (&self.pods, &self.scales);
        self.budgets.take(now, |namespace, selector, object| {
            let pods = pods.get(namespace);
            let pods = pods.into_iter().flat_map(HashMap::values);
            let selected = pods.filter(|pod| {
                let label = |key: &str| pod.labels.get(key).map(String::as_str);
                selector.matches(label)
            });
            let mut selected: Vec<&PodFacts> = selected.collect();
            selected.sort_by(|a, b| a.name.cmp(&b.name));
            let scale = |uid: &str| scales.get(uid).copied();
            let (status, recheck) = status(object, &selected, scale, now);
            (Some(status).filter(|new| object["status"] != *new), recheck)
        })
    }

    /// A status was written, or its budget has changed or gone meanwhile, which the watch delivers.
    pub fn written(&mut self, uid: &str) {
        self.budgets.written(uid);
    }

    /// A status could not be written, and is to be taken again.
    pub fn failed(&mut self, uid: &str) {
        self.budgets.failed(uid);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_follow_pods_controllers_and_time() {
        let mut tracker = Tracker::default();
        assert!(tracker.is_empty());
        let object = json!({"metadata": {"name": "b"}, "spec": {
            "maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
        let id = Identity::new("n", "b", "b-uid");
        tracker.budget(id.clone(), object);
        let controller = Identity::new("n", "ds", "ds");
        tracker.controller(&controller, 2);
        let pod = |name: &str, app: &str| PodFacts {
            name: name.into(),
            labels: [("app".to_owned(), app.to_owned())].into(),
            is_ready: true,
            controller: Some("ds".into()),
            ..PodFacts::default()
        };
        for (name, app) in [("p", "a"), ("q", "a"), ("other", "x")] {
            tracker.pod(&Identity::new("n", name, name), pod(name, app));
        }
        let now = Timestamp::EPOCH;
        let take = |tracker: &mut Tracker, now| {
            let statuses = tracker.take(now).into_iter();
            statuses.map(|one| one.object).collect::<Vec<_>>()
        };
        let first = take(&mut tracker, now);
        assert_eq!(first[0]["status"]["disruptionsAllowed"], 1);
        assert_eq!(first[0]["status"]["expectedPods"], 2);
        tracker.budget(id.clone(), first[0].clone());
        assert_eq!(take(&mut tracker, now), [] as [Value; 0]);
        // An eviction that is not followed by a deletion is given up after a while.
        let mut evicted = first[0].clone();
        evicted["status"]["disruptionsAllowed"] = 0.into();
        evicted["status"]["disruptedPods"] = json!({"p": "1970-01-01T00:00:00Z"});
        tracker.budget(id, evicted);
        let second = take(&mut tracker, now);
        assert_eq!(second[0]["status"]["currentHealthy"], 1);
        let deadline = tracker.next_deadline().unwrap();
        tracker.failed("b-uid");
        let third = take(&mut tracker, deadline);
        assert_eq!(third[0]["status"]["currentHealthy"], 2);
    }
}

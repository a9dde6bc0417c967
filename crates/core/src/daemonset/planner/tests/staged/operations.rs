//! What happens to the cluster: nodes die, return and leave, pods fail, clocks jump, and people give commands.

use std::sync::Arc;

use super::super::super::super::HASH_LABEL;
use super::super::super::super::reference_model::fake_cluster::Kind;
use super::super::super::super::view::{PodView, Readiness};
use super::cluster::Cluster;
use crate::taint::Taint;

impl Cluster {
    pub(super) fn promote(&mut self, number: u32, stage: usize) {
        let hash = self.hash(number).unwrap();
        self.annotate(&[("promote", &format!("{hash}/{stage}"))]);
        self.run();
    }

    pub(super) fn label(&mut self, node: &str, key: &str, value: &str) {
        self.edit_node(node, |node| {
            node.labels.insert(key.to_owned(), value.to_owned());
        });
    }

    /// Changes the Ready condition of nodes, with the taints that come with it. Pods of dead nodes are not ready.
    pub(super) fn set_ready(&mut self, nodes: &[String], ready: Readiness) {
        let key = match ready {
            Readiness::Ready => None,
            Readiness::NotReady => Some("node.kubernetes.io/not-ready"),
            Readiness::Unknown => Some("node.kubernetes.io/unreachable"),
        };
        for name in nodes {
            self.edit_node(name, |node| {
                node.ready = ready;
                let taints = key.map(|key| {
                    let effects = ["NoSchedule", "NoExecute"];
                    effects.map(|effect| Taint::new(key, effect))
                });
                node.taints = taints.into_iter().flatten().collect();
            });
            if ready == Readiness::Unknown {
                self.edit_pods(name, |pod| pod.ready_since = None);
            }
        }
        self.run();
    }

    /// Removes a node, and its pods as the pod garbage collector does.
    pub(super) fn remove_node(&mut self, name: &str) {
        let id: Arc<str> = name.into();
        self.fake.nodes.remove(&id);
        self.fake.changed(Kind::Nodes, &id, false);
        for uid in self.pods_on(name) {
            self.fake.remove_pod(&uid, false);
        }
        self.run();
    }

    pub(super) fn pods_on(&self, node: &str) -> Vec<Arc<str>> {
        let pods = self.fake.pods.values();
        let here = pods.filter(|pod| pod.target().is_some_and(|target| **target == *node));
        here.map(|pod| pod.uid.clone()).collect()
    }

    pub(super) fn edit_pods(&mut self, node: &str, change: impl Fn(&mut PodView)) {
        for uid in self.pods_on(node) {
            self.fake.edit_pod(&uid, false, &change);
        }
    }

    pub(super) fn remove_pods(&mut self, node: &str) {
        for uid in self.pods_on(node) {
            self.fake.remove_pod(&uid, false);
        }
        self.run();
    }

    pub(super) fn relabel(&mut self, node: &str, labels: &[(&str, &str)]) {
        self.edit_pods(node, |pod| {
            let all = Arc::make_mut(&mut pod.labels);
            for (key, value) in labels {
                all.insert((*key).to_owned(), (*value).to_owned());
            }
        });
    }

    /// The hashes of the pods on a node.
    pub(super) fn hashes_on(&self, node: &str) -> Vec<String> {
        let uids = self.pods_on(node);
        let pods = uids.iter().map(|uid| &self.fake.pods[uid]);
        pods.map(|pod| pod.labels[HASH_LABEL].clone()).collect()
    }

    /// Sets the wall clocks of all machines; monotonic clocks go on.
    pub(super) fn jump(&mut self, seconds: i64) {
        self.fake.now = self.fake.now.saturating_add_millis(seconds * 1_000);
    }

    /// One round of everything, in which the rollout gets on a little.
    pub(super) fn go_on(&mut self) {
        self.step();
        for action in self.planner.take_actions() {
            self.perform(action);
        }
    }

    /// How many events had a reason.
    pub(super) fn told(&self, reason: &str) -> usize {
        self.reasons()
            .iter()
            .filter(|told| **told == reason)
            .count()
    }
}

//! Pod garbage collection: pods of deleted nodes, terminating pods that no kubelet will finish (unscheduled, or on a node
//! that is out of service), and terminated pods beyond a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{Identity, Monotonic, Timestamp};

/// How long a node must have been missing before its pods are deleted: it may only be late.
pub const QUARANTINE: Duration = Duration::from_secs(40);
/// How many terminated pods are kept.
pub const TERMINATED_MAX: usize = 12_500;

/// The fields of a pod that the collector reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    pub id: Identity,
    pub node: Option<Arc<str>>,
    pub created: Timestamp,
    pub deleting: bool,
    /// Succeeded or failed.
    pub terminated: bool,
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionReason {
    /// Its node is gone; the caller has confirmed that with a live read.
    NodeGone,
    /// It is terminating and was never bound.
    Unbound,
    /// It is terminating on a node that is out of service.
    OutOfService,
    /// There are too many terminated pods, and it is one of the oldest.
    TooMany,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub pod: PodFacts,
    pub reason: DeletionReason,
}

/// Pods and nodes, updated incrementally.
#[derive(Debug)]
pub struct Pods {
    all: BTreeMap<Arc<str>, PodFacts>,
    by_node: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Existing nodes, and whether each is out of service.
    nodes: BTreeMap<Arc<str>, bool>,
    /// Nodes that pods name and that do not exist, with the time since when.
    missing: BTreeMap<Arc<str>, Monotonic>,
    /// Terminated pods, oldest first.
    terminated: BTreeSet<(Timestamp, Arc<str>)>,
    terminated_max: usize,
    /// Pods to delete.
    deletions: BTreeMap<Arc<str>, DeletionReason>,
}

impl Pods {
    pub fn new(terminated_max: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            by_node: BTreeMap::new(),
            nodes: BTreeMap::new(),
            missing: BTreeMap::new(),
            terminated: BTreeSet::new(),
            terminated_max,
            deletions: BTreeMap::new(),
        }
    }

    /// A pod was added or changed.
    pub fn pod(&mut self, now: Monotonic, pod: PodFacts) {
        let uid = pod.id.uid.clone();
        if self.all.get(&uid) == Some(&pod) {
            return;
        }
        self.pod_gone(&uid);
        if let Some(node) = &pod.node {
            let pods = self.by_node.entry(node.clone()).or_default();
            pods.insert(uid.clone());
            match self.nodes.get(node) {
                None => {
                    self.missing.entry(node.clone()).or_insert(now);
                }
                Some(true) if pod.deleting => {
                    self.deletions
                        .insert(uid.clone(), DeletionReason::OutOfService);
                }
                Some(_) => {}
            }
        } else if pod.deleting {
            self.deletions.insert(uid.clone(), DeletionReason::Unbound);
        }
        if pod.terminated {
            self.terminated.insert((pod.created, uid.clone()));
        }
        self.all.insert(uid, pod);
    }

    /// A pod was deleted.
    pub fn pod_gone(&mut self, uid: &str) {
        let Some(pod) = self.all.remove(uid) else {
            return;
        };
        self.deletions.remove(uid);
        self.terminated.remove(&(pod.created, pod.id.uid));
        let Some(node) = pod.node else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
                self.missing.remove(&node);
            }
        }
    }

    /// A node was added or changed. `out_of_service`: it is not ready and has the taint `node.kubernetes.io/out-of-service`.
    pub fn node(&mut self, name: &Arc<str>, out_of_service: bool) {
        self.missing.remove(name);
        let before = self.nodes.insert(name.clone(), out_of_service);
        if !out_of_service || before == Some(true) {
            return;
        }
        let here = self.by_node.get(name).into_iter().flatten();
        for uid in here {
            if self.all.get(uid).is_some_and(|pod| pod.deleting) {
                self.deletions
                    .insert(uid.clone(), DeletionReason::OutOfService);
            }
        }
    }

    /// A node was deleted.
    pub fn node_gone(&mut self, now: Monotonic, name: &Arc<str>) {
        self.nodes.remove(name);
        if self.by_node.contains_key(name) {
            self.missing.insert(name.clone(), now);
        }
    }

    /// When the next quarantine ends.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let first = self.missing.values().min();
        first.map(|since| *since + QUARANTINE)
    }

    /// The nodes whose quarantine has ended. The caller reads each one live and calls [`Self::node_is_gone`] or
    /// [`Self::node_still_missing`], which starts the quarantine again.
    pub fn overdue_nodes(&mut self, now: Monotonic) -> Vec<Arc<str>> {
        let due = |since: &Monotonic| *since + QUARANTINE <= now;
        let due = self.missing.iter().filter(|(_, since)| due(since));
        let due: Vec<Arc<str>> = due.map(|(node, _)| node.clone()).collect();
        for node in &due {
            self.missing.remove(node);
        }
        due
    }

    /// The live read has not found the node: deletes its pods. Failed deletions are retried after another quarantine.
    pub fn node_is_gone(&mut self, now: Monotonic, name: &Arc<str>) {
        if self.nodes.contains_key(name) {
            return;
        }
        let Some(pods) = self.by_node.get(name) else {
            return;
        };
        for uid in pods {
            self.deletions.insert(uid.clone(), DeletionReason::NodeGone);
        }
        self.missing.insert(name.clone(), now);
    }

    /// The live read has found the node, or has failed.
    pub fn node_still_missing(&mut self, now: Monotonic, name: &Arc<str>) {
        if !self.nodes.contains_key(name) && self.by_node.contains_key(name) {
            self.missing.insert(name.clone(), now);
        }
    }

    /// A deletion has failed.
    pub fn deletion_failed(&mut self, deletion: &Deletion) {
        if self.all.contains_key(&deletion.pod.id.uid) && deletion.reason != DeletionReason::TooMany
        {
            self.deletions
                .insert(deletion.pod.id.uid.clone(), deletion.reason);
        }
    }

    /// The pods to delete now, each once.
    pub fn take_deletions(&mut self) -> Vec<Deletion> {
        let deletions = std::mem::take(&mut self.deletions).into_iter();
        let of = |(uid, reason)| {
            let pod = self.all.get::<Arc<str>>(&uid)?.clone();
            Some(Deletion { pod, reason })
        };
        let mut taken: Vec<Deletion> = deletions.filter_map(of).collect();
        while self.terminated.len() > self.terminated_max {
            let oldest = self.terminated.pop_first();
            let pod = oldest.and_then(|(_, uid)| self.all.get(&uid).cloned());
            taken.extend(pod.map(|pod| Deletion {
                pod,
                reason: DeletionReason::TooMany,
            }));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_millis(millis))
    }

    fn pod(name: &str, node: &str) -> PodFacts {
        PodFacts {
            id: Identity::new("ns", name, name),
            node: (!node.is_empty()).then(|| node.into()),
            created: Timestamp::EPOCH,
            deleting: false,
            terminated: false,
        }
    }

    fn taken(pods: &mut Pods) -> Vec<(String, DeletionReason)> {
        let taken = pods.take_deletions().into_iter();
        taken
            .map(|deletion| (deletion.pod.id.name.to_string(), deletion.reason))
            .collect()
    }

    #[test]
    fn pods_of_a_deleted_node_are_deleted_after_a_quarantine_and_a_live_read() {
        let mut pods = Pods::new(TERMINATED_MAX);
        let node: Arc<str> = "n".into();
        pods.pod(at(1_000), pod("a", "n"));
        assert_eq!(pods.next_deadline(), Some(at(41_000)));
        assert!(pods.overdue_nodes(at(40_999)).is_empty());
        assert_eq!(pods.overdue_nodes(at(41_000)), std::slice::from_ref(&node));
        assert_eq!(pods.next_deadline(), None, "the live read is in flight");
        assert!(taken(&mut pods).is_empty());
        pods.node_is_gone(at(41_000), &node);
        assert_eq!(
            taken(&mut pods),
            [("a".to_owned(), DeletionReason::NodeGone)]
        );
        assert_eq!(taken(&mut pods), []);
        assert_eq!(
            pods.next_deadline(),
            Some(at(81_000)),
            "if that failed, again"
        );
        pods.pod_gone("a");
        assert_eq!(pods.next_deadline(), None);
    }

    #[test]
    fn a_node_that_appears_in_time_keeps_its_pods() {
        let mut pods = Pods::new(TERMINATED_MAX);
        let node: Arc<str> = "n".into();
        pods.pod(at(0), pod("a", "n"));
        pods.node(&node, false);
        assert_eq!(pods.next_deadline(), None);
        pods.node_gone(at(5), &node);
        assert_eq!(pods.next_deadline(), Some(at(40_005)));
        assert_eq!(pods.overdue_nodes(at(40_005)), std::slice::from_ref(&node));
        pods.node(&node, false);
        pods.node_is_gone(at(40_006), &node);
        assert!(
            taken(&mut pods).is_empty(),
            "it appeared during the live read"
        );
    }

    #[test]
    fn a_terminating_unbound_pod_is_deleted() {
        let mut pods = Pods::new(TERMINATED_MAX);
        pods.pod(at(0), pod("a", ""));
        assert!(taken(&mut pods).is_empty());
        let mut deleting = pod("a", "");
        deleting.deleting = true;
        pods.pod(at(0), deleting);
        let deletions = pods.take_deletions();
        assert_eq!(deletions[0].reason, DeletionReason::Unbound);
        pods.deletion_failed(&deletions[0]);
        assert_eq!(pods.take_deletions(), deletions);
    }

    #[test]
    fn terminating_pods_are_deleted_from_a_node_that_is_out_of_service() {
        let mut pods = Pods::new(TERMINATED_MAX);
        let node: Arc<str> = "n".into();
        let deleting = |name: &str| PodFacts {
            deleting: true,
            ..pod(name, "n")
        };
        pods.node(&node, false);
        pods.pod(at(0), deleting("early"));
        pods.pod(at(0), pod("tolerant", "n"));
        assert!(taken(&mut pods).is_empty());
        pods.node(&node, true);
        assert_eq!(
            taken(&mut pods),
            [("early".to_owned(), DeletionReason::OutOfService)]
        );
        pods.pod(at(0), deleting("late"));
        assert_eq!(
            taken(&mut pods),
            [("late".to_owned(), DeletionReason::OutOfService)]
        );
        pods.node(&node, true);
        assert!(taken(&mut pods).is_empty(), "each is returned once");
        pods.node(&node, false);
        pods.pod(at(0), deleting("after"));
        assert!(taken(&mut pods).is_empty());
    }

    #[test]
    fn of_too_many_terminated_pods_the_oldest_are_deleted() {
        let mut pods = Pods::new(2);
        for (name, created) in [("c", 3), ("a", 1), ("d", 4), ("b", 2)] {
            let mut pod = pod(name, "n");
            (pod.terminated, pod.created) = (true, Timestamp::from_secs(created));
            pods.pod(at(0), pod);
        }
        let expected = [
            ("a".to_owned(), DeletionReason::TooMany),
            ("b".to_owned(), DeletionReason::TooMany),
        ];
        assert_eq!(taken(&mut pods), expected);
        assert_eq!(taken(&mut pods), []);
    }
}

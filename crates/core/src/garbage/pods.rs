//! Pods that nobody will ever finish: those of nodes that are gone, those that were deleted before any
//! node had them or whose node is out of service, and too many that have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a node must have been missing, in milliseconds: it may only be late.
pub const QUARANTINE_MS: i64 = 40_000;
/// How many pods that have ended are kept.
pub const ENDED_MAX: usize = 12_500;

/// A pod, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// The node it is bound to.
    pub node: Option<Arc<str>>,
    /// When it was created, in seconds.
    pub created: i64,
    /// Its deletion has begun.
    pub deleting: bool,
    /// It has ended: succeeded or failed.
    pub ended: bool,
}

/// Why a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its node is gone, and must be asked for once more before.
    NodeGone,
    /// It is being deleted, and no node will finish that.
    Unbound,
    /// It is being deleted, and its node is out of service and will not finish that.
    OutOfService,
    /// There are too many that have ended, and it is among the oldest.
    TooMany,
}

/// A pod that should be deleted at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// The pod.
    pub pod: PodFacts,
    /// Why.
    pub why: Why,
}

/// Pods and nodes, kept as changes come.
#[derive(Debug)]
pub struct Pods {
    all: BTreeMap<Arc<str>, PodFacts>,
    by_node: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The nodes there are: is it out of service?
    nodes: BTreeMap<Arc<str>, bool>,
    /// Nodes that pods name and nobody has seen, since when.
    missing: BTreeMap<Arc<str>, i64>,
    /// Those that have ended, oldest first.
    ended: BTreeSet<(i64, Arc<str>)>,
    ended_max: usize,
    /// Pods to decide about.
    doomed: BTreeMap<Arc<str>, Why>,
}

impl Pods {
    /// None yet; at most so many that have ended are kept.
    pub fn new(ended_max: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            by_node: BTreeMap::new(),
            nodes: BTreeMap::new(),
            missing: BTreeMap::new(),
            ended: BTreeSet::new(),
            ended_max,
            doomed: BTreeMap::new(),
        }
    }

    /// A pod is there or has changed.
    pub fn pod(&mut self, now_ms: i64, pod: PodFacts) {
        let uid = pod.uid.clone();
        if self.all.get(&uid) == Some(&pod) {
            return;
        }
        self.pod_gone(&uid);
        if let Some(node) = &pod.node {
            let pods = self.by_node.entry(node.clone()).or_default();
            pods.insert(uid.clone());
            match self.nodes.get(node) {
                None => {
                    self.missing.entry(node.clone()).or_insert(now_ms);
                }
                Some(true) if pod.deleting => {
                    self.doomed.insert(uid.clone(), Why::OutOfService);
                }
                Some(_) => {}
            }
        } else if pod.deleting {
            self.doomed.insert(uid.clone(), Why::Unbound);
        }
        if pod.ended {
            self.ended.insert((pod.created, uid.clone()));
        }
        self.all.insert(uid, pod);
    }

    /// A pod is gone.
    pub fn pod_gone(&mut self, uid: &str) {
        let Some(pod) = self.all.remove(uid) else {
            return;
        };
        self.doomed.remove(uid);
        self.ended.remove(&(pod.created, pod.uid));
        let Some(node) = pod.node else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
                self.missing.remove(&node);
            }
        }
    }

    /// A node is there or has changed. Is it out of service: not ready, and said by an administrator to be
    /// so for good?
    pub fn node(&mut self, name: &Arc<str>, out_of_service: bool) {
        self.missing.remove(name);
        let before = self.nodes.insert(name.clone(), out_of_service);
        if !out_of_service || before == Some(true) {
            return;
        }
        let here = self.by_node.get(name).into_iter().flatten();
        for uid in here {
            if self.all.get(uid).is_some_and(|pod| pod.deleting) {
                self.doomed.insert(uid.clone(), Why::OutOfService);
            }
        }
    }

    /// A node is gone.
    pub fn node_gone(&mut self, now_ms: i64, name: &Arc<str>) {
        self.nodes.remove(name);
        if self.by_node.contains_key(name) {
            self.missing.insert(name.clone(), now_ms);
        }
    }

    /// When there may be something to do, whatever else happens.
    pub fn next_deadline(&self) -> Option<i64> {
        let first = self.missing.values().min();
        first.map(|since| since + QUARANTINE_MS)
    }

    /// The nodes that have been missing for long enough: each is to be asked for, and the answer told
    /// to [`Self::node_is_gone`] or [`Self::node_still_missing`], which begins the wait anew.
    pub fn overdue_nodes(&mut self, now_ms: i64) -> Vec<Arc<str>> {
        let due = |since: &i64| since + QUARANTINE_MS <= now_ms;
        let due = self.missing.iter().filter(|(_, since)| due(since));
        let due: Vec<Arc<str>> = due.map(|(node, _)| node.clone()).collect();
        for node in &due {
            self.missing.remove(node);
        }
        due
    }

    /// A node that was asked for is not there: its pods go. Those that fail to are tried again after
    /// another quarantine.
    pub fn node_is_gone(&mut self, now_ms: i64, name: &Arc<str>) {
        if self.nodes.contains_key(name) {
            return;
        }
        let Some(pods) = self.by_node.get(name) else {
            return;
        };
        for uid in pods {
            self.doomed.insert(uid.clone(), Why::NodeGone);
        }
        self.missing.insert(name.clone(), now_ms);
    }

    /// A node that was asked for is there, or nobody could tell.
    pub fn node_still_missing(&mut self, now_ms: i64, name: &Arc<str>) {
        if !self.nodes.contains_key(name) && self.by_node.contains_key(name) {
            self.missing.insert(name.clone(), now_ms);
        }
    }

    /// A pod could not be deleted.
    pub fn failed(&mut self, doomed: &Doomed) {
        if self.all.contains_key(&doomed.pod.uid) && doomed.why != Why::TooMany {
            self.doomed.insert(doomed.pod.uid.clone(), doomed.why);
        }
    }

    /// The pods that should be deleted now; each is named once.
    pub fn take(&mut self) -> Vec<Doomed> {
        let doomed = std::mem::take(&mut self.doomed).into_iter();
        let of = |(uid, why)| {
            let pod = self.all.get::<Arc<str>>(&uid)?.clone();
            Some(Doomed { pod, why })
        };
        let mut taken: Vec<Doomed> = doomed.filter_map(of).collect();
        while self.ended.len() > self.ended_max {
            let oldest = self.ended.pop_first();
            let pod = oldest.and_then(|(_, uid)| self.all.get(&uid).cloned());
            taken.extend(pod.map(|pod| Doomed {
                pod,
                why: Why::TooMany,
            }));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: &str) -> PodFacts {
        PodFacts {
            namespace: "ns".into(),
            name: name.into(),
            uid: name.into(),
            node: (!node.is_empty()).then(|| node.into()),
            created: 0,
            deleting: false,
            ended: false,
        }
    }

    fn taken(pods: &mut Pods) -> Vec<(String, Why)> {
        let taken = pods.take().into_iter();
        taken
            .map(|doomed| (doomed.pod.name.to_string(), doomed.why))
            .collect()
    }

    #[test]
    fn pods_of_a_node_that_is_gone_go_after_a_quarantine_and_a_look() {
        let mut pods = Pods::new(ENDED_MAX);
        let node: Arc<str> = "n".into();
        pods.pod(1_000, pod("a", "n"));
        assert_eq!(pods.next_deadline(), Some(41_000));
        assert!(pods.overdue_nodes(40_999).is_empty());
        assert_eq!(pods.overdue_nodes(41_000), std::slice::from_ref(&node));
        assert_eq!(pods.next_deadline(), None, "it is being asked for");
        assert!(taken(&mut pods).is_empty());
        pods.node_is_gone(41_000, &node);
        assert_eq!(taken(&mut pods), [("a".to_owned(), Why::NodeGone)]);
        assert_eq!(taken(&mut pods), []);
        assert_eq!(pods.next_deadline(), Some(81_000), "if that failed, again");
        pods.pod_gone("a");
        assert_eq!(pods.next_deadline(), None);
    }

    #[test]
    fn a_node_that_comes_in_time_keeps_its_pods() {
        let mut pods = Pods::new(ENDED_MAX);
        let node: Arc<str> = "n".into();
        pods.pod(0, pod("a", "n"));
        pods.node(&node, false);
        assert_eq!(pods.next_deadline(), None);
        pods.node_gone(5, &node);
        assert_eq!(pods.next_deadline(), Some(40_005));
        assert_eq!(pods.overdue_nodes(40_005), std::slice::from_ref(&node));
        pods.node(&node, false);
        pods.node_is_gone(40_006, &node);
        assert!(
            taken(&mut pods).is_empty(),
            "it came while it was asked for"
        );
    }

    #[test]
    fn a_pod_deleted_before_it_had_a_node_goes() {
        let mut pods = Pods::new(ENDED_MAX);
        pods.pod(0, pod("a", ""));
        assert!(taken(&mut pods).is_empty());
        let mut deleting = pod("a", "");
        deleting.deleting = true;
        pods.pod(0, deleting);
        let doomed = pods.take();
        assert_eq!(doomed[0].why, Why::Unbound);
        pods.failed(&doomed[0]);
        assert_eq!(pods.take(), doomed);
    }

    #[test]
    fn pods_that_are_being_deleted_go_from_a_node_that_is_out_of_service() {
        let mut pods = Pods::new(ENDED_MAX);
        let node: Arc<str> = "n".into();
        let deleting = |name: &str| PodFacts {
            deleting: true,
            ..pod(name, "n")
        };
        pods.node(&node, false);
        pods.pod(0, deleting("early"));
        pods.pod(0, pod("tolerant", "n"));
        assert!(taken(&mut pods).is_empty());
        pods.node(&node, true);
        assert_eq!(taken(&mut pods), [("early".to_owned(), Why::OutOfService)]);
        pods.pod(0, deleting("late"));
        assert_eq!(taken(&mut pods), [("late".to_owned(), Why::OutOfService)]);
        pods.node(&node, true);
        assert!(taken(&mut pods).is_empty(), "each is named once");
        pods.node(&node, false);
        pods.pod(0, deleting("after"));
        assert!(taken(&mut pods).is_empty());
    }

    #[test]
    fn of_too_many_that_have_ended_the_oldest_go() {
        let mut pods = Pods::new(2);
        for (name, created) in [("c", 3), ("a", 1), ("d", 4), ("b", 2)] {
            let mut pod = pod(name, "n");
            (pod.ended, pod.created) = (true, created);
            pods.pod(0, pod);
        }
        let expected = [
            ("a".to_owned(), Why::TooMany),
            ("b".to_owned(), Why::TooMany),
        ];
        assert_eq!(taken(&mut pods), expected);
        assert_eq!(taken(&mut pods), []);
    }
}

//! The picture of one DaemonSet, kept up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Timestamp;

use super::cell::{Cell, CellState, Reason};
use super::counts::Counts;
use super::judge::{Head, HeadKey};
use super::nodes::Nodes;
use super::pods::Pods;
use crate::daemonset::history::Revision;
use crate::daemonset::survey::selects;
use crate::daemonset::{DaemonSetView, HASH_LABEL, NodeView, PodView};
use crate::rollout::outline::{Input, Outline};

/// The letter of an index without a node.
const GONE: u8 = b'-';

/// Enter what has changed, then [`refresh`](Self::refresh).
#[derive(Clone, Debug)]
pub struct Picture {
    set: DaemonSetView,
    namespace: Arc<BTreeMap<String, String>>,
    revisions: Vec<Revision>,
    pods: Pods,
    /// By index of the node.
    letters: Vec<u8>,
    reasons: Vec<Reason>,
    counts: Counts,
    /// Nodes to judge again, …
    dirty: BTreeSet<usize>,
    /// … and the names of those where pods have changed.
    touched: Vec<Arc<str>>,
    all_dirty: bool,
    head: HeadKey,
    /// Nodes that time alone may change.
    rechecks: BTreeSet<(Timestamp, usize)>,
    recheck_of: BTreeMap<usize, Timestamp>,
}

impl Picture {
    pub fn new(set: DaemonSetView) -> Self {
        Self {
            set,
            namespace: Arc::default(),
            revisions: Vec::new(),
            pods: Pods::default(),
            letters: Vec::new(),
            reasons: Vec::new(),
            counts: Counts::default(),
            dirty: BTreeSet::new(),
            touched: Vec::new(),
            all_dirty: true,
            head: HeadKey::default(),
            rechecks: BTreeSet::new(),
            recheck_of: BTreeMap::new(),
        }
    }

    pub fn daemon_set(&self) -> &DaemonSetView {
        &self.set
    }

    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// The DaemonSet has changed. One with another uid is another DaemonSet and needs another picture.
    pub fn set_daemon_set(&mut self, set: DaemonSetView) {
        // The status and its condition change with every pod.
        let judged = DaemonSetView {
            status: self.set.status,
            conditions: self.set.conditions.clone(),
            version: self.set.version,
            ..set.clone()
        };
        self.all_dirty |= judged != self.set;
        self.set = set;
    }

    /// The annotations of the Namespace, which has defaults of rollout policies.
    pub fn set_namespace(&mut self, annotations: Arc<BTreeMap<String, String>>) {
        self.all_dirty |= self.namespace != annotations;
        self.namespace = annotations;
    }

    pub fn apply_revision(&mut self, revision: Revision) {
        let place = self.revisions.iter().position(|r| r.uid == revision.uid);
        let Some(place) = place else {
            self.revisions.push(revision);
            self.all_dirty = true;
            return;
        };
        let known = &mut self.revisions[place];
        let versioned = Revision {
            version: revision.version.clone(),
            ..known.clone()
        };
        self.all_dirty |= versioned != revision;
        *known = revision;
    }

    pub fn remove_revision(&mut self, uid: &str) {
        let before = self.revisions.len();
        self.revisions.retain(|revision| *revision.uid != *uid);
        self.all_dirty |= self.revisions.len() != before;
    }

    /// A pod of any owner: only the DaemonSet's own count.
    pub fn apply_pod(&mut self, mut pod: PodView) {
        if pod.controller.as_ref() != Some(&self.set.uid) || !selects(&self.set, &pod) {
            return self.remove_pod(&pod.uid);
        }
        // Shared, to save memory.
        pod.controller = Some(self.set.uid.clone());
        pod.namespace = self.set.namespace.clone();
        self.pods.apply(pod, &mut self.touched);
    }

    pub fn remove_pod(&mut self, uid: &str) {
        self.pods.remove(uid, &mut self.touched);
    }

    /// A node has changed, or is gone.
    pub fn touch_node(&mut self, index: usize) {
        self.dirty.insert(index);
    }

    /// The pods of the DaemonSet.
    pub fn pods(&self) -> impl Iterator<Item = &PodView> {
        self.pods.iter()
    }

    /// Its pods on a node, the most senior first.
    pub fn pods_on(&self, node: &str) -> &[PodView] {
        self.pods.on(node)
    }

    /// Whether [`refresh`](Self::refresh) has something to do.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.all_dirty
            || !self.dirty.is_empty()
            || !self.touched.is_empty()
            || self.next_recheck().is_some_and(|at| at <= now)
    }

    /// When time alone may change a cell.
    pub fn next_recheck(&self) -> Option<Timestamp> {
        self.rechecks.first().map(|(at, _)| *at)
    }

    /// Judges the nodes that may have changed. Returns whether a cell has.
    pub fn refresh(&mut self, nodes: &Nodes, now: Timestamp) -> bool {
        self.letters.resize(nodes.len(), GONE);
        self.reasons.resize(nodes.len(), Reason::NoPod);
        let touched = std::mem::take(&mut self.touched);
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.extend(touched.iter().filter_map(|name| nodes.index(name)));
        while let Some((at, index)) = self.rechecks.first().copied()
            && at <= now
        {
            self.rechecks.pop_first();
            self.recheck_of.remove(&index);
            dirty.insert(index);
        }
        let head = self.head(now);
        let key = head.key();
        let all = self.all_dirty || key != self.head;
        let judge = |index: usize| {
            let view = nodes.get(index);
            let judged = view.map(|view| head.judge(view, self.pods.on(&view.name)));
            (index, judged)
        };
        let judged: Vec<_> = if all {
            (0..nodes.len()).map(judge).collect()
        } else {
            dirty.into_iter().map(judge).collect()
        };
        self.all_dirty = false;
        self.head = key;
        let mut changed = false;
        for (index, judgement) in judged {
            let state = judgement.map(|judgement| (judgement.state, judgement.reason));
            changed |= self.enter(index, state);
            let at = judgement.map_or(Timestamp::MAX, |judgement| judgement.recheck_at);
            self.recheck(index, at);
        }
        changed
    }

    fn head(&self, now: Timestamp) -> Head<'_> {
        let (set, revisions) = (&self.set, self.revisions.as_slice());
        let outline = self.outline_without_nodes(now);
        Head::new(set, outline, revisions, |hash| {
            self.pods.with_hash(hash) > 0
        })
    }

    fn outline_without_nodes(&self, now: Timestamp) -> Outline<'_> {
        let count = |hash: &str| self.pods.with_hash(hash);
        let (set, revisions) = (&self.set, self.revisions.as_slice());
        Outline::without_nodes(set, &self.namespace, revisions, &count, now)
    }

    fn enter(&mut self, index: usize, found: Option<(CellState, Reason)>) -> bool {
        let letter = found.map_or(GONE, |(state, _)| state.letter());
        let before = std::mem::replace(&mut self.letters[index], letter);
        let reason = found.map_or(Reason::NoPod, |(_, reason)| reason);
        let reason_before = std::mem::replace(&mut self.reasons[index], reason);
        if let Some(before) = CellState::of_letter(before) {
            self.counts.remove(before);
        }
        if let Some((state, _)) = found {
            self.counts.add(state);
        }
        before != letter || reason_before != reason
    }

    fn recheck(&mut self, index: usize, at: Timestamp) {
        if let Some(before) = self.recheck_of.remove(&index) {
            self.rechecks.remove(&(before, index));
        }
        if at != Timestamp::MAX {
            self.recheck_of.insert(index, at);
            self.rechecks.insert((at, index));
        }
    }

    /// One letter for each index of [`Nodes`]: that of its state, or `-` where there is no node.
    pub fn letters(&self) -> &[u8] {
        &self.letters
    }

    pub fn state(&self, index: usize) -> Option<CellState> {
        CellState::of_letter(*self.letters.get(index)?)
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The counts by the value of a node label; nodes without it have an empty value.
    pub fn counts_by(&self, nodes: &Nodes, label: &str) -> BTreeMap<String, Counts> {
        let mut groups: BTreeMap<String, Counts> = BTreeMap::new();
        for (index, view) in nodes.iter() {
            let value = view.labels.get(label).map_or("", String::as_str);
            if let Some(state) = self.state(index) {
                match groups.get_mut(value) {
                    Some(counts) => counts.add(state),
                    None => groups.entry(value.to_owned()).or_default().add(state),
                }
            }
        }
        groups
    }

    /// A cell with what it says about its pod.
    pub fn cell(&self, nodes: &Nodes, index: usize) -> Option<Cell> {
        let state = self.state(index)?;
        let pods = self.pods.on(nodes.name(index)?);
        let rank = |pod: &&PodView| {
            let of_template = pod.labels.get(HASH_LABEL) == self.head.hash.as_ref();
            (pod.terminating, !of_template, pod.ready_since.is_none())
        };
        let pod = pods.iter().min_by_key(rank);
        let hash = pod.and_then(|pod| pod.labels.get(HASH_LABEL));
        Some(Cell {
            state,
            reason: self.reasons[index],
            pod: pod.map(|pod| pod.name.clone()),
            revision: hash.map(|hash| hash.as_str().into()),
            created: pod.map(|pod| pod.created),
        })
    }

    /// Why a node is in its state.
    pub fn reason(&self, index: usize) -> Option<Reason> {
        self.state(index).map(|_| self.reasons[index])
    }

    /// The rollout, as of now, handed to `read`: for its status, plan and history.
    pub fn outline<R>(
        &self,
        nodes: &Nodes,
        now: Timestamp,
        read: impl FnOnce(&Outline<'_>) -> R,
    ) -> R {
        let nodes: Vec<&NodeView> = nodes.iter().map(|(_, view)| view).collect();
        let pods: Vec<&PodView> = self.pods.iter().collect();
        read(&Outline::of(&Input {
            daemon_set: &self.set,
            namespace: &self.namespace,
            nodes: &nodes,
            pods: &pods,
            revisions: &self.revisions,
            now,
        }))
    }

    /// As [`outline`](Self::outline), without what it says about nodes: far cheaper.
    pub fn without_nodes<R>(&self, now: Timestamp, read: impl FnOnce(&Outline<'_>) -> R) -> R {
        read(&self.outline_without_nodes(now))
    }
}

//! One DaemonSet of a view.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_core::daemonset::{DaemonSetView, PodView};
use kennel_core::picture::{CellState, Nodes, Picture, Reason};
use kennel_core::rollout::history::DatedRevision;
use kennel_types::Timestamp;
use kennel_types::event::Event;

/// Events that are kept of a DaemonSet: far more than a page shows.
const EVENTS_MAX: usize = 100;

/// See the [module](self).
pub struct Set {
    pub(super) picture: Picture,
    pub(super) version: u64,
    /// Something beside the cells has changed since the version.
    pub(super) changed: bool,
    /// By uid of the revision: when it was created, and its cause.
    dates: BTreeMap<Arc<str>, (Option<Timestamp>, Option<String>)>,
    /// The uid and the event, the newest first.
    events: Vec<(Arc<str>, Event)>,
    /// By index of the node: how it was found failed last.
    failed: BTreeMap<usize, Failed>,
}

/// A node that a pod's change has shown as failed.
#[derive(Clone, Debug)]
pub struct Failed {
    pub at: Timestamp,
    pub reason: Reason,
    /// What the pod's containers say of it.
    pub cause: Option<Arc<str>>,
}

impl Set {
    pub(super) fn new(set: DaemonSetView) -> Self {
        Self {
            picture: Picture::new(set),
            version: 0,
            changed: true,
            dates: BTreeMap::new(),
            events: Vec::new(),
            failed: BTreeMap::new(),
        }
    }

    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// The version of the view in which the cells, the rollout or the events have changed last.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// About the DaemonSet, the newest first.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events_with_uids().map(|(_, event)| event)
    }

    /// The same, each with its uid.
    pub fn events_with_uids(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.events.iter().map(|(uid, event)| (&**uid, event))
    }

    /// The nodes that were failed for however short a time, by index, as their pods showed it last.
    pub fn failed(&self) -> &BTreeMap<usize, Failed> {
        &self.failed
    }

    /// Judges the node of a pod at once.
    pub(super) fn note_failure(
        &mut self,
        nodes: &Nodes,
        pod: &PodView,
        cause: Option<Arc<str>>,
        now: Timestamp,
    ) {
        self.changed |= self.picture.refresh(nodes, now);
        let node = pod.target().and_then(|name| nodes.index(name));
        let Some(node) = node.filter(|n| self.picture.state(*n) == Some(CellState::Failed)) else {
            return;
        };
        if let Some(reason) = self.picture.reason(node) {
            let at = now;
            self.failed.insert(node, Failed { at, reason, cause });
            self.changed = true;
        }
    }

    /// The revisions with what their history shows.
    pub fn dated_revisions(&self) -> Vec<DatedRevision> {
        let dated = self.picture.revisions().iter().map(|revision| {
            let (created, cause) = self.dates.get(&revision.uid).cloned().unwrap_or_default();
            DatedRevision {
                revision: revision.clone(),
                created,
                cause,
            }
        });
        dated.collect()
    }

    pub(super) fn apply_revision(&mut self, dated: DatedRevision) {
        let uid = dated.revision.uid.clone();
        self.dates.insert(uid, (dated.created, dated.cause));
        self.picture.apply_revision(dated.revision);
        self.changed = true;
    }

    pub(super) fn remove_revision(&mut self, uid: &str) {
        self.changed |= self.dates.remove(uid).is_some();
        self.picture.remove_revision(uid);
    }

    pub(super) fn apply_event(&mut self, uid: Arc<str>, event: Event) {
        self.events.retain(|(known, _)| *known != uid);
        self.events.push((uid, event));
        self.events
            .sort_by_key(|(_, event)| Reverse(event.last_seen()));
        self.events.truncate(EVENTS_MAX);
        self.changed = true;
    }

    pub(super) fn remove_event(&mut self, uid: &str) {
        self.events.retain(|(known, _)| **known != *uid);
    }
}

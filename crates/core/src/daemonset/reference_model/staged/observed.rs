//! What the controller has observed of the cluster: the objects that its watches and the answers to its writes have shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kennel_types::Timestamp;

use super::super::super::event::{Answer, Event, Outcome, Write};
use super::super::super::history::Revision;
use super::super::super::view::{DaemonSetView, NodeView, PodView};
use super::super::Uid;
use super::super::pacing::FIVE_MINUTES;
use super::super::rules::is_available;
use super::inputs::{Daemon, Inputs, Standing};
use crate::rollout::policy::{Policy, Setting};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Observed {
    pub(super) sets: BTreeMap<Uid, DaemonSetView>,
    pub(super) nodes: BTreeMap<Arc<str>, NodeView>,
    namespaces: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    pub(super) pods: BTreeMap<Uid, PodView>,
    pub(super) revisions: BTreeMap<Uid, Revision>,
    /// Revisions that answers have shown and no watch yet. The controller may have forgotten those that it created for a
    /// template that is another by now.
    unshown: BTreeSet<Uid>,
    /// R8.3: stable's revision after it was deleted. The controller makes it again from memory.
    lost_stable: Option<Revision>,
    /// The last policy that could be read.
    policy: Option<Policy>,
    /// Pods whose deletion was requested and has not failed, and when that was.
    pub(super) deleting: BTreeMap<Uid, Timestamp>,
}

impl Observed {
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::DaemonSet(view) => self.show_set(view),
            Event::DaemonSetGone(uid) => drop(self.sets.remove(uid)),
            Event::Node(view) => drop(self.nodes.insert(view.name.clone(), view.clone())),
            Event::NodeGone(name) => drop(self.nodes.remove(name)),
            Event::Pod(view) => drop(self.pods.insert(view.uid.clone(), view.clone())),
            Event::PodGone(uid) => {
                self.pods.remove(uid);
                self.deleting.remove(uid);
            }
            Event::Revision(revision) => {
                self.unshown.remove(&revision.uid);
                self.show_revision(revision);
            }
            Event::RevisionGone(uid) => {
                self.unshown.remove(uid);
                self.remember_stable(uid);
                self.revisions.remove(uid);
            }
            Event::Namespace { name, annotations } => {
                self.namespaces.insert(name.clone(), annotations.clone());
                let there = self.sets.values().filter(|set| set.namespace == *name);
                let there: Vec<DaemonSetView> = there.cloned().collect();
                for view in &there {
                    self.show_set(view);
                }
            }
            Event::Synced
            | Event::Config(_)
            | Event::WriteFinished { .. }
            | Event::CheckFinished { .. }
            | Event::TaintRemoved { .. }
            | Event::Tick => {}
        }
        self.forget_stable();
    }

    /// R8.3.
    fn remember_stable(&mut self, gone: &Uid) {
        let owner = self.revisions.get(gone).and_then(|r| r.controller.clone());
        let inputs = owner.and_then(|owner| self.inputs(&owner, Timestamp::EPOCH));
        let stable = inputs
            .and_then(|inputs| inputs.stable)
            .filter(|r| r.uid == *gone);
        if let Some(stable) = stable.cloned() {
            self.lost_stable = Some(stable);
        }
    }

    /// It is there again, or nothing goes back to it any more.
    fn forget_stable(&mut self) {
        let Some(lost) = &self.lost_stable else {
            return;
        };
        let same = |revision: &Revision| {
            (revision.hash(), &revision.controller) == (lost.hash(), &lost.controller)
        };
        let again = self.revisions.values().any(same);
        let owner = lost.controller.as_ref();
        let inputs = owner.and_then(|owner| self.inputs(owner, Timestamp::EPOCH));
        // Until the template has its revision, the controller goes by what was stable before.
        let needed =
            inputs.is_none_or(|inputs| inputs.stable.is_some_and(|stable| stable.uid == lost.uid));
        if again || !needed {
            self.lost_stable = None;
        }
    }

    fn show_set(&mut self, view: &DaemonSetView) {
        self.sets.insert(view.uid.clone(), view.clone());
        let none = BTreeMap::new();
        let defaults = self.namespaces.get(&view.namespace).unwrap_or(&none);
        if let Setting::Policy(policy) = Setting::parse(&view.annotations, defaults) {
            self.policy = Some(*policy);
            return;
        }
        let policy = self.inputs(&view.uid, Timestamp::EPOCH).map(|inputs| {
            let applies = inputs.standing != Standing::Plain;
            applies.then(|| inputs.applied_policy())
        });
        if let Some(policy) = policy {
            self.policy = policy;
        }
    }

    fn show_revision(&mut self, revision: &Revision) {
        let version = |revision: &Revision| revision.version.parse::<u64>().unwrap();
        let known = self.revisions.get(&revision.uid);
        if known.is_none_or(|known| version(known) <= version(revision)) {
            self.revisions
                .insert(revision.uid.clone(), revision.clone());
        }
    }

    /// The result of a write.
    pub(super) fn answer(&mut self, write: &Write, outcome: &Outcome) {
        match (write, outcome) {
            (
                Write::WriteRecord { .. } | Write::CreateRevision { .. },
                Ok(Answer::Revision(revision)),
            ) => {
                if !self.revisions.contains_key(&revision.uid) {
                    self.unshown.insert(revision.uid.clone());
                }
                self.show_revision(revision);
            }
            (Write::DeletePod(pod), Err(_)) => drop(self.deleting.remove(&pod.uid)),
            _ => {}
        }
    }

    /// Rule 3.8.1 of DaemonSets: what does not show within five minutes is expected no longer, so that a pod whose deletion
    /// was requested before counts like any other.
    fn is_deleting(&self, pod: &Uid, now: Timestamp) -> bool {
        let requested = self.deleting.get(pod);
        requested.is_some_and(|at| now.millis_since(*at) < FIVE_MINUTES)
    }

    /// The rules for a DaemonSet as the controller sees it.
    pub(super) fn inputs(&self, uid: &Uid, now: Timestamp) -> Option<Inputs<'_>> {
        let set = self.sets.get(uid)?;
        let own = self.pods.values();
        let own = own.filter(|pod| pod.controller.as_ref() == Some(uid));
        let pods = own.map(|view| Daemon {
            view,
            available: is_available(view.ready_since, set.min_ready_seconds, now),
            leaving: view.terminating || self.is_deleting(&view.uid, now),
        });
        let revisions = self.revisions.values().chain(&self.lost_stable);
        let revisions = revisions.filter(|revision| revision.controller.as_ref() == Some(uid));
        let inputs = Inputs::new(
            set,
            &self.namespaces,
            &self.nodes,
            pods.collect(),
            revisions.collect(),
        )?;
        let mut inputs = inputs.with_last_policy(self.policy.as_ref());
        inputs.uncertain = !self.unshown.is_empty();
        Some(inputs)
    }
}

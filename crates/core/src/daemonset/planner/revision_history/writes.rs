//! Requests the writes that the history needs: revisions to create, renumber, label, merge and prune.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::event::{Object, Write};
use super::super::super::expectation::Expectation;
use super::super::super::history::object::{Parts, body, remade};
use super::super::super::history::{Revision, Step, name, prune};
use super::super::Planner;
use super::super::pods::{Claim, PodWrite};
use super::super::staged::Note;
use super::super::write_results::WriteKind;
use crate::ids::{PodId, SetId};

impl Planner {
    pub(super) fn take_step(&mut self, set: SetId, step: &Step) {
        match step {
            Step::Create { revision } => self.create_revision(set, *revision),
            Step::Label { revision, hash } => {
                let hash = hash.clone();
                self.write_revision(set, revision.clone(), |revision| Write::LabelRevision {
                    revision,
                    hash,
                });
            }
            Step::Renumber { revision, number } => {
                let number = *number;
                self.write_revision(set, revision.clone(), |revision| Write::RenumberRevision {
                    revision,
                    number,
                });
            }
            Step::Merge {
                duplicate,
                from,
                to,
            } => {
                if from == to || !self.relabel_pods(set, from, to) {
                    self.write_revision(set, duplicate.clone(), Write::DeleteRevision);
                }
            }
        }
    }

    /// Requests a write to a revision, unless an earlier one is outstanding or waits for its retry.
    pub(in super::super) fn write_revision(
        &mut self,
        set: SetId,
        revision: Object,
        write: impl FnOnce(Object) -> Write,
    ) {
        self.write_revision_with(set, revision, Vec::new(), write);
    }

    /// The same for a state, with the events to emit once it is written.
    pub(in super::super) fn write_revision_with(
        &mut self,
        set: SetId,
        revision: Object,
        notes: Vec<Note>,
        write: impl FnOnce(Object) -> Write,
    ) {
        let now = self.now;
        let ticket = self.next_ticket();
        let known = &mut self.sets[set];
        let earlier = known.history.writes.get(&revision.uid).copied();
        if earlier.is_some_and(|earlier| earlier.blocks(now)) {
            return;
        }
        let expectation = Expectation::new(now, ticket, earlier);
        let uid = revision.uid.clone();
        known.history.writes.insert(uid.clone(), expectation);
        self.recheck_history(set, expectation.until);
        let write = write(revision);
        let kind = match write {
            Write::WriteRecord { .. } => WriteKind::Record(notes),
            _ => WriteKind::Revision(uid),
        };
        self.request(ticket, set, write, kind);
    }

    /// Creates the current revision, or counts the collision that has prevented that.
    fn create_revision(&mut self, set: SetId, number: i64) {
        let now = self.now;
        let ticket = self.next_ticket();
        let known = &mut self.sets[set];
        if known
            .history
            .create
            .is_some_and(|create| create.blocks(now))
        {
            return;
        }
        if known.history.collided {
            known.history.kept.forget(&known.history.data);
        }
        let view = &known.view;
        let kept = known.history.kept.with_data(&known.history.data);
        let write = if known.history.collided {
            Write::CountCollision {
                known: view.collision_count,
            }
        } else if let Some(kept) = kept {
            Write::CreateRevision {
                name: kept.name.clone(),
                data: kept.data.clone(),
                body: remade(kept, view, number).into(),
            }
        } else {
            let hash = name::hash(&known.history.data, view.collision_count);
            let body = body(Parts {
                namespace: &view.namespace,
                daemon_set: &view.name,
                uid: &view.uid,
                annotations: &view.annotations,
                template: &view.template,
                data: &known.history.data,
                hash: &hash,
                revision: number,
                record: known.history.lost.as_ref(),
            });
            Write::CreateRevision {
                name: name::name(&view.name, &hash).into(),
                data: known.history.data.clone(),
                body: body.into(),
            }
        };
        let expectation = Expectation::new(now, ticket, known.history.create);
        known.history.create = Some(expectation);
        self.recheck_history(set, expectation.until);
        self.request(ticket, set, write, WriteKind::NewRevision);
    }

    /// Relabels the pods of a duplicate with the kept hash (rule 4.8). True while some have the old one.
    fn relabel_pods(&mut self, set: SetId, from: &str, to: &Arc<str>) -> bool {
        let hash = self.symbols.intern(Some(from));
        let owned = self.pods.owned_by(&self.sets[set].reference.uid);
        let carries = |pod: &&PodId| {
            let hot = self.pods.hot(**pod);
            hot.hash == hash && hot.claim == Claim::Member && !hot.terminating
        };
        let pods: Vec<PodId> = owned.iter().filter(carries).copied().collect();
        for pod in &pods {
            let earlier = self.pods.expectation(*pod);
            if !earlier.is_some_and(|(_, earlier)| earlier.blocks(self.now)) {
                let write = Write::RelabelPod {
                    pod: self.object(*pod),
                    hash: to.clone(),
                };
                self.write_pod(set, *pod, PodWrite::Relabel, write);
            }
        }
        !pods.is_empty()
    }

    /// Deletes old revisions beyond the limit (rule 4.7).
    pub(super) fn prune(&mut self, set: SetId, old: &[&Revision]) {
        let known = &mut self.sets[set];
        let limit = usize::try_from(known.view.revision_history_limit).unwrap_or(0);
        let mut used = BTreeMap::new();
        for hash in old.iter().map(|revision| revision.hash()) {
            let symbol = self.symbols.intern(Some(hash));
            if known.hash_uses.contains_key(&symbol) {
                used.insert(hash, symbol);
            }
        }
        let staged = known.staged.as_ref();
        let stable = staged.and_then(|staged| staged.stable.as_ref());
        // Stable is kept as long as a rollout may go back to it (R5.8).
        let is_stable = |hash: &str| stable.is_some_and(|stable| *stable.hash == *hash);
        let pruned = prune(old, limit, |hash| {
            used.contains_key(hash) || is_stable(hash)
        });
        if old.len() > limit {
            known.history.unpruned_hashes = used.into_values().collect();
        }
        for revision in pruned {
            self.write_revision(set, revision.object(), Write::DeleteRevision);
        }
    }
}

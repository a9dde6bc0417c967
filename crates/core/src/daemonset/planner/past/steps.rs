//! What history asks for: revisions to create, number, label, merge and forget.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::event::{Object, Write};
use super::super::super::history::object::{Parts, body};
use super::super::super::history::{Revision, Step, name, prune};
use super::super::super::wait::Wait;
use super::super::Planner;
use super::super::ended::Pending;
use super::super::pods::{Claim, PodId, PodWrite};
use super::super::sets::SetId;

impl Planner {
    pub(super) fn take_step(&mut self, set: SetId, step: &Step) {
        match step {
            Step::Create { revision } => self.create_revision(set, *revision),
            Step::Label { name, uid, hash } => {
                let hash = hash.clone();
                self.write_revision(set, name, uid, |revision| Write::LabelRevision {
                    revision,
                    hash,
                });
            }
            Step::Renumber {
                name,
                uid,
                revision: number,
            } => self.write_revision(set, name, uid, |revision| Write::RenumberRevision {
                revision,
                number: *number,
            }),
            Step::Merge {
                name,
                uid,
                from,
                to,
            } => {
                if from == to || !self.relabel_pods(set, from, to) {
                    self.write_revision(set, name, uid, Write::DeleteRevision);
                }
            }
        }
    }

    /// Asks for a write to a revision, unless one is under way or failed a moment ago.
    pub(super) fn write_revision(
        &mut self,
        set: SetId,
        name: &Arc<str>,
        uid: &Arc<str>,
        write: impl FnOnce(Object) -> Write,
    ) {
        let now = self.now;
        let ticket = self.ticket();
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let before = known.past.waits.get(uid).copied();
        if before.is_some_and(|wait| wait.holds(now)) {
            return;
        }
        let wait = Wait::asked(now, ticket, before);
        known.past.waits.insert(uid.clone(), wait);
        let reference = known.reference.clone();
        self.look_at_history(set, wait.until);
        let write = write(Object {
            name: name.clone(),
            uid: uid.clone(),
        });
        let pending = Pending::Revision {
            set,
            daemon_set: reference.clone(),
            revision: uid.clone(),
        };
        self.ask(ticket, &reference, write, pending);
    }

    /// Creates the present revision, or counts the collision that stands in its way.
    fn create_revision(&mut self, set: SetId, number: i64) {
        let now = self.now;
        let ticket = self.ticket();
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        if known.past.creation.is_some_and(|wait| wait.holds(now)) {
            return;
        }
        let view = &known.view;
        let write = if known.past.collided {
            Write::CountCollision {
                known: view.collision_count,
            }
        } else {
            let hash = name::hash(&known.past.data, view.collision_count);
            let made = body(Parts {
                namespace: &view.namespace,
                daemon_set: &view.name,
                uid: &view.uid,
                annotations: &view.annotations,
                template: &view.template,
                data: &known.past.data,
                hash: &hash,
                revision: number,
            });
            let Some(body) = made else {
                return;
            };
            Write::CreateRevision {
                name: name::name(&view.name, &hash).into(),
                data: known.past.data.clone(),
                body: body.into(),
            }
        };
        let wait = Wait::asked(now, ticket, known.past.creation);
        known.past.creation = Some(wait);
        let reference = known.reference.clone();
        self.look_at_history(set, wait.until);
        let pending = Pending::NewRevision {
            set,
            daemon_set: reference.clone(),
        };
        self.ask(ticket, &reference, write, pending);
    }

    /// Gives the pods of a duplicate the kept hash (rule 4.8). True while some have the old one.
    fn relabel_pods(&mut self, set: SetId, from: &str, to: &Arc<str>) -> bool {
        let Some(known) = self.sets.get(set) else {
            return false;
        };
        let hash = self.symbols.number(Some(from));
        let owned = self.pods.owned_by(&known.reference.uid);
        let carries = |pod: &&PodId| {
            let hot = self.pods.hot(**pod);
            hot.hash == hash && hot.claim == Claim::Member && !hot.terminating
        };
        let pods: Vec<PodId> = owned.iter().filter(carries).copied().collect();
        for pod in &pods {
            let wait = self.pods.wait(*pod).map(|(_, wait)| wait);
            if !wait.is_some_and(|wait| wait.holds(self.now)) {
                let write = Write::RelabelPod {
                    pod: self.object(*pod),
                    hash: to.clone(),
                };
                self.write_pod(set, *pod, PodWrite::Relabel, write);
            }
        }
        !pods.is_empty()
    }

    /// Forgets old revisions (rule 4.7).
    pub(super) fn prune(&mut self, set: SetId, old: &[&Revision]) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let limit = usize::try_from(known.view.revision_history_limit).unwrap_or(0);
        let mut used = BTreeMap::new();
        for hash in old.iter().map(|revision| revision.hash()) {
            let symbol = self.symbols.number(Some(hash));
            if known.hash_uses.contains_key(&symbol) {
                used.insert(hash, symbol);
            }
        }
        let doomed = prune(old, limit, |hash| used.contains_key(hash));
        if old.len() > limit {
            known.past.kept_for = used.into_values().collect();
        }
        let doomed: Vec<_> = doomed
            .into_iter()
            .map(|revision| (revision.name.clone(), revision.uid.clone()))
            .collect();
        for (name, uid) in doomed {
            self.write_revision(set, &name, &uid, Write::DeleteRevision);
        }
    }
}

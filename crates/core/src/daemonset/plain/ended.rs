//! How writes ended.

use super::super::event::{Answer, Failure, FailureKind, Outcome, Ticket};
use super::{Pending, Plain, PodWrite, Uid};

impl Plain {
    pub(super) fn ended(&mut self, ticket: Ticket, outcome: &Outcome) {
        let Some((reference, name, pending)) = self.pending.remove(&ticket) else {
            return;
        };
        let now = self.now;
        let failure = match outcome {
            Outcome::Done(_) => None,
            Outcome::Failed(failure) => Some(failure),
        };
        match pending {
            Pending::Create(uid, node) => {
                self.say_created(&reference.uid, outcome);
                let Some(set) = self.sets.get_mut(&uid) else {
                    return;
                };
                set.throttle.created(now, failure);
                if let Some(wait) = self.creates.get_mut(&(uid, node))
                    && wait.ticket == ticket
                    && let Some(failure) = failure
                {
                    *wait = wait.failed(now, failure);
                }
            }
            Pending::Pod(uid, pod, kind) => {
                if kind == PodWrite::Delete {
                    self.say_deleted(&reference.uid, &name, outcome);
                    if let Some(set) = self.sets.get_mut(&uid) {
                        set.throttle.deleted();
                    }
                }
                self.pod_write_failed(ticket, &uid, &pod, failure);
            }
            Pending::Status(uid) => self.status_ended(ticket, &uid, outcome),
            Pending::NewRevision(uid) => self.new_revision_ended(ticket, &uid, outcome),
            Pending::Revision(uid, revision) => {
                self.revision_ended(ticket, &uid, &revision, failure);
            }
        }
    }

    pub(super) fn pod_write_failed(
        &mut self,
        ticket: Ticket,
        uid: &Uid,
        pod: &Uid,
        f: Option<&Failure>,
    ) {
        let failure = f.filter(|failure| failure.kind != FailureKind::NotFound);
        if let Some(pod) = self.pods.get_mut(pod)
            && let Some((kind, wait)) = &mut pod.wait
            && wait.ticket == ticket
            && let Some(failure) = failure
        {
            *wait = wait.failed(self.now, failure);
            if *kind == PodWrite::Relabel && self.sets.contains_key(uid) {
                self.looks.insert((wait.until, uid.clone()));
            }
        }
    }

    pub(super) fn say_created(&mut self, uid: &Uid, outcome: &Outcome) {
        match outcome {
            Outcome::Done(Answer::Pod { name }) => {
                self.note(uid, &format!("Normal SuccessfulCreate Created pod: {name}"));
            }
            Outcome::Failed(f) if f.kind != FailureKind::NamespaceTerminating => {
                let text = format!("Warning FailedCreate Error creating: {}", f.message);
                self.note(uid, &text);
            }
            _ => {}
        }
    }

    pub(super) fn say_deleted(&mut self, uid: &Uid, name: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Done(_) => {
                self.note(uid, &format!("Normal SuccessfulDelete Deleted pod: {name}"));
            }
            Outcome::Failed(f) if f.kind != FailureKind::NotFound => {
                let text = format!("Warning FailedDelete Error deleting: {}", f.message);
                self.note(uid, &text);
            }
            Outcome::Failed(_) => {}
        }
    }

    pub(super) fn status_ended(&mut self, ticket: Ticket, uid: &Uid, outcome: &Outcome) {
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let Some(wait) = set.status_wait.filter(|wait| wait.ticket == ticket) else {
            return;
        };
        let observed = set.reported.observed_generation;
        set.status_wait = match outcome {
            Outcome::Done(_) => None,
            Outcome::Failed(failure) => Some(wait.failed(self.now, failure)),
        };
        if let Outcome::Done(Answer::Status { counters, version }) = outcome
            && (*version == 0 || *version > set.view.version)
        {
            (set.reported, set.reported_version) = (*counters, *version);
        }
        if set.reported.observed_generation != observed {
            self.backoffs.retain(|(owner, _), _| owner != uid);
        }
    }
}

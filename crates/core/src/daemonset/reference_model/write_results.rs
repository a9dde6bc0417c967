//! Results of writes.

use super::super::event::{Answer, Failure, FailureKind, Outcome, Ticket};
use super::{Pending, PodWrite, ReferencePlanner, Uid};

impl ReferencePlanner {
    pub(super) fn on_write_finished(&mut self, ticket: Ticket, outcome: &Outcome) {
        let (reference, name, pending) = self.pending.remove(&ticket).unwrap();
        let now = self.now;
        let failure = outcome.as_ref().err();
        match pending {
            Pending::Create(uid, node) => {
                self.emit_created(&reference.uid, outcome);
                let Some(set) = self.sets.get_mut(&uid) else {
                    return;
                };
                set.slow_start.create_finished(now, failure);
                if let Some(write) = self.creates.get_mut(&(uid, node))
                    && write.ticket == ticket
                    && let Some(failure) = failure
                {
                    write.fail(now, failure);
                }
            }
            Pending::Pod(uid, pod, kind) => {
                if kind == PodWrite::Delete {
                    self.emit_deleted(&reference.uid, &name, outcome);
                    if let Some(set) = self.sets.get_mut(&uid) {
                        set.slow_start.delete_finished();
                    }
                }
                self.pod_write_failed(ticket, &uid, &pod, failure);
            }
            Pending::Status(uid) => self.status_write_finished(ticket, &uid, outcome),
            Pending::Record(uid) => self.record_written(ticket, &uid, outcome),
            // Its answer is an event of its own.
            Pending::Check => {}
            Pending::Remade(uid) => self.remade_finished(ticket, &uid, outcome),
            Pending::NewRevision(uid) => self.new_revision_finished(ticket, &uid, outcome),
            Pending::Revision(uid, revision) => {
                self.revision_write_finished(ticket, &uid, &revision, failure);
            }
        }
    }

    fn pod_write_failed(&mut self, ticket: Ticket, uid: &Uid, pod: &Uid, f: Option<&Failure>) {
        let failure = f.filter(|failure| failure.kind != FailureKind::NotFound);
        if let Some(pod) = self.pods.get_mut(pod)
            && let Some((kind, write)) = &mut pod.write
            && write.ticket == ticket
            && let Some(failure) = failure
        {
            write.fail(self.now, failure);
            if *kind == PodWrite::Relabel && self.sets.contains_key(uid) {
                self.timers.insert((write.until, uid.clone()));
            }
        }
    }

    fn emit_created(&mut self, uid: &Uid, outcome: &Outcome) {
        match outcome {
            Ok(Answer::Pod { name }) => {
                self.emit(uid, &format!("Normal SuccessfulCreate Created pod: {name}"));
            }
            Err(f) if f.kind != FailureKind::NamespaceTerminating => {
                let text = format!("Warning FailedCreate Error creating: {}", f.message);
                self.emit(uid, &text);
            }
            _ => {}
        }
    }

    fn emit_deleted(&mut self, uid: &Uid, name: &str, outcome: &Outcome) {
        match outcome {
            Ok(_) => {
                self.emit(uid, &format!("Normal SuccessfulDelete Deleted pod: {name}"));
            }
            Err(f) if f.kind != FailureKind::NotFound => {
                let text = format!("Warning FailedDelete Error deleting: {}", f.message);
                self.emit(uid, &text);
            }
            Err(_) => {}
        }
    }

    fn status_write_finished(&mut self, ticket: Ticket, uid: &Uid, outcome: &Outcome) {
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let Some(mut write) = set.status_write.filter(|write| write.ticket == ticket) else {
            return;
        };
        let observed = set.reported.observed_generation;
        set.status_write = match outcome {
            Ok(_) => None,
            Err(failure) => {
                write.fail(self.now, failure);
                Some(write)
            }
        };
        if let Ok(Answer::Status {
            counters,
            version,
            conditions,
        }) = outcome
            && (*version == 0 || *version > set.view.version)
        {
            (set.reported, set.reported_version) = (*counters, *version);
            set.reported_conditions = conditions.clone();
        }
        if set.reported.observed_generation != observed {
            self.backoffs.retain(|(owner, _), _| owner != uid);
        }
    }
}

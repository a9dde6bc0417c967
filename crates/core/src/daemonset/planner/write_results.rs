//! Handles the results of writes: what to expect in the watch, what to retry and when, and which event to emit.

use std::sync::Arc;

use super::super::event::{Answer, Failure, FailureKind, Outcome, SetRef, Ticket};
use super::super::history::Revision;
use super::super::ids::{NodeId, PodId, SetId};
use super::Planner;
use super::pods::PodWrite;
use super::sets::Set;
use super::timers::Recheck;

/// A write without a result so far.
#[derive(Clone, Debug)]
pub(super) enum PendingWrite {
    Create {
        set: SetId,
        daemon_set: Arc<SetRef>,
        node: NodeId,
    },
    Pod {
        set: SetId,
        daemon_set: Arc<SetRef>,
        pod: PodId,
        name: Arc<str>,
        kind: PodWrite,
    },
    Status {
        set: SetId,
        daemon_set: Arc<SetRef>,
    },
    /// The creation of a revision, or the write that counts a collision.
    NewRevision {
        set: SetId,
        daemon_set: Arc<SetRef>,
    },
    /// Any other write to a revision, by its uid.
    Revision {
        set: SetId,
        daemon_set: Arc<SetRef>,
        revision: Arc<str>,
    },
}

impl Planner {
    pub(super) fn on_write_finished(&mut self, ticket: Ticket, outcome: &Outcome) {
        let Some(pending) = self.pending.remove(&ticket) else {
            debug_assert!(false, "each ticket is handed back once");
            return;
        };
        match pending {
            PendingWrite::Create {
                set,
                daemon_set,
                node,
            } => self.create_finished(ticket, set, &daemon_set, node, outcome),
            PendingWrite::Pod {
                set,
                daemon_set,
                pod,
                name,
                kind,
            } => {
                if kind == PodWrite::Delete {
                    self.delete_finished(set, &daemon_set, &name, outcome);
                }
                self.pod_write_finished(ticket, set, pod, kind, outcome);
            }
            PendingWrite::Status { set, daemon_set } => {
                self.status_write_finished(ticket, set, &daemon_set, outcome);
            }
            PendingWrite::NewRevision { set, daemon_set } => {
                self.new_revision_finished(ticket, set, &daemon_set, outcome);
            }
            PendingWrite::Revision {
                set,
                daemon_set,
                revision,
            } => self.revision_write_finished(ticket, set, &daemon_set, &revision, outcome),
        }
    }

    /// The DaemonSet that a write was for. It may be gone by now, and another one may have its id.
    fn requester(&mut self, set: SetId, daemon_set: &SetRef) -> Option<&mut Set> {
        let known = self.sets.get_mut(set)?;
        (known.reference.uid == daemon_set.uid).then_some(known)
    }

    fn create_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        node: NodeId,
        outcome: &Outcome,
    ) {
        match outcome {
            Outcome::Done(Answer::Pod { name }) => {
                let text = format!("Created pod: {name}");
                self.emit(daemon_set, false, "SuccessfulCreate", text);
            }
            Outcome::Done(_) => {}
            Outcome::Failed(failure) if failure.kind == FailureKind::NamespaceTerminating => {}
            Outcome::Failed(failure) => {
                let text = format!("Error creating: {}", failure.message);
                self.emit(daemon_set, true, "FailedCreate", text);
            }
        }
        let now = self.now;
        let Some(known) = self.requester(set, daemon_set) else {
            return;
        };
        let failure = failure(outcome);
        known.throttle.create_finished(now, failure);
        let paused = known.throttle.paused_until(now);
        // The expectation is gone if the pod has shown already.
        if let Some(create) = known.creates.get_mut(&node)
            && create.ticket == ticket
            && let Some(failure) = failure
        {
            *create = create.failed(now, failure);
            self.update_slot(set, node);
        }
        if let Some(until) = paused {
            self.timers.at(until, Recheck::Set(set));
        }
        self.mark_for_sync(set);
    }

    fn delete_finished(
        &mut self,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        name: &str,
        outcome: &Outcome,
    ) {
        match outcome {
            Outcome::Done(_) => {
                let text = format!("Deleted pod: {name}");
                self.emit(daemon_set, false, "SuccessfulDelete", text);
            }
            Outcome::Failed(failure) if failure.kind == FailureKind::NotFound => {}
            Outcome::Failed(failure) => {
                let text = format!("Error deleting: {}", failure.message);
                self.emit(daemon_set, true, "FailedDelete", text);
            }
        }
        if let Some(known) = self.requester(set, daemon_set) {
            known.throttle.delete_finished();
            self.mark_for_sync(set);
        }
    }

    fn pod_write_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        pod: PodId,
        kind: PodWrite,
        outcome: &Outcome,
    ) {
        let expectation = self
            .pods
            .expectation(pod)
            .map(|(_, expectation)| expectation);
        // The pod may be gone, its id may be another pod's by now, or the watch may have shown the result.
        let Some(expectation) = expectation.filter(|e| e.ticket == ticket) else {
            return;
        };
        // The watch will report a pod that was not found as gone.
        let failure = failure(outcome).filter(|failure| failure.kind != FailureKind::NotFound);
        let Some(failure) = failure else {
            return;
        };
        let hot = self.pods.hot(pod);
        let node = hot.node;
        assert_eq!(
            hot.set,
            Some(set),
            "a change of claim clears the expectation"
        );
        let expectation = expectation.failed(self.now, failure);
        self.pods.set_expectation(pod, Some((kind, expectation)));
        self.recheck_pod_write(set, pod, kind, expectation.until);
        if kind == PodWrite::Delete
            && let Some(node) = node
        {
            self.update_slot(set, node);
        }
    }

    fn status_write_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(known) = self.requester(set, daemon_set) else {
            return;
        };
        // A result that comes after the expectation's timeout belongs to an earlier write.
        let Some(write) = known.status_write.filter(|write| write.ticket == ticket) else {
            return;
        };
        let observed = known.reported.observed_generation;
        match outcome {
            Outcome::Done(answer) => {
                known.status_write = None;
                if let Answer::Status { counters, version } = answer
                    && (*version == 0 || *version > known.view.version)
                {
                    known.reported = *counters;
                    known.reported_version = *version;
                }
            }
            Outcome::Failed(failure) => {
                let write = write.failed(now, failure);
                known.status_write = Some(write);
                self.timers.at(write.until, Recheck::Set(set));
            }
        }
        if self.sets[set].reported.observed_generation != observed {
            self.reset_backoffs(set);
        }
        self.mark_for_sync(set);
    }

    fn new_revision_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(known) = self.requester(set, daemon_set) else {
            return;
        };
        let created: Option<Revision> = match outcome {
            Outcome::Done(Answer::Revision(revision)) => Some(revision.clone()),
            _ => None,
        };
        let recheck = known
            .history
            .create_finished(ticket, now, created, failure(outcome));
        if let Some(at) = recheck {
            self.recheck_history(set, at);
        }
        self.mark_for_sync(set);
    }

    fn revision_write_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        revision: &Arc<str>,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(known) = self.requester(set, daemon_set) else {
            return;
        };
        // The expectation is gone if the watch has shown the revision since.
        if let Some(write) = known.history.writes.get_mut(revision)
            && write.ticket == ticket
            && let Some(failure) = failure(outcome)
        {
            *write = write.failed(now, failure);
            let until = write.until;
            self.recheck_history(set, until);
        }
    }
}

fn failure(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Done(_) => None,
        Outcome::Failed(failure) => Some(failure),
    }
}

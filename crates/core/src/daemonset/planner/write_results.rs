//! Handles the results of writes: what to expect in the watch, what to retry and when, and which event to emit.

use std::sync::Arc;

use super::super::conflict::Act;
use super::super::event::{Answer, Failure, FailureKind, Identity, Outcome, Ticket};
use super::Planner;
use super::pods::PodWrite;
use super::sets::Set;
use super::staged::Note;
use super::timers::Recheck;
use crate::ids::{NodeId, PodId, SetId};

/// A write without a result so far.
#[derive(Clone, Debug)]
pub(super) struct PendingWrite {
    pub(super) set: SetId,
    pub(super) daemon_set: Arc<Identity>,
    pub(super) kind: WriteKind,
}

#[derive(Clone, Debug)]
pub(super) enum WriteKind {
    CreatePod(NodeId),
    Pod {
        pod: PodId,
        name: Arc<str>,
        kind: PodWrite,
    },
    Status,
    /// The creation of a revision, or the write that counts a collision.
    NewRevision,
    /// A revision that was deleted by hand.
    Remade,
    /// The verdict and state of a rollout, with the events to emit once it is written.
    Record(Vec<Note>),
    /// A copy of a ConfigMap, by its name.
    Copy(Arc<str>),
    /// Any other write to a revision, by its uid.
    Revision(Arc<str>),
}

/// The result of a write, and the DaemonSet that it was for.
struct Finished<'a> {
    ticket: Ticket,
    set: SetId,
    daemon_set: Arc<Identity>,
    outcome: &'a Outcome,
}

impl Finished<'_> {
    fn failure(&self) -> Option<&Failure> {
        self.outcome.as_ref().err()
    }
}

impl Planner {
    pub(super) fn on_write_finished(&mut self, ticket: Ticket, outcome: &Outcome) {
        let Some(pending) = self.pending.remove(&ticket) else {
            debug_assert!(false, "each ticket is handed back once");
            return;
        };
        let write = Finished {
            ticket,
            set: pending.set,
            daemon_set: pending.daemon_set,
            outcome,
        };
        match pending.kind {
            WriteKind::CreatePod(node) => self.create_finished(&write, node),
            WriteKind::Pod { pod, name, kind } => {
                if kind == PodWrite::Delete {
                    self.delete_finished(&write, &name);
                }
                self.pod_write_finished(&write, pod, kind);
            }
            WriteKind::Status => self.status_write_finished(&write),
            WriteKind::NewRevision => self.new_revision_finished(&write),
            WriteKind::Remade => {
                self.remade_finished(ticket, write.set, &write.daemon_set, outcome);
            }
            WriteKind::Copy(name) => {
                self.copy_finished(ticket, write.set, &write.daemon_set, &name, outcome);
            }
            WriteKind::Record(notes) => {
                self.record_written(ticket, write.set, &write.daemon_set, outcome, notes);
            }
            WriteKind::Revision(revision) => self.revision_write_finished(&write, &revision),
        }
    }

    /// The DaemonSet that a write was for. It may be gone by now, and another one may have its id.
    fn requester(&mut self, write: &Finished<'_>) -> Option<&mut Set> {
        let known = self.sets.get_mut(write.set)?;
        (known.reference.uid == write.daemon_set.uid).then_some(known)
    }

    fn emit_pod_write(&mut self, daemon_set: &Arc<Identity>, act: Act, pod: &str) {
        let text = format!("{}{pod}", act.event_message());
        self.emit(daemon_set, false, act.event_reason(), text);
    }

    fn create_finished(&mut self, write: &Finished<'_>, node: NodeId) {
        match write.outcome {
            Ok(Answer::Pod { name }) => {
                self.emit_pod_write(&write.daemon_set, Act::Created, name);
            }
            Ok(_) => {}
            Err(failure) if failure.kind == FailureKind::NamespaceTerminating => {}
            Err(failure) => {
                let text = format!("Error creating: {}", failure.message);
                self.emit(&write.daemon_set, true, "FailedCreate", text);
            }
        }
        let now = self.now;
        let Some(known) = self.requester(write) else {
            return;
        };
        known.throttle.create_finished(now, write.failure());
        let paused = known.throttle.paused_until(now);
        // The expectation is gone if the pod has shown already.
        if let Some(create) = known.creates.get_mut(&node)
            && create.ticket == write.ticket
            && let Some(failure) = write.failure()
        {
            *create = create.failed(now, failure);
            self.update_slot(write.set, node);
        }
        if let Some(until) = paused {
            self.timers.at(until, Recheck::Set(write.set));
        }
        self.mark_for_sync(write.set);
    }

    fn delete_finished(&mut self, write: &Finished<'_>, name: &str) {
        match write.outcome {
            Ok(_) => {
                self.emit_pod_write(&write.daemon_set, Act::Deleted, name);
            }
            Err(failure) if failure.kind == FailureKind::NotFound => {}
            Err(failure) => {
                let text = format!("Error deleting: {}", failure.message);
                self.emit(&write.daemon_set, true, "FailedDelete", text);
            }
        }
        if let Some(known) = self.requester(write) {
            known.throttle.delete_finished();
            self.mark_for_sync(write.set);
        }
    }

    fn pod_write_finished(&mut self, write: &Finished<'_>, pod: PodId, kind: PodWrite) {
        let expectation = self
            .pods
            .expectation(pod)
            .map(|(_, expectation)| expectation);
        // The pod may be gone, its id may be another pod's by now, or the watch may have shown the result.
        let Some(expectation) = expectation.filter(|e| e.ticket == write.ticket) else {
            return;
        };
        // The watch will report a pod that was not found as gone.
        let failure = write.failure();
        let Some(failure) = failure.filter(|failure| failure.kind != FailureKind::NotFound) else {
            return;
        };
        let hot = self.pods.hot(pod);
        let node = hot.node;
        assert_eq!(
            hot.set,
            Some(write.set),
            "a change of claim clears the expectation"
        );
        let expectation = expectation.failed(self.now, failure);
        self.pods.set_expectation(pod, Some((kind, expectation)));
        self.recheck_pod_write(write.set, pod, kind, expectation.until);
        if kind == PodWrite::Delete
            && let Some(node) = node
        {
            self.update_slot(write.set, node);
        }
    }

    fn status_write_finished(&mut self, write: &Finished<'_>) {
        let (now, set) = (self.now, write.set);
        let Some(known) = self.requester(write) else {
            return;
        };
        // A result that comes after the expectation's timeout belongs to an earlier write.
        let earlier = known.status_write;
        let Some(expected) = earlier.filter(|expected| expected.ticket == write.ticket) else {
            return;
        };
        let observed = known.reported.observed_generation;
        match write.outcome {
            Ok(answer) => {
                known.status_write = None;
                if let Answer::Status {
                    counters,
                    conditions,
                    version,
                } = answer
                    && (*version == 0 || *version > known.view.version)
                {
                    known.reported = *counters;
                    known.reported_conditions = conditions.clone();
                    known.reported_version = *version;
                }
            }
            Err(failure) => {
                let retry = expected.failed(now, failure);
                known.status_write = Some(retry);
                self.timers.at(retry.until, Recheck::Set(set));
            }
        }
        if self.sets[set].reported.observed_generation != observed {
            self.reset_backoffs(set);
        }
        self.mark_for_sync(set);
    }

    fn new_revision_finished(&mut self, write: &Finished<'_>) {
        // One that was there already may have a newer state than the watch has shown.
        if let Ok(Answer::Revision(revision)) = write.outcome
            && self.revisions.contains(&revision.uid)
        {
            self.on_revision(revision);
        }
        let now = self.now;
        let Some(known) = self.requester(write) else {
            return;
        };
        let created = match write.outcome {
            Ok(Answer::Revision(revision)) => Some((**revision).clone()),
            _ => None,
        };
        let history = &mut known.history;
        let recheck = history.create_finished(write.ticket, now, created, write.failure());
        if let Some(at) = recheck {
            self.recheck_history(write.set, at);
        }
        self.mark_for_sync(write.set);
    }

    fn revision_write_finished(&mut self, write: &Finished<'_>, revision: &str) {
        let now = self.now;
        // The expectation is gone if the watch has shown the revision since.
        if let Some(known) = self.requester(write)
            && let Some(expected) = known.history.writes.get_mut(revision)
            && expected.ticket == write.ticket
            && let Some(failure) = write.failure()
        {
            *expected = expected.failed(now, failure);
            let until = expected.until;
            self.recheck_history(write.set, until);
        }
    }
}

//! How writes ended: what to wait for, what to try again and when, and what to tell the user.

use std::sync::Arc;

use super::super::event::{Answer, Failure, FailureKind, Outcome, SetRef, Ticket};
use super::super::history::Revision;
use super::Planner;
use super::nodes::NodeId;
use super::pods::{PodId, PodWrite};
use super::sets::{Set, SetId};
use super::timers::Look;

/// A write that has not ended.
#[derive(Clone, Debug)]
pub(super) enum Pending {
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
    /// Creating a revision, or counting a collision.
    NewRevision {
        set: SetId,
        daemon_set: Arc<SetRef>,
    },
    /// Anything else with a revision, by uid.
    Revision {
        set: SetId,
        daemon_set: Arc<SetRef>,
        revision: Arc<str>,
    },
}

impl Planner {
    pub(super) fn ended(&mut self, ticket: Ticket, outcome: &Outcome) {
        let Some(pending) = self.pending.remove(&ticket) else {
            return;
        };
        match pending {
            Pending::Create {
                set,
                daemon_set,
                node,
            } => self.create_ended(ticket, set, &daemon_set, node, outcome),
            Pending::Pod {
                set,
                daemon_set,
                pod,
                name,
                kind,
            } => {
                if kind == PodWrite::Delete {
                    self.delete_ended(set, &daemon_set, &name, outcome);
                }
                self.pod_write_ended(ticket, set, pod, kind, outcome);
            }
            Pending::Status { set, daemon_set } => {
                self.status_ended(ticket, set, &daemon_set, outcome);
            }
            Pending::NewRevision { set, daemon_set } => {
                self.new_revision_ended(ticket, set, &daemon_set, outcome);
            }
            Pending::Revision {
                set,
                daemon_set,
                revision,
            } => self.revision_ended(ticket, set, &daemon_set, &revision, outcome),
        }
    }

    /// The DaemonSet that asked, if it is still the same one.
    pub(super) fn asker(&mut self, set: SetId, daemon_set: &SetRef) -> Option<&mut Set> {
        let known = self.sets.get_mut(set)?;
        (known.reference.uid == daemon_set.uid).then_some(known)
    }

    fn create_ended(
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
        let Some(known) = self.asker(set, daemon_set) else {
            return;
        };
        let failure = failure(outcome);
        known.throttle.created(now, failure);
        let held = known.throttle.held_until(now);
        if let Some(wait) = known.creates.get_mut(&node)
            && wait.ticket == ticket
            && let Some(failure) = failure
        {
            *wait = wait.failed(now, failure);
            self.settle(set, node);
        }
        if let Some(until) = held {
            self.timers.at(until, Look::Set(set));
        }
        self.touch(set);
    }

    fn delete_ended(
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
        if let Some(known) = self.asker(set, daemon_set) {
            known.throttle.deleted();
            self.touch(set);
        }
    }

    fn pod_write_ended(
        &mut self,
        ticket: Ticket,
        set: SetId,
        pod: PodId,
        kind: PodWrite,
        outcome: &Outcome,
    ) {
        let Some(hot) = self.pods.hot.get(pod as usize).copied() else {
            return;
        };
        let wait = self.pods.wait(pod).map(|(_, wait)| wait);
        let Some(wait) = wait.filter(|wait| wait.ticket == ticket) else {
            return;
        };
        // A pod that was not found is about to be gone.
        let failure = failure(outcome).filter(|failure| failure.kind != FailureKind::NotFound);
        let Some(failure) = failure else {
            return;
        };
        let wait = wait.failed(self.now, failure);
        self.pods.set_wait(pod, Some((kind, wait)));
        self.look_at_pod(set, pod, kind, wait.until);
        if kind == PodWrite::Delete && hot.set != super::pods::NOBODY {
            self.settle(hot.set, hot.node);
        }
    }

    fn status_ended(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(known) = self.asker(set, daemon_set) else {
            return;
        };
        let Some(wait) = known.status_wait.filter(|wait| wait.ticket == ticket) else {
            return;
        };
        let observed = known.reported.observed_generation;
        match outcome {
            Outcome::Done(answer) => {
                known.status_wait = None;
                if let Answer::Status { counters, version } = answer
                    && (*version == 0 || *version > known.view.version)
                {
                    known.reported = *counters;
                    known.reported_version = *version;
                }
            }
            Outcome::Failed(failure) => {
                let wait = wait.failed(now, failure);
                known.status_wait = Some(wait);
                self.timers.at(wait.until, Look::Set(set));
            }
        }
        let anew = self
            .asker(set, daemon_set)
            .map(|set| set.reported.observed_generation);
        if anew.is_some_and(|anew| anew != observed) {
            self.forget_backoffs(set);
        }
        self.touch(set);
    }

    fn new_revision_ended(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(known) = self.asker(set, daemon_set) else {
            return;
        };
        let made: Option<Revision> = match outcome {
            Outcome::Done(Answer::Revision(revision)) => Some(revision.clone()),
            _ => None,
        };
        let look = known
            .past
            .creation_ended(ticket, now, made, failure(outcome));
        if let Some(at) = look {
            self.look_at_history(set, at);
        }
        self.touch(set);
    }

    fn revision_ended(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<SetRef>,
        revision: &Arc<str>,
        outcome: &Outcome,
    ) {
        let now = self.now;
        let Some(known) = self.asker(set, daemon_set) else {
            return;
        };
        if let Some(wait) = known.past.waits.get_mut(revision)
            && wait.ticket == ticket
            && let Some(failure) = failure(outcome)
        {
            *wait = wait.failed(now, failure);
            let until = wait.until;
            self.look_at_history(set, until);
        }
    }
}

fn failure(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Done(_) => None,
        Outcome::Failed(failure) => Some(failure),
    }
}

//! Decides which writes of a batch succeed: each is compared with memory and the earlier writes of the batch.
//!
//! Nothing becomes visible before the writer publishes it.

use std::collections::HashMap;
use std::sync::Arc;

use super::queue::Request;
use crate::error::WriteError;
use crate::memory::Memory;
use crate::record::{Event, Op, Record, Revision, Written};

type Answer<H> = tokio::sync::oneshot::Sender<Result<Written<H>, WriteError<H>>>;

struct Rejection<H> {
    error: WriteError<H>,
    /// Caused by an earlier write of the same batch.
    by_batch: bool,
}

/// What a failed commit means for its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing was stored.
    Certain,
    /// A crash before the next commit may leave all of them stored.
    Uncertain,
}

/// A batch with every decision made.
pub(super) struct Batch<H> {
    /// One event per accepted write, in revision order.
    pub(super) events: Vec<Arc<Event<H>>>,
    accepted: Vec<(Answer<H>, Written<H>)>,
    rejected: Vec<(Answer<H>, Rejection<H>)>,
}

impl<H: Send + Sync + 'static> Batch<H> {
    /// Decides all requests in order; the accepted ones get the revisions after `last`.
    pub(super) fn decide(requests: Vec<Request<H>>, memory: &Memory<H>, last: Revision) -> Self {
        let mut staging = Staging {
            memory,
            changed: HashMap::new(),
            last,
        };
        let mut batch = Self {
            events: Vec::with_capacity(requests.len()),
            accepted: Vec::new(),
            rejected: Vec::new(),
        };
        for Request { op, answer } in requests {
            match staging.stage(op) {
                Ok(event) => {
                    let record = event.after.as_ref().or(event.before.as_ref());
                    let record = Arc::clone(record.expect("an event has a record on one side"));
                    batch.accepted.push((
                        answer,
                        Written {
                            revision: event.revision,
                            record,
                        },
                    ));
                    batch.events.push(event);
                }
                Err(rejection) => batch.rejected.push((answer, rejection)),
            }
        }
        batch
    }

    /// The last assigned revision.
    pub(super) fn last(&self) -> Option<Revision> {
        self.events.last().map(|event| event.revision)
    }

    pub(super) fn answer(self) {
        // A send fails only when the caller has dropped its future; the write is done all the same.
        for (answer, written) in self.accepted {
            drop(answer.send(Ok(written)));
        }
        for (answer, rejection) in self.rejected {
            drop(answer.send(Err(rejection.error)));
        }
    }

    /// Answers all callers after a failed commit. Rejections that do not depend on the batch stay as they
    /// are. Returns deletes for an attempt of their own, unless the batch had nothing else.
    pub(super) fn fail(self, reason: &str, failure: Failure) -> Vec<Request<H>> {
        let error = || match failure {
            Failure::Certain => WriteError::Unavailable(reason.to_owned()),
            Failure::Uncertain => WriteError::Unknown(reason.to_owned()),
        };
        let only_deletes = self.events.iter().all(|event| event.after.is_none());
        let mut deletes = Vec::new();
        for ((answer, written), event) in self.accepted.into_iter().zip(&self.events) {
            if event.after.is_none() && !only_deletes {
                let (key, expected) = (event.key.to_string(), written.record.modified);
                deletes.push(Request {
                    op: Op::Delete { key, expected },
                    answer,
                });
            } else {
                drop(answer.send(Err(error())));
            }
        }
        for (answer, Rejection { error, by_batch }) in self.rejected {
            let error = if by_batch {
                WriteError::Unavailable(reason.to_owned())
            } else {
                error
            };
            drop(answer.send(Err(error)));
        }
        deletes
    }
}

struct Staging<'a, H> {
    memory: &'a Memory<H>,
    /// The keys that the batch has changed so far.
    changed: HashMap<Arc<str>, Option<Arc<Record<H>>>>,
    last: Revision,
}

impl<H: Send + Sync + 'static> Staging<'_, H> {
    fn stage(&mut self, op: Op<H>) -> Result<Arc<Event<H>>, Rejection<H>> {
        let (before, by_batch) = match self.changed.get(op.key()) {
            Some(changed) => (changed.clone(), true),
            None => (self.memory.get(op.key()), false),
        };
        let reject = |error| Err(Rejection { error, by_batch });
        let revision = self.last + 1;
        let event = match (op, before) {
            (Op::Create { .. }, Some(current)) => return reject(WriteError::Exists(current)),
            (Op::Update { .. } | Op::Delete { .. }, None) => return reject(WriteError::Missing),
            (Op::Update { expected, .. } | Op::Delete { expected, .. }, Some(current))
                if current.modified != expected =>
            {
                return reject(WriteError::Stale(current));
            }
            (Op::Create { key, value, head }, None) => {
                let after = Record {
                    key: key.into(),
                    value,
                    created: revision,
                    modified: revision,
                    head,
                };
                written(None, after)
            }
            (Op::Update { value, head, .. }, Some(before)) => {
                let after = Record {
                    key: Arc::clone(&before.key),
                    value,
                    created: before.created,
                    modified: revision,
                    head,
                };
                written(Some(before), after)
            }
            (Op::Delete { .. }, Some(before)) => Event {
                revision,
                key: Arc::clone(&before.key),
                before: Some(before),
                after: None,
            },
        };
        self.last = revision;
        self.changed
            .insert(Arc::clone(&event.key), event.after.clone());
        Ok(Arc::new(event))
    }
}

/// A record that was created or updated.
fn written<H>(before: Option<Arc<Record<H>>>, after: Record<H>) -> Event<H> {
    Event {
        revision: after.modified,
        key: Arc::clone(&after.key),
        before,
        after: Some(Arc::new(after)),
    }
}

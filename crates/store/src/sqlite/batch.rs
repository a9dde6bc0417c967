//! Decides which writes of a batch hold, each against memory and the writes before it in the batch.
//!
//! Pure decisions: nothing here is visible to anyone before the writer publishes it.

use std::collections::HashMap;
use std::sync::Arc;

use super::queue::Request;
use crate::error::WriteError;
use crate::memory::Memory;
use crate::record::{Event, Op, Record, Revision, Written};

type Answer<H> = tokio::sync::oneshot::Sender<Result<Written<H>, WriteError<H>>>;

/// Why a write does not hold, and whether only the batch itself says so.
struct Refusal<H> {
    error: WriteError<H>,
    by_batch: bool,
}

/// A batch with every decision made.
pub(super) struct Batch<H> {
    /// One event per accepted write, in revision order.
    pub(super) events: Vec<Arc<Event<H>>>,
    accepted: Vec<(Answer<H>, Written<H>)>,
    refused: Vec<(Answer<H>, Refusal<H>)>,
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
            refused: Vec::new(),
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
                Err(refusal) => batch.refused.push((answer, refusal)),
            }
        }
        batch
    }

    /// The last revision given out.
    pub(super) fn last(&self) -> Option<Revision> {
        self.events.last().map(|event| event.revision)
    }

    /// Tells all callers what was decided.
    pub(super) fn answer(self) {
        // A send fails only when the caller has gone away; the write stands all the same.
        for (answer, written) in self.accepted {
            drop(answer.send(Ok(written)));
        }
        for (answer, refusal) in self.refused {
            drop(answer.send(Err(refusal.error)));
        }
    }

    /// Tells all callers that the disk refused. Refusals that hold without the batch stay as they
    /// are. Deletes are given back for an attempt of their own, unless there was nothing else.
    pub(super) fn fail(self, reason: &str) -> Vec<Request<H>> {
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
                drop(answer.send(Err(WriteError::Unavailable(reason.to_owned()))));
            }
        }
        for (answer, Refusal { error, by_batch }) in self.refused {
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
    /// What the batch has made of the keys it touched.
    changed: HashMap<Arc<str>, Option<Arc<Record<H>>>>,
    last: Revision,
}

impl<H: Send + Sync + 'static> Staging<'_, H> {
    fn stage(&mut self, op: Op<H>) -> Result<Arc<Event<H>>, Refusal<H>> {
        let (before, by_batch) = match self.changed.get(op.key()) {
            Some(changed) => (changed.clone(), true),
            None => (self.memory.get(op.key()), false),
        };
        let refuse = |error| Err(Refusal { error, by_batch });
        let revision = self.last + 1;
        let event = match (op, before) {
            (Op::Create { .. }, Some(current)) => return refuse(WriteError::Exists(current)),
            (Op::Update { .. } | Op::Delete { .. }, None) => return refuse(WriteError::Missing),
            (Op::Update { expected, .. } | Op::Delete { expected, .. }, Some(current))
                if current.modified != expected =>
            {
                return refuse(WriteError::Stale(current));
            }
            (Op::Create { key, value, head }, None) => {
                let (created, modified) = (revision, revision);
                let key: Arc<str> = key.into();
                let after = Record {
                    key: Arc::clone(&key),
                    value,
                    created,
                    modified,
                    head,
                };
                Event {
                    revision,
                    key,
                    before: None,
                    after: Some(Arc::new(after)),
                }
            }
            (Op::Update { value, head, .. }, Some(before)) => {
                let key = Arc::clone(&before.key);
                let (created, modified) = (before.created, revision);
                let after = Record {
                    key: Arc::clone(&key),
                    value,
                    created,
                    modified,
                    head,
                };
                Event {
                    revision,
                    key,
                    before: Some(before),
                    after: Some(Arc::new(after)),
                }
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

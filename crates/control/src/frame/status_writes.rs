//! Writes of statuses, repeated with backoff until one succeeds or its object has changed.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{Failures, Policy};
use kennel_client::write::{Call, Writer};
use kennel_types::Identity;
use serde_json::Value;

use super::{Context, Controller};

/// Before a status whose write failed is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(10));

/// See the [module](self).
pub struct StatusWrites {
    /// The kind, for the log.
    what: &'static str,
    writer: Writer,
    /// By uid.
    failures: Failures<Arc<str>>,
}

/// What happened to the write of an object's status. It carries the object's uid.
pub enum StatusWrite {
    Written(Arc<str>),
    Failed(Arc<str>),
    RetryDue(Arc<str>),
}

/// What to do for the object with this uid.
pub enum Next {
    /// Its status may be written again when it changes.
    Rest(Arc<str>),
    /// Its status has to be computed and written again.
    Repeat(Arc<str>),
}

impl StatusWrites {
    /// `what` is the kind, for the log.
    pub fn new(what: &'static str, writer: Writer) -> Self {
        Self {
            what,
            writer,
            failures: Failures::new(RETRY),
        }
    }

    /// Replaces the status of an object. `path` is that of its subresource.
    pub fn start<C>(&self, id: Identity, path: String, object: &Value, cx: &mut Context<C>)
    where
        C: Controller,
        C::Outcome: From<StatusWrite>,
    {
        let (writer, what) = (self.writer.clone(), self.what);
        let call = Call::replace(path, object);
        cx.spawn(async move {
            let outcome = match writer.send(&call).await {
                Ok(_) => StatusWrite::Written(id.uid),
                // Its deletion or newer version arrives as an event.
                Err(failure) if failure.is(404) || failure.is(409) => StatusWrite::Written(id.uid),
                Err(failure) => {
                    let Identity {
                        namespace, name, ..
                    } = &id;
                    tracing::warn!(
                        "writing the status of {what} {namespace}/{name} failed: {failure}"
                    );
                    StatusWrite::Failed(id.uid)
                }
            };
            outcome.into()
        });
    }

    /// `None`: nothing until the retry is due.
    pub fn completed<C>(&mut self, outcome: StatusWrite, cx: &mut Context<C>) -> Option<Next>
    where
        C: Controller,
        C::Outcome: From<StatusWrite>,
    {
        match outcome {
            StatusWrite::Written(uid) => {
                self.failures.reset(&uid);
                Some(Next::Rest(uid))
            }
            StatusWrite::Failed(uid) => {
                let delay = self.failures.next_delay(uid.clone());
                cx.after(delay, StatusWrite::RetryDue(uid).into());
                None
            }
            StatusWrite::RetryDue(uid) => Some(Next::Repeat(uid)),
        }
    }

    /// The object is gone.
    pub fn forget(&mut self, uid: &str) {
        self.failures.reset(uid);
    }
}

//! The audit log: one event for every mutating request, every read of a secret, and every log, exec, attach,
//! port-forward or proxy, whether it was allowed or not.
//!
//! ```text
//!  request ─▶ PendingEvent ──completed or dropped──▶ queue ──▶ writer thread ─▶ line ─▶ file
//!                                        rate_limit: refused unauthenticated requests beyond a rate are only counted
//! ```
//!
//! A request pays for a few clones and a push; the writer thread does the rest. Requests never wait
//! for the log and never fail because of it: the queue is bounded, events that cannot be written are
//! counted, and the log reports the count as soon as it can be written again. It never contains
//! bodies, nor the messages of errors, which may quote them; the annotations of Pod Security admission name
//! containers and volumes.

mod file;
mod line;
mod options;
mod pending;
mod queue;
mod rate_limit;
mod response;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use tokio_util::sync::CancellationToken;

pub use file::OpenError;
pub use options::{Bytes, DEFAULT_MAX_FILES, DEFAULT_MAX_SIZE, Options, Target};
pub(crate) use pending::PendingEvent;

use crate::request::{Caller, path};
use queue::Queue;

/// How long a stopping server waits for the writer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Audit {
    running: Option<Running>,
}

struct Running {
    queue: Arc<Queue>,
    /// Cancelled when the writer thread has ended.
    ended: CancellationToken,
}

impl Running {
    /// Starts a thread that runs `write` until the queue is closed.
    fn start(queue: Arc<Queue>, write: impl FnOnce() + Send + 'static) -> std::io::Result<Self> {
        let ended = CancellationToken::new();
        let end = End {
            queue: Arc::clone(&queue),
            ended: ended.clone(),
        };
        let run = move || {
            let _end = end;
            write();
        };
        let thread = std::thread::Builder::new().name("audit-writer".into());
        drop(thread.spawn(run)?);
        Ok(Self { queue, ended })
    }
}

/// Dropped when the writer thread ends, also by a panic.
struct End {
    queue: Arc<Queue>,
    ended: CancellationToken,
}

impl Drop for End {
    fn drop(&mut self) {
        let lost = self.queue.abandon();
        if std::thread::panicking() {
            tracing::error!("the writer of the audit log panicked: at least {lost} lines are lost");
        }
        self.ended.cancel();
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_on = self.running.is_some();
        f.debug_struct("Audit").field("is_on", &is_on).finish()
    }
}

impl Audit {
    /// Opens the log and starts its writer.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let Some(output) = file::Output::open(options)? else {
            return Ok(Self::default());
        };
        let queue = Arc::new(Queue::default());
        let writer = writer::Writer::new(Arc::clone(&queue), output, options.skip_heartbeats);
        let running = Running::start(queue, move || writer.run());
        Ok(Self {
            running: Some(running.map_err(OpenError::Thread)?),
        })
    }

    /// Waits until nothing is written any more: after [`Self::close`], or because the writer panicked. Never, if the log is off.
    pub(crate) async fn ended(&self) {
        match &self.running {
            Some(running) => running.ended.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Begins the event of a request. Only sensitive reads have one.
    pub(crate) fn begin<B>(&self, request: &Request<B>, caller: &Caller) -> PendingEvent {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS];
        match &self.running {
            Some(running)
                if !reads.contains(request.method())
                    || path::is_sensitive(request.uri().path()) =>
            {
                PendingEvent::new(Arc::clone(&running.queue), request, caller)
            }
            _ => PendingEvent::none(),
        }
    }

    /// Lines that could not be written since the start.
    pub(crate) fn lost(&self) -> u64 {
        let running = self.running.as_ref();
        running.map_or(0, |running| running.queue.lost())
    }

    /// Refused unauthenticated requests that were counted and not recorded, since the start.
    pub(crate) fn suppressed(&self) -> u64 {
        let running = self.running.as_ref();
        running.map_or(0, |running| running.queue.suppressed())
    }

    /// Writes the queued events and stops. Events of later requests count as lost.
    pub async fn close(&self) {
        let Some(running) = &self.running else {
            return;
        };
        running.queue.close();
        let ended = running.ended.cancelled();
        if tokio::time::timeout(CLOSE_TIMEOUT, ended).await.is_err() {
            tracing::warn!("timed out writing the last lines of the audit log");
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.queue.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pending::Event;
    use super::*;

    #[tokio::test]
    async fn the_death_of_the_writer_is_noticed_and_what_it_leaves_is_counted() {
        let queue = Arc::new(Queue::default());
        for _ in 0..3 {
            queue.push(Event::example());
        }
        let taken = Arc::clone(&queue);
        let write = move || {
            assert_eq!(taken.take().map(|events| events.len()), Some(3));
            taken.push(Event::example());
            panic!("a defect of the writer");
        };
        let running = Running::start(Arc::clone(&queue), write).unwrap();
        let audit = Audit {
            running: Some(running),
        };
        audit.ended().await;
        assert_eq!(audit.lost(), 4);
        queue.push(Event::example());
        assert_eq!(audit.lost(), 5);
        audit.close().await;
    }
}

//! The audit log: one event for every mutating request, every read of a secret, and every log, exec, attach,
//! port-forward or proxy, whether it was allowed or not.
//!
//! ```text
//!  request ─▶ PendingEvent ──completed or dropped──▶ queue ──▶ writer thread ─▶ line ─▶ file
//!                                        noise: refused unauthenticated requests beyond a rate are only counted
//! ```
//!
//! A request pays for a few clones and a push; the writer thread does the rest. Requests never wait
//! for the log and never fail because of it: the queue is bounded, events that cannot be written are
//! counted, and the log reports the count as soon as it can be written again. It never contains
//! bodies, nor the messages of errors, which may quote them; the annotations of Pod Security admission name
//! containers and volumes.

mod file;
mod line;
mod noise;
mod options;
mod pending;
mod queue;
mod response;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use tokio::sync::oneshot;

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
    /// Resolves when the writer thread has ended.
    done: Mutex<Option<oneshot::Receiver<()>>>,
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
        let (ended, done) = oneshot::channel();
        let writer = writer::Writer::new(Arc::clone(&queue), output, options.skip_heartbeats);
        let run = move || {
            writer.run();
            // The receiver may be gone.
            let _no_receiver = ended.send(());
        };
        let thread = std::thread::Builder::new().name("audit-writer".into());
        let spawned = thread.spawn(run);
        drop(spawned.map_err(OpenError::Thread)?);
        let done = Mutex::new(Some(done));
        Ok(Self {
            running: Some(Running { queue, done }),
        })
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
        let done = running.done.lock().unwrap_or_else(PoisonError::into_inner);
        let done = { done }.take();
        if let Some(done) = done
            && tokio::time::timeout(CLOSE_TIMEOUT, done).await.is_err()
        {
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

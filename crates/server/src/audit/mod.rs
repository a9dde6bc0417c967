//! The audit log: one line for every request that would change something, or opens a shell or a tunnel,
//! whether it was let or not.
//!
//! ```text
//!  request ─▶ Note ──answered, or dropped unanswered──▶ queue ──▶ writer thread ─▶ line ─▶ file
//! ```
//!
//! A request pays for a few clones and a push; what costs time is done by the thread. Requests never
//! wait for the log and never fail because of it: what cannot be written is counted, and the log says
//! how much that was as soon as it can. Bodies are never noted, nor are the words of refusals, which
//! may quote them.

mod file;
mod line;
mod note;
mod options;
mod queue;
mod stored;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use tokio::sync::oneshot;

pub use file::OpenError;
pub(crate) use note::Note;
pub use options::{Bytes, FILES, Options, SIZE, Target};

use crate::request::{Caller, path};
use queue::Queue;

/// How long a stopping server waits for the last lines: long for a disk, short for an operator.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// The audit log of a server.
#[derive(Default)]
pub struct Audit {
    running: Option<Running>,
}

struct Running {
    queue: Arc<Queue>,
    /// Told, or dropped, when the last line is written.
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
            // Nobody may be waiting.
            let _unheard = ended.send(());
        };
        let thread = std::thread::Builder::new().name("audit-writer".into());
        let spawned = thread.spawn(run);
        drop(spawned.map_err(OpenError::Thread)?);
        let done = Mutex::new(Some(done));
        Ok(Self {
            running: Some(Running { queue, done }),
        })
    }

    /// Notes a request that has just come, if it is one that would change something. A web socket is opened by
    /// a GET, and what is done through it is not for reading alone.
    pub(crate) fn note<B>(&self, request: &Request<B>, caller: &Caller) -> Note {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS];
        match &self.running {
            Some(running)
                if !reads.contains(request.method())
                    || path::opens_stream(request.uri().path()) =>
            {
                Note::of(Arc::clone(&running.queue), request, caller)
            }
            _ => Note::nothing(),
        }
    }

    /// How many lines could not be written since the start.
    pub(crate) fn lost(&self) -> u64 {
        let running = self.running.as_ref();
        running.map_or(0, |running| running.queue.lost())
    }

    /// Writes what waits, and ends. Requests that are answered later are counted as lost.
    pub async fn close(&self) {
        let Some(running) = &self.running else {
            return;
        };
        running.queue.close();
        let done = running.done.lock().unwrap_or_else(PoisonError::into_inner);
        let done = { done }.take();
        if let Some(done) = done
            && tokio::time::timeout(CLOSE_PATIENCE, done).await.is_err()
        {
            tracing::warn!("the audit log's last lines could not be written in time");
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

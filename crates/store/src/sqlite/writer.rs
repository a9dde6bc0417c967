//! The writer thread: drains the queue into one transaction, makes the batch visible after the sync, and then
//! answers its callers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use super::batch::{Batch, Failure};
use super::counters::{Counters, add};
use super::database::Database;
use super::directory::Directory;
use super::liveness::Liveness;
use super::queue::{Queue, Request, Work};
use crate::memory::Memory;
use crate::record::{Event, Record, Revision};

/// Writes in one transaction. More would hardly lower the cost of a sync per write, and callers at the
/// front would wait for those behind.
const BATCH_OPS: usize = 1024;

/// Value bytes in one transaction, so that a batch of large values does not grow without bound.
const BATCH_BYTES: usize = 8 << 20;

/// How often expired history is dropped.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct Writer<H: Send + Sync + 'static> {
    pub(super) memory: Arc<Memory<H>>,
    pub(super) queue: Arc<Queue<H>>,
    pub(super) counters: Arc<Counters>,
    pub(super) liveness: Arc<Liveness>,
    pub(super) database: Database,
    pub(super) directory: Directory,
    pub(super) lazy_flush: Duration,
}

/// The writer's state between batches.
struct Progress<H> {
    /// The last assigned revision, visible or not.
    last: Revision,
    /// Lazy records not on disk yet.
    dirty: BTreeMap<Arc<str>, Arc<Record<H>>>,
    flush_at: Option<Instant>,
    expire_at: Instant,
}

/// Closes the queue even if the thread panics.
struct FinishQueue<H>(Arc<Queue<H>>, Arc<Liveness>);

impl<H> Drop for FinishQueue<H> {
    fn drop(&mut self) {
        // First: who waited for `close` must find the writer ended.
        self.1.end();
        self.0.finish();
    }
}

impl<H: Send + Sync + 'static> Writer<H> {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // Dropped last, so that callers of `close` find the directory unlocked.
        let _finish = FinishQueue(Arc::clone(&self.queue), Arc::clone(&self.liveness));
        let mut progress = Progress {
            last: self.memory.revision(),
            dirty: BTreeMap::new(),
            flush_at: None,
            expire_at: Instant::now() + EXPIRE_INTERVAL,
        };
        while let Work::Requests(requests) = self.queue.take(progress.deadline()) {
            for batch in split_into_batches(requests) {
                self.perform(batch, &mut progress);
            }
            self.housekeeping(&mut progress);
            self.liveness.completed_iteration();
        }
        self.shut_down(&mut progress);
    }

    fn perform(&mut self, requests: Vec<Request<H>>, progress: &mut Progress<H>) {
        // Concurrent writes have no order yet, so lazy ones go first and do not wait for the disk.
        let (lazy, synced): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .partition(|request| request.op.is_lazy());
        if !lazy.is_empty() {
            self.perform_lazy(lazy, progress);
        }
        if !synced.is_empty() {
            self.perform_synced(synced, progress);
        }
    }

    fn perform_lazy(&mut self, requests: Vec<Request<H>>, progress: &mut Progress<H>) {
        let batch = Batch::decide(requests, &self.memory, progress.last);
        let Some(last) = batch.last() else {
            return batch.answer();
        };
        match self.database.reserve(last) {
            Ok(committed) => add(&self.counters.batches, usize::from(committed)),
            Err(error) => {
                // Lazy writes are in no transaction yet.
                batch.fail(&self.failed(&error), Failure::Certain);
                return;
            }
        }
        progress.last = last;
        for record in batch.events.iter().filter_map(|event| event.after.as_ref()) {
            progress
                .dirty
                .insert(Arc::clone(&record.key), Arc::clone(record));
        }
        progress
            .flush_at
            .get_or_insert_with(|| Instant::now() + self.lazy_flush);
        add(&self.counters.lazy_writes, batch.events.len());
        self.publish(batch, last);
    }

    fn perform_synced(&mut self, requests: Vec<Request<H>>, progress: &mut Progress<H>) {
        let batch = Batch::decide(requests, &self.memory, progress.last);
        let Some(last) = batch.last() else {
            return batch.answer();
        };
        if let Err(error) = self.database.commit(&batch.events) {
            let failure = if self.database.may_hold_failed_commit() {
                Failure::Uncertain
            } else {
                Failure::Certain
            };
            // What may reappear after a crash keeps its revisions.
            if failure == Failure::Uncertain {
                progress.last = last;
            }
            let deletes = batch.fail(&self.failed(&error), failure);
            // Deletes free space, so they must not fail because other writes of the batch need some.
            if !deletes.is_empty() {
                self.perform_synced(deletes, progress);
            }
            return;
        }
        progress.last = last;
        progress.remove_synced(&batch.events);
        self.liveness.committed();
        add(&self.counters.batches, 1);
        self.publish(batch, last);
        self.checkpoint_if_long();
    }

    fn publish(&self, batch: Batch<H>, last: Revision) {
        add(&self.counters.writes, batch.events.len());
        self.memory.publish(&batch.events, last, Instant::now());
        batch.answer();
    }

    fn checkpoint_if_long(&mut self) {
        if self.database.wants_checkpoint() {
            self.checkpoint();
        }
    }

    fn checkpoint(&mut self) {
        match self.database.checkpoint() {
            Ok(()) => add(&self.counters.checkpoints, 1),
            // Nothing is lost: the log stays, and the next checkpoint copies it.
            Err(error) => tracing::warn!("{}", self.error_text(&error)),
        }
    }

    fn housekeeping(&mut self, progress: &mut Progress<H>) {
        let now = Instant::now();
        if progress.flush_at.is_some_and(|due| due <= now) {
            self.flush(progress, now);
        }
        if progress.expire_at <= now {
            self.memory.expire(now);
            progress.expire_at = now + EXPIRE_INTERVAL;
            self.commit_if_asked();
        }
    }

    /// Finds out whether the disk takes writes, for health checks.
    fn commit_if_asked(&mut self) {
        if !self.liveness.wants_commit() {
            return;
        }
        match self.database.commit_nothing() {
            Ok(()) => {
                self.liveness.committed();
                add(&self.counters.batches, 1);
            }
            Err(error) => drop(self.failed(&error)),
        }
    }

    /// Notes a failed commit. Returns its text.
    fn failed(&self, error: &rusqlite::Error) -> String {
        let text = self.error_text(error);
        self.liveness.failed(&text);
        text
    }

    fn flush(&mut self, progress: &mut Progress<H>, now: Instant) {
        match self.database.commit_lazy(progress.dirty.values()) {
            Ok(()) => {
                self.liveness.committed();
                add(&self.counters.batches, 1);
                progress.dirty.clear();
                progress.flush_at = None;
                self.checkpoint_if_long();
            }
            Err(error) => {
                let text = self.failed(&error);
                tracing::warn!("lazy writes stay in memory for now: {text}");
                progress.flush_at = Some(now + self.lazy_flush);
            }
        }
    }

    fn shut_down(mut self, progress: &mut Progress<H>) {
        if !progress.dirty.is_empty() {
            self.flush(progress, Instant::now());
        }
        self.memory.close();
        let path = self.database.path().to_owned();
        if let Err(error) = self.database.close(progress.last) {
            tracing::warn!("closing {}: {error}", path.display());
        }
        drop(self.directory);
    }

    fn error_text(&self, error: &rusqlite::Error) -> String {
        let file = self.database.path().display();
        if is_full(error) {
            format!("no space left on the disk of {file}")
        } else {
            format!("cannot write {file}: {error}")
        }
    }
}

impl<H> Progress<H> {
    fn deadline(&self) -> Instant {
        self.flush_at
            .map_or(self.expire_at, |flush_at| flush_at.min(self.expire_at))
    }

    /// A synced write of a key supersedes its lazy one.
    fn remove_synced(&mut self, events: &[Arc<Event<H>>]) {
        if !self.dirty.is_empty() {
            for event in events {
                self.dirty.remove(&event.key);
            }
        }
        if self.dirty.is_empty() {
            self.flush_at = None;
        }
    }
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

fn split_into_batches<H>(requests: Vec<Request<H>>) -> Vec<Vec<Request<H>>> {
    let mut batches: Vec<Vec<Request<H>>> = Vec::new();
    let mut bytes = 0;
    for request in requests {
        let more = request.op.value_bytes();
        let full = bytes + more > BATCH_BYTES;
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH_OPS && !full => {
                bytes += more;
                batch.push(request);
            }
            _ => {
                bytes = more;
                batches.push(vec![request]);
            }
        }
    }
    batches
}

//! The embedded engine: memory for reads, one SQLite file for durability.

mod batch;
mod check;
mod checksum;
mod counters;
mod damaged;
mod database;
mod directory;
mod liveness;
mod load;
mod log_check;
mod migrate;
mod offline;
mod options;
mod queue;
mod reseal;
mod schema;
mod transfer;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

pub use self::database::DATABASE_FILE;
pub use self::directory::{Directory, LOCK_FILE};
pub use self::log_check::LogDamage;
pub use self::migrate::SCHEMA_VERSION;
pub use self::offline::{Offline, RawValue, ValueReport};
pub use self::options::Options;
pub(crate) use self::transfer::{NewDatabase, StoredRow};

use self::counters::Counters;
use self::database::Database;
use self::liveness::Liveness;
use self::queue::{Queue, Request};
use self::writer::Writer;
use crate::DamagedValue;
use crate::api::Store;
use crate::error::{Compacted, DecodeError, OpenError, RangeAtError, WriteError};
use crate::health::WriterHealth;
use crate::memory::{Memory, Watch};
use crate::record::{History, Op, Page, Record, Revision, Written};
use crate::stats::Stats;

/// A store in one directory.
pub struct SqliteStore<H: Send + Sync + 'static> {
    memory: Arc<Memory<H>>,
    queue: Arc<Queue<H>>,
    counters: Arc<Counters>,
    damaged: Vec<DamagedValue>,
    dir: PathBuf,
    liveness: Arc<Liveness>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl<H: Send + Sync + 'static> SqliteStore<H> {
    /// Opens or creates the store in `options.dir`. `decode` parses the head of each stored value,
    /// once per record and on several threads. A value that cannot be read is set aside: see [`Store::damaged`].
    pub fn open(
        options: Options,
        decode: impl Fn(&str, &Bytes) -> Result<H, DecodeError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let directory = Directory::acquire(&options.dir)?;
        let mut database = Database::open(&options)?;
        let load::Loaded {
            records,
            stale,
            damaged,
        } = load::load(&database, &decode)?;
        let failed = |source| OpenError::Database {
            path: options.dir.join(DATABASE_FILE),
            source,
        };
        damaged::set_aside(database.connection_mut(), &damaged).map_err(failed)?;
        let damaged = damaged::list(database.connection()).map_err(failed)?;
        damaged::log(&damaged, database.path());
        reseal::reseal(&mut database, &stale).map_err(failed)?;
        let revision = database.revision();
        let memory = Memory::new(&options.collections, records, revision, options.limits());
        let memory = Arc::new(memory);
        let queue = Arc::new(Queue::new(options.write_queue));
        let counters = Arc::new(Counters::default());
        let liveness = Arc::new(Liveness::new());
        let writer = Writer {
            liveness: Arc::clone(&liveness),
            memory: Arc::clone(&memory),
            queue: Arc::clone(&queue),
            counters: Arc::clone(&counters),
            database,
            directory,
            lazy_flush: options.lazy_flush,
        };
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::File {
                path: options.dir.clone(),
                source,
            })?;
        Ok(Arc::new(Self {
            memory,
            queue,
            counters,
            damaged,
            dir: options.dir,
            liveness,
            writer: Mutex::new(Some(thread)),
        }))
    }
}

impl<H: Send + Sync + 'static> Drop for SqliteStore<H> {
    fn drop(&mut self) {
        self.queue.close(None);
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the store's writer thread had panicked");
        }
    }
}

impl<H: Send + Sync + 'static> Store<H> for SqliteStore<H> {
    fn revision(&self) -> Revision {
        self.memory.revision()
    }

    fn get(&self, key: &str) -> Option<Arc<Record<H>>> {
        self.memory.get(key)
    }

    fn range(&self, prefix: &str, after: Option<&str>, limit: Option<usize>) -> Page<H> {
        self.memory.range(prefix, after, limit)
    }

    fn range_at(
        &self,
        prefix: &str,
        revision: Revision,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Page<H>, RangeAtError> {
        self.memory.range_at(prefix, revision, after, limit)
    }

    fn write(&self, op: Op<H>) -> BoxFuture<'static, Result<Written<H>, WriteError<H>>> {
        let queue = Arc::clone(&self.queue);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            queue
                .push(Request { op, answer })
                .await
                .map_err(|queue::Closed| WriteError::Closed)?;
            answered.await.unwrap_or(Err(WriteError::Closed))
        })
    }

    fn history(&self, prefix: &str, after: Revision) -> Result<History<H>, Compacted> {
        self.memory.history(prefix, after)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch<H>, Compacted> {
        self.memory.watch(prefix, after)
    }

    /// Of this and of earlier starts; their bytes stay in the file for [`Offline::raw`].
    fn damaged(&self) -> &[DamagedValue] {
        &self.damaged
    }

    fn is_set_aside(&self, key: &str) -> bool {
        let found_at_start = self.damaged.iter().any(|value| value.key == key);
        // A file that cannot be read has discarded nothing.
        found_at_start && Offline::holds_damaged(&self.dir, key).unwrap_or(true)
    }

    fn health(&self) -> WriterHealth {
        self.liveness.health(Instant::now())
    }

    /// Finishes queued writes, flushes lazy ones, and releases the directory.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (done, closed) = oneshot::channel();
            self.queue.close(Some(done));
            // An error means that the writer has already ended.
            closed.await.unwrap_or_default();
        })
    }

    /// Waits until the writer has ended: after [`Store::close`], or because it panicked.
    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut ended = self.liveness.ended();
            // The sender lives as long as we do.
            let _ended = ended.wait_for(|ended| *ended).await;
        })
    }

    fn stats(&self) -> Option<Stats> {
        Some(Stats {
            bytes: self.memory.state_bytes() as u64,
            ..self.counters.read()
        })
    }
}

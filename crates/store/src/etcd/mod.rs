//! The engine on etcd: memory for reads, fed by one watch; a transaction for each write.
//!
//! ```text
//!  callers ──write──▶ transaction: key unchanged, our claim ──▶ etcd
//!                                                               │ one watch over all keys
//!  callers ◀──get, range──── memory: index · event ring · watchers ◀─┘
//! ```
//!
//! A read of memory is linearizable after [`Store::confirm`]. One server at a time uses an etcd: it holds a [claim] that every write
//! compares.

mod claim;
mod client;
mod compact;
mod confirm;
mod connection;
mod direct;
mod error;
mod feed;
mod health;
mod history;
mod lease;
mod load;
pub mod migrate;
mod options;
mod proto;
mod raise;
mod shared;
mod shown;
mod tls;
mod under_way;
mod write;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use self::error::EtcdError;
pub use self::options::{Endpoints, EndpointsError, EtcdOptions, EtcdTls, EtcdUser, Holder};

use self::load::{Loaded, Reader};
use self::shared::{Core, SetAside, WRITES_UNDER_WAY};
use crate::DamagedValue;
use crate::api::Store;
use crate::error::{Compacted, DecodeError, RangeAtError, Unconfirmed, WriteError};
use crate::health::WriterHealth;
use crate::memory::{Memory, Watch};
use crate::record::{Durability, History, Op, Page, Record, Revision, Written};
use crate::stats::Stats;

/// How long closing waits for the writes under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// `kennel doctor` works on SQLite alone.
const REPAIR: &str = "docs/guides/etcd.md says how to repair or discard";

/// A store on etcd.
pub struct EtcdStore<H: Send + Sync + 'static> {
    core: Arc<Core<H>>,
    damaged: Vec<DamagedValue>,
    /// The task that holds the claim.
    claim: Mutex<Option<JoinHandle<()>>>,
}

impl<H: Send + Sync + 'static> EtcdStore<H> {
    /// Claims etcd, loads all objects, and follows it from there. Must be called within a runtime. `decode` parses the head of each
    /// value; one that cannot be read is set aside: see [`Store::damaged`].
    pub async fn open(
        options: EtcdOptions,
        decode: impl Fn(&str, &Bytes) -> Result<H, DecodeError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, EtcdError> {
        let client = client::Client::new(&options)?;
        let reader = Reader {
            seal: options.seal.clone(),
            decode: Arc::new(decode),
            prefix: options.prefix.as_str().into(),
            ignored: options.ignored.as_slice().into(),
        };
        let held = claim::acquire(&client, &options.holder).await?;
        migrate::refuse_half_migrated(&client, held).await?;
        history::check_note(&client, options.note.as_deref()).await?;
        let Loaded {
            cluster,
            revision,
            records,
            stale,
            damaged,
        } = load::load(&client, &reader).await?;
        let memory = Memory::new(&options.collections, records, revision, options.limits);
        let core = Arc::new(Core::new(memory, client, options, reader, held.revision));
        core.cluster.store(cluster, Ordering::Release);
        core.served(revision);
        *core.set_aside() = damaged.iter().cloned().map(SetAside::entry).collect();
        tokio::spawn(feed::run(Arc::clone(&core)));
        tokio::spawn(confirm::run_rounds(Arc::clone(&core)));
        tokio::spawn(confirm::upkeep(Arc::clone(&core)));
        if let Some(interval) = core.options.compact_every {
            tokio::spawn(compact::run(Arc::clone(&core), interval));
        }
        if !stale.is_empty() {
            tokio::spawn(reseal(Arc::clone(&core), stale));
        }
        let claim = tokio::spawn(claim::keep(Arc::clone(&core), held));
        Ok(Arc::new(Self {
            core,
            damaged: damaged.into_iter().map(|(value, _)| value).collect(),
            claim: Mutex::new(Some(claim)),
        }))
    }
}

impl<H: Send + Sync + 'static> Drop for EtcdStore<H> {
    fn drop(&mut self) {
        self.core.end();
    }
}

impl<H> Core<H> {
    /// Nothing can be stored any more: ends the tasks and all watches.
    fn end(&self) {
        self.stop.cancel();
        self.permits.close();
        self.memory.close();
        self.shown.give_up();
        self.monitor.end();
    }
}

/// Stores values in the form of the current seal.
async fn reseal<H: Send + Sync + 'static>(core: Arc<Core<H>>, stale: Vec<Arc<Record<H>>>) {
    for record in stale {
        let Ok(head) = (core.reader.decode)(&record.key, &record.value) else {
            continue;
        };
        let op = Op::Update {
            key: record.key.to_string(),
            expected: record.modified,
            value: record.value.clone(),
            head,
            durability: Durability::Synced,
        };
        match write::perform(Arc::clone(&core), op).await {
            // One that was changed meanwhile has the current form.
            Ok(_) | Err(WriteError::Stale(_) | WriteError::Missing) => {}
            Err(WriteError::Closed) => return,
            Err(error) => {
                tracing::warn!("{} keeps its old encryption: {error}", record.key);
            }
        }
    }
}

impl<H: Send + Sync + 'static> Store<H> for EtcdStore<H> {
    fn revision(&self) -> Revision {
        self.core.memory.revision()
    }

    fn confirm(&self) -> BoxFuture<'static, Result<Revision, Unconfirmed>> {
        Box::pin(confirm::confirm(Arc::clone(&self.core)))
    }

    fn newest(&self, prefix: &str) -> BoxFuture<'static, Result<Option<Page<H>>, Unconfirmed>> {
        Box::pin(direct::newest(Arc::clone(&self.core), prefix.to_owned()))
    }

    fn reached(&self, revision: Revision, within: Duration) -> BoxFuture<'static, ()> {
        let (core, deadline) = (Arc::clone(&self.core), Instant::now() + within);
        Box::pin(async move {
            // The caller looks where memory is.
            let _is_shown = core.shown.wait(revision, deadline).await;
        })
    }

    fn fresh(&self) -> Result<(), Unconfirmed> {
        self.core.monitor.fresh()
    }

    fn get(&self, key: &str) -> Option<Arc<Record<H>>> {
        self.core.memory.get(key)
    }

    fn range(&self, prefix: &str, after: Option<&str>, limit: Option<usize>) -> Page<H> {
        self.core.memory.range(prefix, after, limit)
    }

    fn range_at(
        &self,
        prefix: &str,
        revision: Revision,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Page<H>, RangeAtError> {
        self.core.memory.range_at(prefix, revision, after, limit)
    }

    fn write(&self, op: Op<H>) -> BoxFuture<'static, Result<Written<H>, WriteError<H>>> {
        let core = Arc::clone(&self.core);
        Box::pin(async move {
            // A task of its own: dropping this future does not cancel the write.
            let writing = tokio::spawn(write::perform(core, op));
            let failed = |_| WriteError::Unknown("the write was interrupted".to_owned());
            writing.await.map_err(failed)?
        })
    }

    fn history(&self, prefix: &str, after: Revision) -> Result<History<H>, Compacted> {
        self.core.memory.history(prefix, after)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch<H>, Compacted> {
        self.core.memory.watch(prefix, after)
    }

    fn damaged(&self) -> &[DamagedValue] {
        &self.damaged
    }

    fn is_set_aside(&self, key: &str) -> bool {
        self.core.set_aside().contains_key(key)
    }

    fn set_aside(&self) -> Vec<DamagedValue> {
        let set_aside = self.core.set_aside();
        set_aside.values().map(|one| one.damage.clone()).collect()
    }

    fn set_aside_since_start(&self, key: &str) -> Option<DamagedValue> {
        let set_aside = self.core.set_aside();
        set_aside.get(key).map(|one| one.damage.clone())
    }

    fn read_only(&self, key: &str) -> Option<String> {
        self.core.options.seal.as_ref()?.read_only(key)
    }

    fn repair(&self) -> &'static str {
        REPAIR
    }

    fn health(&self) -> WriterHealth {
        self.core.monitor.health()
    }

    fn expires_keys(&self) -> bool {
        !self.core.options.expiring.is_empty()
    }

    /// Finishes the writes under way and releases the claim.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let all = u32::try_from(WRITES_UNDER_WAY).unwrap_or(u32::MAX);
            let finished = self.core.permits.acquire_many(all);
            // Later ones are answered by their own deadlines.
            let _finished = tokio::time::timeout(CLOSE_TIMEOUT, finished).await;
            confirm::write_note(&self.core, true).await;
            self.core.end();
            let claim = self.claim.lock().await.take();
            if let Some(claim) = claim
                && let Err(error) = claim.await
            {
                tracing::error!("the task of the claim on etcd failed: {error}");
            }
        })
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut ended = self.core.monitor.ended();
            // The sender lives as long as we do.
            let _ended = ended.wait_for(|ended| *ended).await;
        })
    }

    fn stats(&self) -> Option<Stats> {
        let counters = &self.core.counters;
        let read =
            |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed) as u64;
        Some(Stats {
            writes: read(&counters.writes),
            lazy_writes: read(&counters.lazy_writes),
            batches: read(&counters.batches),
            bytes: self.core.memory.state_bytes() as u64,
            ..Stats::default()
        })
    }
}

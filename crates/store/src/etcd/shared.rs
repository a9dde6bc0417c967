//! What the tasks of a store on etcd share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::REPAIR;
use super::client::Client;
use super::confirm::Rounds;
use super::health::Monitor;
use super::history::Note;
use super::lease::Leases;
use super::load::Reader;
use super::options::EtcdOptions;
use super::proto::{KeyValue, ResponseHeader, unsigned};
use super::shown::Shown;
use super::under_way::UnderWay;
use crate::DamagedValue;
use crate::error::DecodeError;
use crate::memory::Memory;
use crate::record::{Record, Revision};
use crate::seal::SealError;

/// The ranges that may be read from etcd at once because memory lags; further readers wait.
const DIRECT_READS: usize = 4;
/// The writes that may be under way at once; further callers wait. At 3 KiB a write, 3 MB.
pub(super) const WRITES_UNDER_WAY: usize = 1_024;

pub(super) type Decode<H> = dyn Fn(&str, &Bytes) -> Result<H, DecodeError> + Send + Sync;

pub(super) struct Core<H> {
    pub(super) memory: Arc<Memory<H>>,
    pub(super) client: Client,
    pub(super) options: EtcdOptions,
    pub(super) reader: Reader<H>,
    pub(super) shown: Shown<H>,
    pub(super) under_way: UnderWay<H>,
    pub(super) leases: Leases,
    pub(super) rounds: Rounds,
    pub(super) monitor: Monitor,
    pub(super) counters: Counters,
    /// The revision of our claim on etcd, which every write compares.
    pub(super) claim: AtomicU64,
    /// A write found the claim gone.
    pub(super) claim_lost: Notify,
    /// The id of the cluster that memory is of.
    pub(super) cluster: AtomicU64,
    /// The last revision that any caller was told.
    served: AtomicU64,
    /// What the note of [`EtcdOptions::note`] says.
    pub(super) noted: tokio::sync::Mutex<Option<Note>>,
    /// Whether the watch has found that etcd has the history that memory is of.
    pub(super) recognised: watch::Sender<bool>,
    /// Memory is of another history than etcd: load it anew.
    pub(super) reload: Notify,
    /// The watch delivers nothing: start another one.
    pub(super) restart_watch: Notify,
    /// Values that cannot be read.
    set_aside: Mutex<HashMap<String, SetAside>>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) direct_reads: Semaphore,
    pub(super) stop: CancellationToken,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) writes: AtomicUsize,
    pub(super) lazy_writes: AtomicUsize,
    pub(super) batches: AtomicUsize,
}

pub(super) fn add(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A value that cannot be read.
pub(super) struct SetAside {
    pub(super) revision: Revision,
    pub(super) damage: DamagedValue,
}

impl SetAside {
    /// Logs it, and returns it with its key.
    pub(super) fn entry((damage, revision): (DamagedValue, Revision)) -> (String, Self) {
        let DamagedValue { key, reason, .. } = &damage;
        tracing::error!(
            "the value of {key} at revision {revision} is set aside: {reason}; {REPAIR} it"
        );
        (key.clone(), Self { revision, damage })
    }
}

/// Why one value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("{0}")]
    Sealed(SealError),
    #[error("it cannot be parsed: {0}")]
    Undecodable(DecodeError),
}

impl<H> Core<H> {
    pub(super) fn set_aside(&self) -> MutexGuard<'_, HashMap<String, SetAside>> {
        self.set_aside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller is told this revision.
    pub(super) fn served(&self, revision: Revision) {
        self.served.fetch_max(revision, Ordering::AcqRel);
    }

    /// Memory was loaded anew: earlier revisions are of no use to clients any more.
    pub(super) fn reset_served(&self, revision: Revision) {
        self.served.store(revision, Ordering::Release);
    }

    /// The last revision that clients may know.
    pub(super) fn last_served(&self) -> Revision {
        let served = self.served.load(Ordering::Acquire);
        served.max(self.memory.revision())
    }

    /// Whether a response is of the history that memory is of, as far as its header tells; `after` is a revision that it follows.
    pub(super) fn is_later(&self, header: Option<&ResponseHeader>, after: Revision) -> bool {
        header.is_some_and(|header| {
            let is_same = header.cluster_id == self.cluster.load(Ordering::Acquire);
            is_same && unsigned(header.revision) >= after
        })
    }
}

impl<H: Send + Sync + 'static> Core<H> {
    /// `claim` is the revision of our claim.
    pub(super) fn new(
        memory: Memory<H>,
        client: Client,
        options: EtcdOptions,
        reader: Reader<H>,
        claim: Revision,
    ) -> Self {
        let memory = Arc::new(memory);
        Self {
            shown: Shown::new(Arc::clone(&memory)),
            memory,
            client,
            options,
            reader,
            under_way: UnderWay::new(),
            leases: Leases::default(),
            rounds: Rounds::default(),
            monitor: Monitor::new(),
            counters: Counters::default(),
            claim: AtomicU64::new(claim),
            claim_lost: Notify::new(),
            cluster: AtomicU64::new(0),
            served: AtomicU64::new(0),
            noted: tokio::sync::Mutex::default(),
            recognised: watch::channel(false).0,
            reload: Notify::new(),
            restart_watch: Notify::new(),
            set_aside: Mutex::default(),
            permits: Arc::new(Semaphore::new(WRITES_UNDER_WAY)),
            direct_reads: Semaphore::new(DIRECT_READS),
            stop: CancellationToken::new(),
        }
    }

    /// The record of a key and value of etcd.
    pub(super) fn record(&self, kv: KeyValue) -> Result<Arc<Record<H>>, Unreadable> {
        let key = String::from_utf8_lossy(&kv.key).into_owned();
        // Nothing is parsed again that memory has.
        if let Some(known) = self.memory.get(&key)
            && known.modified == unsigned(kv.mod_revision)
            && known.created == unsigned(kv.create_revision)
            && self.options.seal.is_none()
            && known.value == kv.value
        {
            return Ok(known);
        }
        self.reader.record(key.into(), kv).map(|(record, _)| record)
    }
}

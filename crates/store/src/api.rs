//! The interface of a storage engine.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::DamagedValue;
use crate::error::{Compacted, RangeAtError, Unconfirmed, WriteError};
use crate::health::WriterHealth;
use crate::memory::Watch;
use crate::record::{History, Op, Page, Record, Revision, Written};
use crate::stats::Stats;

/// Ordered keys with one global revision. Used as `Arc<dyn Store<H>>`.
pub trait Store<H>: Send + Sync + 'static {
    /// The revision of the last write that is committed and visible.
    fn revision(&self) -> Revision;

    /// Waits until memory shows every write that any process had committed to the engine when this was called, and answers a
    /// revision that includes them. Reads of memory after it are linearizable. At once on an engine with one writer.
    fn confirm(&self) -> BoxFuture<'static, Result<Revision, Unconfirmed>> {
        let revision = self.revision();
        Box::pin(std::future::ready(Ok(revision)))
    }

    /// Like [`confirm`](Self::confirm), for a read of the keys that start with `prefix`. Answers none if memory shows them; if memory
    /// does not catch up in time, their records as the engine itself has them.
    fn newest(&self, _prefix: &str) -> BoxFuture<'static, Result<Option<Page<H>>, Unconfirmed>>
    where
        H: 'static,
    {
        let confirmed = self.confirm();
        Box::pin(async move { confirmed.await.map(|_| None) })
    }

    /// Waits until memory shows this revision, even if no event of an object led there, or so much time has passed. On an
    /// engine whose every revision is an event of an object, until then.
    fn reached(&self, _revision: Revision, within: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(within))
    }

    /// Fails if memory has not been confirmed for so long that what derives from it, such as rights, may be stale. Cheap.
    fn fresh(&self) -> Result<(), Unconfirmed> {
        Ok(())
    }

    /// The current record of a key.
    fn get(&self, key: &str) -> Option<Arc<Record<H>>>;

    /// The records whose keys start with `prefix` and are greater than `after`, in key order.
    fn range(&self, prefix: &str, after: Option<&str>, limit: Option<usize>) -> Page<H>;

    /// [`range`](Self::range) as it was at an older revision.
    fn range_at(
        &self,
        prefix: &str,
        revision: Revision,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Page<H>, RangeAtError>;

    /// Performs one compare-and-set write. The future resolves when the write is visible and as
    /// durable as requested. Dropping the future does not cancel the write.
    fn write(&self, op: Op<H>) -> BoxFuture<'static, Result<Written<H>, WriteError<H>>>;

    /// The past events after revision `after` on keys that start with `prefix`.
    fn history(&self, prefix: &str, after: Revision) -> Result<History<H>, Compacted>;

    /// Every event after revision `after` on keys that start with `prefix`: first the past ones, then
    /// live ones, without a gap.
    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch<H>, Compacted>;

    /// The values that were set aside because they could not be read, as the start found them. They are in no range, and
    /// their keys can be created again.
    fn damaged(&self) -> &[DamagedValue] {
        &[]
    }

    /// Whether a value of this key is set aside now: one that was discarded since the start is not. Reads the disk if the
    /// key is one of [`Self::damaged`].
    fn is_set_aside(&self, _key: &str) -> bool {
        false
    }

    /// The values that are set aside now.
    fn set_aside(&self) -> Vec<DamagedValue> {
        let damaged = self.damaged().iter();
        let damaged = damaged.filter(|value| self.is_set_aside(&value.key));
        damaged.cloned().collect()
    }

    /// The value of this key, if the engine sets values aside while it runs and this one is set aside now. Cheap.
    fn set_aside_since_start(&self, _key: &str) -> Option<DamagedValue> {
        None
    }

    /// Why the value of this key must not be updated: another program stored more than this one can read. Cheap.
    fn read_only(&self, _key: &str) -> Option<String> {
        None
    }

    /// Where operators find how to repair what is set aside; a key follows.
    fn repair(&self) -> &'static str {
        "`kennel doctor` on the server says how to repair or discard"
    }

    /// Whether writes can be stored. Cheap: it reads what the engine has noticed.
    fn health(&self) -> WriterHealth {
        WriterHealth::Healthy
    }

    /// Whether the engine itself removes keys whose lifetime has ended, so that its caller must not.
    fn expires_keys(&self) -> bool {
        false
    }

    /// Finishes the writes under way and lets go of the engine. Afterwards, reads still work, writes fail and watches end.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Waits until the engine can store nothing any more: after [`Self::close`], or because it failed for good.
    fn ended(&self) -> BoxFuture<'_, ()>;

    /// None if the engine does not count.
    fn stats(&self) -> Option<Stats> {
        None
    }
}

//! Rewrites values at open that the current seal would store differently: without new revisions and events, and
//! without leaving the old bytes in the file or its log.
//!
//! A crash on the way leaves some values in the old form and some in the new one, both readable; the next
//! open continues. The name of the seal is recorded last.

use std::sync::Arc;

use super::database::Database;
use crate::record::Record;

/// Values rewritten in one transaction, like the writer's batches.
const BATCH_VALUES: usize = 1024;
const BATCH_BYTES: usize = 8 << 20;

/// `stale` are the records that are stored in another form.
pub(super) fn reseal<H>(database: &mut Database, stale: &[Arc<Record<H>>]) -> rusqlite::Result<()> {
    if stale.is_empty() && database.has_current_seal() {
        return Ok(());
    }
    tracing::info!(
        values = stale.len(),
        "rewriting values that are stored with another key or none"
    );
    let mut rest = stale;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch_length(rest));
        database.commit_lazy(batch.iter())?;
        if database.wants_checkpoint() {
            database.checkpoint()?;
        }
        rest = later;
    }
    if database.scrub()? {
        return database.record_seal();
    }
    tracing::warn!(
        "another process reads {}: old values stay in its log until the next start",
        database.path().display()
    );
    Ok(())
}

fn batch_length<H>(records: &[Arc<Record<H>>]) -> usize {
    let mut bytes = 0;
    let fits = |record: &&Arc<Record<H>>| {
        bytes += record.value.len();
        bytes <= BATCH_BYTES
    };
    let candidates = &records[..records.len().min(BATCH_VALUES)];
    candidates.iter().take_while(fits).count().max(1)
}

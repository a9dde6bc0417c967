//! Rewrites at open what is not stored as the present seal would store it: without a new revision,
//! without an event, and without leaving what was there before in the file or its log.
//!
//! A crash on the way leaves some values in the old form and some in the new one, both readable; the next
//! open goes on. What the file is sealed with is noted last, so that nothing is left half done.

use std::sync::Arc;

use super::database::Database;
use crate::record::Record;

/// Values rewritten in one transaction: as many as the writer takes at once.
const BATCH_VALUES: usize = 1024;
/// Bytes rewritten in one transaction.
const BATCH_BYTES: usize = 8 << 20;

/// Brings the file in line with the seal. `stale` are the records that are stored in another form.
pub(super) fn reseal<H>(database: &mut Database, stale: &[Arc<Record<H>>]) -> rusqlite::Result<()> {
    if stale.is_empty() && database.is_sealed_as_wanted() {
        return Ok(());
    }
    tracing::info!(
        values = stale.len(),
        "rewriting what is stored in another form"
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
        return database.note_seal();
    }
    tracing::warn!(
        "another process reads {}: what it held before stays in its log until the next start",
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
    let most = &records[..records.len().min(BATCH_VALUES)];
    most.iter().take_while(fits).count().max(1)
}

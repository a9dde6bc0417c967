//! Reads of etcd itself, for readers of the newest state while memory does not catch up.

use std::sync::Arc;
use std::time::Duration;

use super::confirm::{self, Stale};
use super::error::EtcdError;
use super::load::{self, Parsed};
use super::shared::{Core, SetAside};
use crate::error::Unconfirmed;
use crate::record::{Page, Revision};

/// How long such a read may take, its turn included.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// See [`Store::newest`](crate::Store::newest).
pub(super) async fn newest<H: Send + Sync + 'static>(
    core: Arc<Core<H>>,
    prefix: String,
) -> Result<Option<Page<H>>, Unconfirmed> {
    let (revision, Unconfirmed(behind)) = match confirm::catch_up(&core).await {
        Ok(_) => return Ok(None),
        Err(Stale::Unconfirmed(reason)) => return Err(reason),
        Err(Stale::Behind(revision, reason)) => (revision, reason),
    };
    let read = tokio::time::timeout(READ_TIMEOUT, read(&core, &prefix, revision)).await;
    let page = read
        .unwrap_or(Err(ReadError::Late))
        .map_err(|why| Unconfirmed(format!("{behind}, and reading from etcd failed: {why}")))?;
    core.served(revision);
    Ok(Some(page))
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    #[error("its history was compacted meanwhile")]
    Compacted,
    #[error("it takes too long")]
    Late,
    #[error("the store is closed")]
    Closed,
}

async fn read<H: Send + Sync + 'static>(
    core: &Core<H>,
    prefix: &str,
    revision: Revision,
) -> Result<Page<H>, ReadError> {
    let turn = core.direct_reads.acquire().await;
    let _turn = turn.map_err(|_| ReadError::Closed)?;
    let parsed = load::range(&core.client, &core.reader, prefix, revision).await?;
    let Parsed {
        records, damaged, ..
    } = parsed.ok_or(ReadError::Compacted)?;
    let mut set_aside = core.set_aside();
    for (damage, revision) in damaged {
        // Absence would be believed.
        if !set_aside.contains_key(&damage.key) {
            let (key, one) = SetAside::entry((damage, revision));
            set_aside.insert(key, one);
        }
    }
    Ok(Page {
        revision,
        records,
        remaining: 0,
    })
}

//! Raises etcd's revision, which cannot be set: each write adds one.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use std::time::Duration;

use super::client::Client;
use super::error::CallError;
use super::load;
use super::proto::{CompactionRequest, PutRequest, unsigned};
use crate::record::Revision;

/// How many revisions are added at most: at 7,000 a second, 12 minutes.
pub(super) const RAISE_MAX: Revision = 5_000_000;
/// The key whose writes raise the revision.
const RAISE_KEY: &str = "/kennel/revision";
/// Writes under way at once.
const RAISE_AT_ONCE: usize = 256;
/// After how many of them history is compacted.
const RAISE_STEP: u64 = 50_000;
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Writes until etcd's revision is this one, and compacts history on the way. `told` learns the current revision and the goal.
pub(super) async fn raise(
    client: &Client,
    to: Revision,
    told: impl Fn(Revision, Revision),
) -> Result<(), CallError> {
    loop {
        let at = unsigned(load::newest(client, CALL_TIMEOUT).await?.revision);
        if at >= to {
            return Ok(());
        }
        told(at, to);
        let put = || {
            let put = PutRequest {
                key: RAISE_KEY.into(),
                value: Bytes::new(),
                lease: 0,
            };
            async move { client.call(put, CALL_TIMEOUT).await.map(drop) }
        };
        stream::iter(0..RAISE_STEP.min(to - at))
            .map(|_| put())
            .buffer_unordered(RAISE_AT_ONCE)
            .try_collect::<()>()
            .await?;
        let newest = load::newest(client, CALL_TIMEOUT).await?;
        let compaction = CompactionRequest {
            revision: newest.revision - 1,
        };
        match client.call(compaction, CALL_TIMEOUT).await {
            Ok(_) | Err(CallError::Compacted) => {}
            Err(error) => return Err(error),
        }
    }
}

//! Compacts etcd's history, by upstream's convention: of all servers that use one etcd, that whose comparison with the version of
//! one key succeeds compacts up to the revision that it saw an interval before.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::error::CallError;
use super::load::COMPACT_KEY;
use super::proto::{
    CompactionRequest, Compare, PutRequest, RangeRequest, RequestOp, TARGET_VERSION, TxnRequest,
};
use super::shared::Core;

const CALL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Default)]
struct Progress {
    /// The version of the key.
    version: i64,
    /// Etcd's revision an interval ago.
    revision: i64,
}

pub(super) async fn run<H: Send + Sync + 'static>(core: Arc<Core<H>>, interval: Duration) {
    let mut progress = Progress::default();
    loop {
        match turn(&core, progress).await {
            Ok(next) => progress = next,
            Err(error) => tracing::warn!("cannot compact etcd's history: {error}"),
        }
        tokio::select! {
            () = core.stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
    }
}

async fn turn<H>(core: &Core<H>, last: Progress) -> Result<Progress, CallError> {
    let compare = Compare {
        target: TARGET_VERSION,
        key: COMPACT_KEY.into(),
        version: Some(last.version),
        mod_revision: None,
    };
    let put = PutRequest {
        key: COMPACT_KEY.into(),
        value: Bytes::from(last.revision.to_string()),
        lease: 0,
    };
    let read = RangeRequest {
        key: COMPACT_KEY.into(),
        ..RangeRequest::default()
    };
    let request = TxnRequest {
        compare: vec![compare],
        success: vec![RequestOp {
            put: Some(put),
            ..RequestOp::default()
        }],
        failure: vec![RequestOp {
            range: Some(read),
            ..RequestOp::default()
        }],
    };
    let response = core.client.transact(request, CALL_TIMEOUT).await?;
    let revision = response.header.map_or(0, |header| header.revision);
    if !response.succeeded {
        // Another server was first, or this one has just started.
        let range = response.responses.into_iter().find_map(|one| one.range);
        let kv = range.and_then(|range| range.kvs.into_iter().next());
        let version = kv.map_or(0, |kv| kv.version);
        return Ok(Progress { version, revision });
    }
    if last.revision > 0 {
        let request = CompactionRequest {
            revision: last.revision,
        };
        match core.client.call(request, CALL_TIMEOUT).await {
            Ok(_) => tracing::debug!("compacted etcd's history up to {}", last.revision),
            // By somebody else, further.
            Err(CallError::Compacted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Progress {
        version: last.version + 1,
        revision,
    })
}

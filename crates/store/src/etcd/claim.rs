//! The claim of one server on etcd: a key under a lease, which every write compares. So a second server is refused at its start,
//! and a server that was stopped for longer than the lease cannot write after another one has started.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::client::Client;
use super::error::{CallError, EtcdError};
use super::options::Holder;
use super::proto::{
    Compare, KeyValue, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RangeRequest, RequestOp,
    TARGET_MOD, TxnRequest, unsigned,
};
use super::shared::Core;
use crate::record::Revision;

/// The key of the claim.
pub(super) const CLAIM_KEY: &str = "/kennel/server";
/// The lifetime of a claim that is not renewed.
const CLAIM_SECONDS: u64 = 15;
/// How often it is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(4);
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that has just ended may give its claim back while the next one takes it over.
const ATTEMPTS: usize = 5;
/// How long a server that stops waits until its claim is gone.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
pub(super) struct Claim {
    pub(super) lease: i64,
    pub(super) revision: Revision,
}

/// Claims etcd, unless another server has.
pub(super) async fn acquire(client: &Client, holder: &Holder) -> Result<Claim, EtcdError> {
    for _ in 0..ATTEMPTS {
        if let Some(claim) = attempt(client, holder).await? {
            return Ok(claim);
        }
    }
    let reason = "its claims come and go";
    Err(EtcdError::Unreachable(reason.to_owned()))
}

/// `None`: an earlier claim was given back meanwhile.
async fn attempt(client: &Client, holder: &Holder) -> Result<Option<Claim>, EtcdError> {
    let found = read(client).await.map_err(unreachable)?;
    if let Some(other) = &found {
        check(other, holder)?;
    }
    let seconds = i64::try_from(CLAIM_SECONDS).unwrap_or(i64::MAX);
    let granted = client
        .call(LeaseGrantRequest { ttl: seconds }, CALL_TIMEOUT)
        .await;
    let lease = granted.map_err(unreachable)?.id;
    let value = format!("{}\n{}", holder.id, holder.description);
    let put = PutRequest {
        key: CLAIM_KEY.into(),
        value: Bytes::from(value),
        lease,
    };
    let request = TxnRequest {
        compare: vec![compare(found.map_or(0, |kv| unsigned(kv.mod_revision)))],
        success: vec![RequestOp {
            put: Some(put),
            ..RequestOp::default()
        }],
        failure: Vec::new(),
    };
    let response = match client.transact(request, CALL_TIMEOUT).await {
        // Whether it was stored: the key says.
        Err(CallError::Unclear(_)) => None,
        other => Some(other.map_err(unreachable)?),
    };
    if let Some(response) = response.filter(|response| response.succeeded)
        && let Some(header) = response.header
    {
        let revision = unsigned(header.revision);
        return Ok(Some(Claim { lease, revision }));
    }
    match read(client).await.map_err(unreachable)? {
        Some(kv) if kv.lease == lease => Ok(Some(Claim {
            lease,
            revision: unsigned(kv.mod_revision),
        })),
        Some(kv) => {
            check(&kv, holder)?;
            Err(EtcdError::Unreachable(
                "its answers contradict each other".to_owned(),
            ))
        }
        None => Ok(None),
    }
}

/// The comparison with the claim of this revision.
pub(super) fn compare(revision: Revision) -> Compare {
    Compare {
        target: TARGET_MOD,
        key: CLAIM_KEY.into(),
        version: None,
        mod_revision: Some(super::proto::signed(revision)),
    }
}

pub(super) fn read_op() -> RangeRequest {
    RangeRequest {
        key: CLAIM_KEY.into(),
        ..RangeRequest::default()
    }
}

async fn read(client: &Client) -> Result<Option<KeyValue>, CallError> {
    let response = client.range(read_op(), CALL_TIMEOUT).await?;
    Ok(response.kvs.into_iter().next())
}

/// Fails if the claim is another server's.
fn check(found: &KeyValue, holder: &Holder) -> Result<(), EtcdError> {
    let value = String::from_utf8_lossy(&found.value);
    let (id, description) = value.split_once('\n').unwrap_or(("", &value));
    if id == holder.id {
        return Ok(());
    }
    Err(EtcdError::Claimed {
        holder: description.to_owned(),
        seconds: CLAIM_SECONDS,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "maps errors")]
fn unreachable(error: CallError) -> EtcdError {
    EtcdError::Unreachable(error.to_string())
}

/// Renews the claim until the store is closed, or another server has one.
pub(super) async fn keep<H: Send + Sync + 'static>(core: Arc<Core<H>>, mut claim: Claim) {
    loop {
        tokio::select! {
            () = core.stop.cancelled() => break,
            () = core.claim_lost.notified() => {}
            () = tokio::time::sleep(RENEW_INTERVAL) => {}
        }
        let is_kept = match core.client.keep_alive(claim.lease).await {
            Ok(seconds) => seconds > 0 && is_ours(&core, claim).await,
            // Etcd is away. The next round asks again.
            Err(_) => true,
        };
        if is_kept {
            continue;
        }
        // The next server of this data directory may have it already.
        if core.stop.is_cancelled() {
            break;
        }
        match acquire(&core.client, &core.options.holder).await {
            Ok(new) => {
                tracing::warn!("the claim on etcd had expired; this server has claimed it again");
                claim = new;
                core.claim.store(new.revision, Ordering::Release);
            }
            Err(error @ EtcdError::Claimed { .. }) => {
                tracing::error!("{error}; this server ends");
                core.end();
                return;
            }
            Err(error) => tracing::warn!("cannot claim etcd again: {error}"),
        }
    }
    let release = core
        .client
        .call(LeaseRevokeRequest { id: claim.lease }, RELEASE_TIMEOUT);
    if let Err(error) = release.await {
        tracing::warn!("the claim on etcd stays until it expires: {error}");
    }
}

/// Whether etcd has this claim: an older state that was restored has not.
async fn is_ours<H>(core: &Core<H>, claim: Claim) -> bool {
    match read(&core.client).await {
        Ok(found) => found.is_some_and(|kv| unsigned(kv.mod_revision) == claim.revision),
        Err(_) => true,
    }
}

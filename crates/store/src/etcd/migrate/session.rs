//! A connection to etcd that holds the claim of a server, so that none starts meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Digests, MARKER_KEY, MigrateError, Progress};
use crate::etcd::claim::{self, CLAIM_KEY, Claim};
use crate::etcd::client::Client;
use crate::etcd::error::{CallError, EtcdError};
use crate::etcd::load::{self, COMPACT_KEY, OWN_PREFIX, Pages};
use crate::etcd::options::EtcdOptions;
use crate::etcd::proto::{
    Compare, DeleteRangeRequest, KeyValue, LeaseRevokeRequest, PutRequest, RangeRequest, RequestOp,
    ResponseHeader, TxnRequest, keys_under, unsigned,
};
use crate::record::Revision;

/// How often the claim is renewed, which lasts 15 seconds.
const RENEW_INTERVAL: Duration = Duration::from_secs(4);
/// How long one call may take.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// For how long a transaction is repeated whose outcome is unclear.
const REPEAT_FOR: Duration = Duration::from_mins(2);
const REPEAT_PAUSE: Duration = Duration::from_millis(200);

/// An etcd that no server uses.
pub struct Session {
    pub(super) client: Arc<Client>,
    claim: Claim,
    keeper: JoinHandle<()>,
    prefix: String,
    ignored: Vec<String>,
}

/// What the marker says.
pub(super) struct Marker {
    /// Identifies the source.
    pub(super) id: String,
    /// Where the source is, for people.
    pub(super) from: String,
}

impl Session {
    /// Connects, and claims etcd as a server does. Must be called within a runtime.
    pub async fn open(options: &EtcdOptions) -> Result<Self, MigrateError> {
        let client = Arc::new(Client::new(options)?);
        let claim = claim::acquire(&client, &options.holder).await?;
        let keeper = tokio::spawn(keep(Arc::clone(&client), claim.lease));
        Ok(Self {
            client,
            claim,
            keeper,
            prefix: options.prefix.clone(),
            ignored: options.ignored.clone(),
        })
    }

    /// Lets servers start again.
    pub async fn close(self) {
        self.keeper.abort();
        let id = self.claim.lease;
        let revoked = self.client.call(LeaseRevokeRequest { id }, CALL_TIMEOUT);
        if let Err(error) = revoked.await {
            tracing::warn!("the claim on etcd stays until it expires: {error}");
        }
    }

    /// Ends a migration to etcd: servers may use it from now on.
    pub async fn finish(&self) -> Result<(), MigrateError> {
        let delete = DeleteRangeRequest {
            key: MARKER_KEY.into(),
            ..DeleteRangeRequest::default()
        };
        let op = RequestOp {
            delete_range: Some(delete),
            ..RequestOp::default()
        };
        self.transact(Vec::new(), vec![op]).await.map(drop)
    }

    /// Whether this migration into etcd was verified but not ended.
    pub async fn is_of(&self, id: &str) -> Result<bool, MigrateError> {
        let marker = read_marker(&self.client).await?;
        Ok(marker.is_some_and(|marker| marker.id == id))
    }

    pub(super) async fn marker(&self) -> Result<Option<Marker>, MigrateError> {
        Ok(read_marker(&self.client).await?)
    }

    pub(super) async fn mark(&self, marker: &Marker) -> Result<(), MigrateError> {
        let put = PutRequest {
            key: MARKER_KEY.into(),
            value: Bytes::from(format!("{}\n{}", marker.id, marker.from)),
            lease: 0,
        };
        let op = RequestOp {
            put: Some(put),
            ..RequestOp::default()
        };
        self.transact(Vec::new(), vec![op]).await.map(drop)
    }

    /// Performs a transaction that may be done twice, if our claim holds; answers whether the comparisons succeeded.
    pub(super) async fn transact(
        &self,
        mut compare: Vec<Compare>,
        success: Vec<RequestOp>,
    ) -> Result<bool, MigrateError> {
        compare.push(claim::compare(self.claim.revision));
        let request = TxnRequest {
            compare,
            success,
            failure: Vec::new(),
        };
        let deadline = Instant::now() + REPEAT_FOR;
        loop {
            match self.client.transact(request.clone(), CALL_TIMEOUT).await {
                Ok(response) if response.succeeded => return Ok(true),
                Ok(_) => break,
                Err(CallError::Unclear(_) | CallError::NotDone(_)) if Instant::now() < deadline => {
                    tokio::time::sleep(REPEAT_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let held = self.read(CLAIM_KEY).await?;
        let held = held.map_or(0, |kv| unsigned(kv.mod_revision));
        if held == self.claim.revision {
            Ok(false)
        } else {
            Err(MigrateError::ClaimLost)
        }
    }

    async fn read(&self, key: &str) -> Result<Option<KeyValue>, CallError> {
        read(&self.client, key).await
    }

    pub(super) async fn newest(&self) -> Result<ResponseHeader, MigrateError> {
        Ok(load::newest(&self.client, CALL_TIMEOUT).await?)
    }

    /// A key that is neither ours nor that of compaction.
    pub(super) async fn any_key(&self) -> Result<Option<String>, MigrateError> {
        let revision = unsigned(self.newest().await?.revision);
        let mut pages = Pages::new("", revision, true);
        while let Some(page) = pages.next(&self.client).await? {
            let mut keys = page.iter().map(|kv| String::from_utf8_lossy(&kv.key));
            let is_foreign = |key: &str| !key.starts_with(OWN_PREFIX) && key != COMPACT_KEY;
            if let Some(key) = keys.find(|key| is_foreign(key)) {
                return Ok(Some(key.into_owned()));
            }
        }
        Ok(None)
    }

    pub(super) async fn delete_objects(&self) -> Result<(), MigrateError> {
        let (key, range_end) = keys_under(&self.prefix);
        let delete = DeleteRangeRequest {
            key,
            range_end,
            prev_kv: false,
        };
        let op = RequestOp {
            delete_range: Some(delete),
            ..RequestOp::default()
        };
        self.transact(Vec::new(), vec![op]).await.map(drop)
    }

    /// Reads all objects as they are at one revision.
    pub(super) async fn each_page(
        &self,
        revision: Revision,
        keys_only: bool,
        mut take: impl AsyncFnMut(Vec<(Arc<str>, KeyValue)>) -> Result<(), MigrateError>,
    ) -> Result<(), MigrateError> {
        let mut pages = Pages::new(&self.prefix, revision, keys_only);
        while let Some(page) = pages.next(&self.client).await? {
            let objects = page.into_iter().filter_map(|kv| {
                let key = load::object_key(&self.prefix, &self.ignored, &kv.key)?;
                Some((Arc::from(key), kv))
            });
            take(objects.collect()).await?;
        }
        Ok(())
    }

    /// Compares all objects with what they must be. One that `may_expire` may be gone.
    pub(super) async fn verify(
        &self,
        mut expected: Digests,
        may_expire: impl Fn(&str) -> bool,
        progress: &Progress,
    ) -> Result<Revision, MigrateError> {
        let revision = unsigned(self.newest().await?.revision);
        progress("comparing all objects");
        let differs = |key: &str, what| MigrateError::Differs {
            key: key.to_owned(),
            what,
        };
        self.each_page(revision, false, async |objects| {
            for (key, kv) in objects {
                match expected.remove(&key) {
                    Some(digest) if digest == super::source::digest(&kv.value) => {}
                    Some(_) => return Err(differs(&key, "it has another value")),
                    None => return Err(differs(&key, "it was not there before")),
                }
            }
            Ok(())
        })
        .await?;
        match expected.keys().find(|key| !may_expire(key)) {
            Some(key) => Err(differs(key, "it is missing")),
            None => Ok(revision),
        }
    }
}

async fn read(client: &Client, key: &str) -> Result<Option<KeyValue>, CallError> {
    let request = RangeRequest {
        key: key.into(),
        ..RangeRequest::default()
    };
    let response = client.range(request, CALL_TIMEOUT).await?;
    Ok(response.kvs.into_iter().next())
}

async fn read_marker(client: &Client) -> Result<Option<Marker>, CallError> {
    let found = read(client, MARKER_KEY).await?;
    Ok(found.map(|kv| {
        let text = String::from_utf8_lossy(&kv.value);
        let (id, from) = text
            .split_once('\n')
            .unwrap_or((&*text, "an unknown place"));
        Marker {
            id: id.to_owned(),
            from: from.to_owned(),
        }
    }))
}

/// Fails if a migration into this etcd has not ended; then the claim is given back.
pub(in crate::etcd) async fn refuse_half_migrated(
    client: &Client,
    claim: Claim,
) -> Result<(), EtcdError> {
    let marker = read_marker(client).await;
    let marker = marker.map_err(|error| EtcdError::Unreachable(error.to_string()))?;
    let Some(Marker { from, .. }) = marker else {
        return Ok(());
    };
    // If it fails, the claim expires.
    let revoke = LeaseRevokeRequest { id: claim.lease };
    drop(client.call(revoke, CALL_TIMEOUT).await);
    Err(EtcdError::HalfMigrated { from })
}

async fn keep(client: Arc<Client>, lease: i64) {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        if let Err(error) = client.keep_alive(lease).await {
            tracing::warn!("cannot renew the claim on etcd: {error}");
        }
    }
}

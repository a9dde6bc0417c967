//! Stored revocations of client certificates. [`kennel_core::certificates::revocation`] has the rules.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_core::certificates::revocation::{self, BEFORE, NAMESPACE, SECRET_TYPE, USER};
use kennel_store::{Durability, Op, Store, WriteError};
use kennel_types::Timestamp;
use serde_json::json;

use crate::object::secret::Secret;
use crate::object::{self, Document, Head, Stored};
use crate::registry::{self, Resource};
use crate::status::{ApiError, Result};

/// How often a revocation is written again when another write comes first.
const ATTEMPTS_MAX: usize = 16;

fn row() -> &'static Resource {
    registry::core("secrets")
}

fn key(user: &str) -> String {
    object::key(row(), Some(NAMESPACE), &revocation::secret_name(user))
}

/// Whether a certificate of this user that was issued at this time is revoked.
pub(crate) fn is_revoked(store: &dyn Store<Head>, user: &str, issued: Timestamp) -> bool {
    let key = key(user);
    match store.get(&key) {
        Some(stored) => match before(&stored, user) {
            Some(before) => revocation::is_revoked(issued, before),
            // One that cannot be read revokes everything.
            None => true,
        },
        // So does one that is set aside, until it is written again or discarded.
        None => store.is_set_aside(&key),
    }
}

/// The time of a stored revocation. `None`: it cannot be read.
fn before(stored: &Stored, user: &str) -> Option<Timestamp> {
    let secret = Secret::read(&stored.value)?;
    let is_users = secret.kind == SECRET_TYPE && secret.text(USER)? == user;
    is_users.then(|| Timestamp::parse(&secret.text(BEFORE)?))?
}

/// Revokes the certificates of a user that were issued until now, and those that were issued as valid after an earlier
/// revocation, although that was in the same second or the clock has been set back since.
pub(crate) async fn revoke(store: &dyn Store<Head>, user: &str, now: Timestamp) -> Result<()> {
    write(store, user, |earlier| revocation::next_cutoff(now, earlier)).await
}

/// Revokes the certificates of a user that were issued before this time.
pub(crate) async fn revoke_before(
    store: &dyn Store<Head>,
    user: &str,
    time: Timestamp,
) -> Result<()> {
    let latest = |earlier: Option<Timestamp>| earlier.map_or(time, |earlier| earlier.max(time));
    write(store, user, latest).await
}

/// Stores the time that `time` makes of the one that is stored.
async fn write(
    store: &dyn Store<Head>,
    user: &str,
    time: impl Fn(Option<Timestamp>) -> Timestamp,
) -> Result<()> {
    let key = key(user);
    for _ in 0..ATTEMPTS_MAX {
        let stored = store.get(&key);
        let earlier = stored.as_ref().and_then(|stored| before(stored, user));
        let time = time(earlier);
        let (value, head) = encoded(stored.as_ref(), user, time)?;
        let op = match &stored {
            None => Op::Create {
                key: key.clone(),
                value,
                head,
            },
            Some(stored) => Op::Update {
                key: key.clone(),
                expected: stored.modified,
                value,
                head,
                durability: Durability::Synced,
            },
        };
        match store.write(op).await {
            Ok(_) => {
                tracing::info!(user, "revoked the client certificates of a user");
                return Ok(());
            }
            Err(WriteError::Exists(_) | WriteError::Stale(_) | WriteError::Missing) => {}
            Err(WriteError::Closed) => {
                return Err(ApiError::unavailable("the server is shutting down"));
            }
            Err(error) => {
                let why = format!("cannot revoke certificates of {user}: {error}");
                return Err(ApiError::internal(why));
            }
        }
    }
    let why = format!("cannot revoke certificates of {user}: other writes came first");
    Err(ApiError::internal(why))
}

/// The revocation as it is stored; with another time, if there is one already.
fn encoded(stored: Option<&Stored>, user: &str, time: Timestamp) -> Result<(bytes::Bytes, Head)> {
    let mut document = match stored {
        Some(stored) => Document::from_stored(row(), stored).map_err(ApiError::internal)?,
        None => Document::new(json!({"metadata": {
            "name": revocation::secret_name(user), "namespace": NAMESPACE,
            "uid": uuid::Uuid::new_v4().to_string(),
            "creationTimestamp": crate::clock::now(),
        }})),
    };
    document.tree["type"] = SECRET_TYPE.into();
    document.tree["data"] =
        json!({USER: STANDARD.encode(user), BEFORE: STANDARD.encode(time.to_string())});
    document.encode(row()).map_err(ApiError::internal)
}

/// Deletes revocations that affect no certificate of the trusted authorities, the oldest of which began then.
pub(crate) async fn delete_obsolete(store: &dyn Store<Head>, oldest_authority: Timestamp) {
    let prefix = object::key(row(), Some(NAMESPACE), "revoked-user-");
    for stored in store.range(&prefix, None, None).records {
        let user = Secret::read(&stored.value).and_then(|secret| secret.text(USER));
        let time = user.and_then(|user| before(&stored, &user));
        if time.is_some_and(|time| revocation::is_obsolete(time, oldest_authority)) {
            let (key, expected) = (stored.key.to_string(), stored.modified);
            // One that was written again meanwhile stays.
            let _outcome = store.write(Op::Delete { key, expected }).await;
        }
    }
}

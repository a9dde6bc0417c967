//! From a database file to etcd.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::session::{CALL_TIMEOUT, Marker, Session};
use super::source::Source;
use super::{Lifetime, MigrateError, Moved, Progress};
use crate::etcd::proto::{Compare, LeaseGrantRequest, PutRequest, RequestOp, TARGET_MOD, unsigned};
use crate::etcd::raise::{self, RAISE_MAX};
use crate::record::Revision;
use crate::sqlite::StoredRow;

/// How many revisions a minute of writes adds, about.
const RAISE_PER_MINUTE: u64 = 400_000;
/// Objects with a lifetime share leases of etcd whose lifetimes differ by less.
const LEASE_STEP_SECONDS: u64 = 60;
/// How often the copy tells how far it is.
const TOLD_EVERY: usize = 10_000;

pub struct ToEtcd {
    pub database: PathBuf,
    /// Stays over repetitions.
    pub id: String,
    /// Where the database is, for people.
    pub from: String,
    /// Leaves etcd's revision as it is.
    pub new_revisions: bool,
    pub lifetime: Lifetime,
    pub progress: Progress,
}

/// Copies all objects and compares them. Servers are refused until [`Session::finish`].
pub async fn to_etcd(session: &Session, migration: &ToEtcd) -> Result<Moved, MigrateError> {
    let progress = &migration.progress;
    progress("reading and checking the database");
    let source = Source::check(&migration.database).await?;
    let is_resumed = match session.marker().await? {
        Some(marker) if marker.id != migration.id => {
            return Err(MigrateError::OfAnother(marker.from));
        }
        Some(_) => true,
        None => false,
    };
    if !is_resumed && let Some(key) = session.any_key().await? {
        return Err(MigrateError::NotEmpty(key));
    }
    let at = unsigned(session.newest().await?.revision);
    let gap = source.revision.saturating_sub(at);
    if gap > RAISE_MAX && !migration.new_revisions {
        return Err(MigrateError::TooFar {
            source_revision: source.revision,
            target: at,
            minutes: gap / RAISE_PER_MINUTE,
        });
    }
    let marker = Marker {
        id: migration.id.clone(),
        from: migration.from.clone(),
    };
    session.mark(&marker).await?;
    if is_resumed {
        // The database may have changed since.
        progress("deleting what an interrupted migration has copied");
        session.delete_objects().await?;
    }
    if !migration.new_revisions {
        raise(session, source.revision, progress).await?;
    }
    copy(session, &source, migration).await?;
    let objects = source.digests.len();
    let from = source.revision;
    let expires = |key: &str| (migration.lifetime)(key, &[]).is_some();
    let to = session.verify(source.digests, expires, progress).await?;
    Ok(Moved {
        objects,
        revisions: (from, to),
    })
}

async fn raise(session: &Session, to: Revision, progress: &Progress) -> Result<(), MigrateError> {
    let told = |at, to| progress(&format!("raising etcd's revision: {at} of {to}"));
    Ok(raise::raise(&session.client, to, told).await?)
}

async fn copy(session: &Session, source: &Source, migration: &ToEtcd) -> Result<(), MigrateError> {
    let all = source.digests.len();
    (migration.progress)(&format!("copying {all} objects"));
    let mut leases = Leases::default();
    let mut batches = source.batches();
    let (mut copied, mut told) = (0, 0);
    while let Some(batch) = batches.next().await? {
        let mut compare = Vec::with_capacity(batch.len() + 1);
        let mut puts = Vec::with_capacity(batch.len());
        for row in &batch {
            let lifetime = (migration.lifetime)(&row.key, &row.value);
            let lease = leases.of(session, lifetime).await?;
            compare.push(is_absent(&row.key));
            puts.push(put(row, lease));
        }
        // A repetition after an unclear outcome finds them there; the comparison of all objects has the last word.
        session.transact(compare, puts).await?;
        copied += batch.len();
        if copied >= told + TOLD_EVERY {
            told = copied;
            (migration.progress)(&format!("copied {copied} of {all} objects"));
        }
    }
    Ok(())
}

fn is_absent(key: &str) -> Compare {
    Compare {
        target: TARGET_MOD,
        key: key.into(),
        version: None,
        mod_revision: Some(0),
    }
}

fn put(row: &StoredRow, lease: i64) -> RequestOp {
    let put = PutRequest {
        key: row.key.as_bytes().to_vec(),
        value: row.value.clone(),
        lease,
    };
    RequestOp {
        put: Some(put),
        ..RequestOp::default()
    }
}

/// The leases of objects with a lifetime, by its steps.
#[derive(Default)]
struct Leases {
    by_step: HashMap<u64, i64>,
}

impl Leases {
    async fn of(
        &mut self,
        session: &Session,
        lifetime: Option<Duration>,
    ) -> Result<i64, MigrateError> {
        let Some(lifetime) = lifetime else {
            return Ok(0);
        };
        let step = lifetime.as_secs() / LEASE_STEP_SECONDS + 1;
        if let Some(id) = self.by_step.get(&step) {
            return Ok(*id);
        }
        let ttl = i64::try_from(step * LEASE_STEP_SECONDS).unwrap_or(i64::MAX);
        let granted = session
            .client
            .call(LeaseGrantRequest { ttl }, CALL_TIMEOUT)
            .await?;
        self.by_step.insert(step, granted.id);
        Ok(granted.id)
    }
}

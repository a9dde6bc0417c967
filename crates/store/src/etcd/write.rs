//! One write: a transaction that compares the key's revision and this server's claim, and an answer once the feed has shown it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::claim;
use super::error::CallError;
use super::proto::{
    Compare, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RequestOp, TARGET_MOD,
    TxnRequest, TxnResponse, signed, unsigned,
};
use super::shared::{Core, add};
use super::under_way::Entry;
use crate::error::WriteError;
use crate::record::{Op, Record, Revision, Written};

/// How long a write waits for its turn when very many are under way.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a transaction may take, repetitions of one that did not reach etcd included.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How much longer repeating it may take if its outcome is unclear.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);
const REPEAT_PAUSE: Duration = Duration::from_millis(100);
/// How long the feed may take to show a write.
const SHOW_TIMEOUT: Duration = Duration::from_secs(3);

/// etcd takes requests of 1.5 MiB; the rest is for the key, which is in a request three times.
pub(super) const VALUE_BYTES_MAX: usize = (3 << 19) - (8 << 10);

type Outcome<H> = Result<Written<H>, WriteError<H>>;

/// What a write needs after its content was handed over to the feed.
struct Planned<'a, H> {
    key: &'a str,
    expected: Revision,
    /// `None` for a delete.
    own: Option<Entry<'a, H>>,
    /// The record of the expected revision, if memory has it.
    known: Option<Arc<Record<H>>>,
    /// The revision that memory showed before the write was sent.
    shown: Revision,
    /// Whether a failed comparison of a create means that the key exists.
    is_create: bool,
}

/// See [`Store::write`](crate::Store::write).
pub(super) async fn perform<H: Send + Sync + 'static>(core: Arc<Core<H>>, op: Op<H>) -> Outcome<H> {
    if core.stop.is_cancelled() {
        return Err(WriteError::Closed);
    }
    let turn = tokio::time::timeout(TURN_TIMEOUT, core.permits.acquire()).await;
    let turn = turn.map_err(|_| {
        WriteError::Unavailable("too many writes wait for etcd; try again".to_owned())
    })?;
    let Ok(_permit) = turn else {
        return Err(WriteError::Closed);
    };
    let (key, is_lazy, is_create) = (
        op.key().to_owned(),
        op.is_lazy(),
        matches!(op, Op::Create { .. }),
    );
    let planned = plan(&core, &key, is_create, op)?;
    let written = commit(&core, planned).await?;
    add(&core.counters.writes);
    if is_lazy {
        add(&core.counters.lazy_writes);
    }
    Ok(written)
}

fn plan<'a, H: Send + Sync + 'static>(
    core: &'a Core<H>,
    key: &'a str,
    is_create: bool,
    op: Op<H>,
) -> Result<Planned<'a, H>, WriteError<H>> {
    let (expected, content) = match op {
        // A value that cannot be read is replaced.
        Op::Create { value, head, .. } => {
            let damaged = core.set_aside().get(key).map(|one| one.revision);
            (damaged.unwrap_or(0), Some((value, head)))
        }
        Op::Update {
            expected,
            value,
            head,
            ..
        } => (expected, Some((value, head))),
        Op::Delete { expected, .. } => (expected, None),
    };
    let own = content.map(|(value, head)| {
        let seal = core.options.seal.as_ref();
        let sealed = seal.and_then(|seal| seal.seal(key, &value));
        let stored = sealed.map_or_else(|| value.clone(), Bytes::from);
        core.under_way.add(key, stored, value, head)
    });
    if let Some(own) = &own
        && own.stored().len() > VALUE_BYTES_MAX
    {
        return Err(too_large(own.stored().len()));
    }
    let known = core.memory.get(key);
    Ok(Planned {
        key,
        expected,
        own,
        known: known.filter(|record| record.modified == expected),
        shown: core.memory.revision(),
        is_create,
    })
}

fn too_large<H>(bytes: usize) -> WriteError<H> {
    WriteError::TooLarge {
        bytes,
        max: VALUE_BYTES_MAX,
    }
}

async fn commit<H: Send + Sync + 'static>(core: &Core<H>, planned: Planned<'_, H>) -> Outcome<H> {
    let deadline = Instant::now() + WRITE_TIMEOUT;
    let left = || deadline.saturating_duration_since(Instant::now());
    let mut may_renew = true;
    loop {
        let lease = match (&planned.own, core.options.lifetime(planned.key)) {
            (Some(_), Some(lifetime)) => {
                let lease = core.leases.get(&core.client, lifetime, deadline).await;
                lease.map_err(|error| refused(core, &error))?
            }
            _ => 0,
        };
        let request = transaction(&planned, lease, core.claim.load(Ordering::Acquire));
        return match core.client.transact(request, left()).await {
            Ok(response) => finish(core, &planned, response).await,
            Err(CallError::NoLease) if may_renew => {
                may_renew = false;
                core.leases.forget(lease);
                continue;
            }
            Err(CallError::Unclear(reason)) => {
                let until = deadline + RESOLVE_TIMEOUT;
                resolve(core, &planned, lease, until, &reason).await
            }
            Err(CallError::RequestTooLarge) => {
                let own = planned.own.as_ref();
                Err(too_large(own.map_or(0, |own| own.stored().len())))
            }
            Err(error) => Err(refused(core, &error)),
        };
    }
}

/// The answer to a failure after which nothing was stored.
fn refused<H, E>(core: &Core<H>, error: &CallError) -> WriteError<E> {
    if matches!(error, CallError::NoSpace) {
        core.monitor.set_full(true);
    }
    match error {
        CallError::NoSpace => WriteError::Full(error.to_string()),
        _ => WriteError::Unavailable(format!("etcd did not store it: {error}")),
    }
}

fn transaction<H>(planned: &Planned<'_, H>, lease: i64, claim: Revision) -> TxnRequest {
    // No key has revision -1: an update of a revision that never was is refused.
    let expected = if planned.expected == 0 && !planned.is_create {
        -1
    } else {
        signed(planned.expected)
    };
    let key = planned.key.as_bytes().to_vec();
    let unchanged = Compare {
        target: TARGET_MOD,
        key: key.clone(),
        version: None,
        mod_revision: Some(expected),
    };
    let success = match &planned.own {
        Some(own) => RequestOp {
            put: Some(PutRequest {
                key: key.clone(),
                value: own.stored().clone(),
                lease,
            }),
            ..RequestOp::default()
        },
        None => RequestOp {
            delete_range: Some(DeleteRangeRequest {
                key: key.clone(),
                range_end: Vec::new(),
                prev_kv: planned.known.is_none(),
            }),
            ..RequestOp::default()
        },
    };
    let read = |range| RequestOp {
        range: Some(range),
        ..RequestOp::default()
    };
    TxnRequest {
        compare: vec![claim::compare(claim), unchanged],
        success: vec![success],
        failure: vec![read(read_of(key)), read(claim::read_op())],
    }
}

fn read_of(key: Vec<u8>) -> RangeRequest {
    RangeRequest {
        key,
        ..RangeRequest::default()
    }
}

/// Answers from the transaction's response, once memory shows what it says.
async fn finish<H: Send + Sync + 'static>(
    core: &Core<H>,
    planned: &Planned<'_, H>,
    response: TxnResponse,
) -> Outcome<H> {
    let header = response.header.as_ref();
    if !core.is_later(header, planned.shown + u64::from(response.succeeded)) {
        core.reload.notify_one();
        let text = "etcd went back to an older state meanwhile".to_owned();
        return Err(if response.succeeded {
            WriteError::Unknown(text)
        } else {
            WriteError::Unavailable(text)
        });
    }
    let revision = header.map_or(0, |header| unsigned(header.revision));
    core.served(revision);
    let is_shown = core
        .shown
        .wait(revision, Instant::now() + SHOW_TIMEOUT)
        .await;
    if !is_shown {
        tracing::warn!("memory does not show revision {revision}, which etcd has");
    }
    let mut responses = response.responses.into_iter();
    if response.succeeded {
        let deleted = responses.find_map(|one| one.delete_range);
        let previous = deleted.and_then(|deleted| deleted.prev_kvs.into_iter().next());
        return written(core, planned, revision, previous);
    }
    let mut ranges = responses.filter_map(|one| one.range);
    let current = ranges.next().and_then(|range| range.kvs.into_iter().next());
    let claim = ranges.next().and_then(|range| range.kvs.into_iter().next());
    let claimed = claim.map_or(0, |kv| unsigned(kv.mod_revision));
    if claimed != core.claim.load(Ordering::Acquire) {
        core.claim_lost.notify_one();
        return Err(WriteError::Unavailable(
            "this server's claim on etcd has expired, and is being renewed".to_owned(),
        ));
    }
    Err(rejected(core, planned, current))
}

/// What a failed comparison means.
fn rejected<H: Send + Sync + 'static>(
    core: &Core<H>,
    planned: &Planned<'_, H>,
    current: Option<KeyValue>,
) -> WriteError<H> {
    let Some(kv) = current else {
        if planned.is_create {
            // The damaged value that was to be replaced is gone.
            core.set_aside().remove(planned.key);
            return WriteError::Unavailable("the key was changed meanwhile; try again".to_owned());
        }
        return WriteError::Missing;
    };
    match core.record(kv) {
        Ok(record) if planned.is_create => WriteError::Exists(record),
        Ok(record) => WriteError::Stale(record),
        Err(reason) => {
            WriteError::Unavailable(format!("the stored value cannot be read: {reason}"))
        }
    }
}

/// The answer to a write that etcd has committed at this revision.
fn written<H: Send + Sync + 'static>(
    core: &Core<H>,
    planned: &Planned<'_, H>,
    revision: Revision,
    previous: Option<KeyValue>,
) -> Outcome<H> {
    let unreadable = |reason: super::shared::Unreadable| {
        WriteError::Unknown(format!("it was stored, but cannot be read: {reason}"))
    };
    let record = match &planned.own {
        Some(own) => {
            let shown = own.shown(revision);
            let shown = shown.or_else(|| event_of(core, planned.key, revision)?.after.clone());
            match shown {
                Some(record) => record,
                None => core
                    .record(own_kv(planned, own, revision))
                    .map_err(unreadable)?,
            }
        }
        None => match (&planned.known, previous) {
            (Some(removed), _) => Arc::clone(removed),
            (None, Some(previous)) => core.record(previous).map_err(unreadable)?,
            (None, None) => {
                let reason = "it was deleted, but the deleted object is not known";
                return Err(WriteError::Unknown(reason.to_owned()));
            }
        },
    };
    Ok(Written { revision, record })
}

/// What etcd has of a write that memory does not show.
fn own_kv<H>(planned: &Planned<'_, H>, own: &Entry<'_, H>, revision: Revision) -> KeyValue {
    KeyValue {
        key: planned.key.as_bytes().to_vec(),
        create_revision: signed(
            planned
                .known
                .as_ref()
                .map_or(revision, |known| known.created),
        ),
        mod_revision: signed(revision),
        version: 1,
        value: own.stored().to_vec(),
        lease: 0,
    }
}

/// The event of a key at a revision, if history still has it.
fn event_of<H>(
    core: &Core<H>,
    key: &str,
    revision: Revision,
) -> Option<Arc<crate::record::Event<H>>> {
    let history = core.memory.history(key, revision - 1).ok()?;
    let mut events = history.events.into_iter();
    events.find(|event| event.revision == revision && *event.key == *key)
}

/// Repeats a transaction whose outcome is unclear, on other members if there are any. Because of its comparison it is stored once: if the
/// first was stored, or will be, the other one fails.
async fn resolve<H: Send + Sync + 'static>(
    core: &Core<H>,
    planned: &Planned<'_, H>,
    lease: i64,
    deadline: Instant,
    reason: &str,
) -> Outcome<H> {
    loop {
        tokio::time::sleep(REPEAT_PAUSE).await;
        let request = transaction(planned, lease, core.claim.load(Ordering::Acquire));
        let left = deadline.saturating_duration_since(Instant::now());
        match core.client.transact(request, left).await {
            Ok(response) if response.succeeded => return finish(core, planned, response).await,
            Ok(response) => return stored_before(core, planned, response, reason).await,
            Err(CallError::Unclear(_)) if Instant::now() + REPEAT_PAUSE < deadline => {}
            Err(_) => return unknown(reason),
        }
    }
}

fn unknown<H>(reason: &str) -> Outcome<H> {
    let text = format!("etcd did not answer: {reason}");
    Err(WriteError::Unknown(text))
}

/// The answer after a repeated transaction has failed: the first may have been stored.
async fn stored_before<H: Send + Sync + 'static>(
    core: &Core<H>,
    planned: &Planned<'_, H>,
    response: TxnResponse,
    reason: &str,
) -> Outcome<H> {
    let newest = response
        .header
        .map_or(0, |header| unsigned(header.revision));
    let ranges = response.responses.into_iter();
    let mut ranges = ranges.filter_map(|one| one.range);
    let current = ranges.next().and_then(|range| range.kvs.into_iter().next());
    let deadline = Instant::now() + SHOW_TIMEOUT;
    match (&planned.own, current) {
        (Some(own), Some(kv)) => {
            let revision = unsigned(kv.mod_revision);
            if revision <= planned.expected || kv.value != *own.stored() {
                return unknown(reason);
            }
            core.shown.wait(revision, deadline).await;
            written(core, planned, revision, None)
        }
        (None, None) => {
            core.shown.wait(newest, deadline).await;
            match removal_of(core, planned) {
                Some(revision) => written(core, planned, revision, None),
                None => unknown(reason),
            }
        }
        _ => unknown(reason),
    }
}

/// The revision at which the record of a delete was removed. Only this server writes, so it was this delete.
fn removal_of<H>(core: &Core<H>, planned: &Planned<'_, H>) -> Option<Revision> {
    let history = core.memory.history(planned.key, planned.expected).ok()?;
    let is_removal = |event: &&Arc<crate::record::Event<H>>| {
        let before = event.before.as_ref().map(|record| record.modified);
        *event.key == *planned.key && event.after.is_none() && before == Some(planned.expected)
    };
    history
        .events
        .iter()
        .find(is_removal)
        .map(|event| event.revision)
}

//! Feeds memory from one watch over all keys of etcd, so that every revision arrives as an event.
//!
//! Revisions follow each other without gaps; a gap means that etcd compacted what this process had not seen yet. Then, and when etcd
//! has another [history], all watches end with [`WatchEnd::Reset`](crate::WatchEnd::Reset) and memory is loaded anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kennel_backoff::Policy;
use tonic::Streaming;

use super::history::{self, Last};
use super::load::{self, Loaded};
use super::proto::{
    DELETE, KeyValue, WatchCreateRequest, WatchEvent, WatchRequest, WatchResponse, signed, unsigned,
};
use super::shared::{Core, SetAside, add};
use crate::DamagedValue;
use crate::record::{Event, Record, Revision};

/// The pauses after the watch broke. They start over after a watch that lasted longer than [`CALM`].
const PAUSE: Policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(2));
const CALM: Duration = Duration::from_secs(2);
/// How long etcd may take to say its newest revision.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long etcd may take to confirm that a watch has been created.
const CREATED_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a watch may take to deliver the revision that it begins with.
const FIRST_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a watch ended.
enum End {
    Closed,
    /// Another watch can go on where this one ended.
    Broken(String),
    /// Events are missing.
    Gap(String),
    /// Memory is of another history.
    Restored(String),
}

/// The events of responses that were not complete yet, and what this watch has delivered.
#[derive(Default)]
struct Progress {
    fragments: Vec<WatchEvent>,
    /// The last revision of this watch.
    last: Revision,
    /// Whether the watch has delivered the revision that memory showed when it began.
    is_recognised: bool,
}

/// Feeds memory until the store is closed.
pub(super) async fn run<H: Send + Sync + 'static>(core: Arc<Core<H>>) {
    let mut failures = 0;
    let mut known = None;
    let mut restored: Option<String> = None;
    loop {
        let started = Instant::now();
        let end = if let Some(reason) = restored.take() {
            // Not done yet.
            End::Restored(reason)
        } else {
            tokio::select! {
                () = core.stop.cancelled() => End::Closed,
                end = follow(&core, &mut known) => end,
            }
        };
        core.recognised.send_replace(false);
        let reason = match end {
            End::Closed => return,
            End::Broken(reason) => {
                core.client.choose_another();
                reason
            }
            End::Gap(reason) => {
                tracing::warn!("reading all of etcd again: {reason}");
                match reload(&core, None).await {
                    Ok(()) => {
                        known = None;
                        continue;
                    }
                    Err(error) => error.to_string(),
                }
            }
            End::Restored(reason) => {
                core.monitor.failed(&reason);
                let reloaded = tokio::select! {
                    () = core.stop.cancelled() => return,
                    reloaded = reload(&core, Some(&reason)) => reloaded,
                };
                match reloaded {
                    Ok(()) => {
                        known = None;
                        continue;
                    }
                    Err(error) => {
                        restored = Some(reason);
                        error.to_string()
                    }
                }
            }
        };
        core.monitor.failed(&reason);
        if started.elapsed() > CALM {
            failures = 0;
        }
        let pause = PAUSE.delay(failures, fastrand::f64());
        failures = failures.saturating_add(1);
        tracing::warn!("the watch of etcd broke: {reason}");
        tokio::select! {
            () = core.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// `known` is the last revision that memory shows.
async fn follow<H: Send + Sync + 'static>(core: &Core<H>, known: &mut Option<Last>) -> End {
    let shown = core.memory.revision();
    let newest = match load::newest(&core.client, CHECK_TIMEOUT).await {
        Ok(newest) => newest,
        Err(error) => return End::Broken(error.to_string()),
    };
    if newest.cluster_id != core.cluster.load(Ordering::Acquire) {
        return End::Restored("it is another cluster than before".to_owned());
    }
    if unsigned(newest.revision) < shown {
        return End::Restored(format!(
            "it is at revision {}, and was at {shown}",
            newest.revision
        ));
    }
    let mut responses = match start(core, shown).await {
        Ok(responses) => responses,
        Err(end) => return end,
    };
    let mut progress = Progress::default();
    if known.is_none() {
        progress.is_recognised = true;
        core.recognised.send_replace(true);
    }
    let late = tokio::time::sleep(FIRST_TIMEOUT);
    tokio::pin!(late);
    loop {
        let received = tokio::select! {
            () = &mut late, if !progress.is_recognised => return unrecognised(core, shown).await,
            () = core.reload.notified() => {
                return End::Broken("it may have gone back to an older state".to_owned());
            }
            () = core.restart_watch.notified() => {
                return End::Broken("it delivers nothing".to_owned());
            }
            received = responses.message() => received,
        };
        let response = match received {
            Ok(Some(response)) => response,
            Ok(None) => return End::Broken("etcd ended it".to_owned()),
            Err(status) => return End::Broken(status.to_string()),
        };
        if let Err(end) = take(core, known, &mut progress, response) {
            return end;
        }
    }
}

/// The end of a watch that has not delivered its first revision in time.
async fn unrecognised<H>(core: &Core<H>, shown: Revision) -> End {
    match load::newest(&core.client, CHECK_TIMEOUT).await {
        // A deletion that was compacted is never delivered.
        Ok(_) => End::Gap(format!("it does not show revision {shown} any more")),
        Err(error) => End::Broken(error.to_string()),
    }
}

/// Starts the watch at the revision that memory shows, not after it: if etcd has compacted the revision after it, a watch from there
/// would miss a deletion silently, and one from here is refused.
async fn start<H: Send + Sync + 'static>(
    core: &Core<H>,
    shown: Revision,
) -> Result<Streaming<WatchResponse>, End> {
    let create = WatchCreateRequest {
        key: vec![0],
        range_end: vec![0],
        start_revision: signed(shown.max(1)),
        fragment: true,
    };
    let request = WatchRequest {
        create: Some(create),
    };
    let started = core.client.watch(request).await;
    let mut responses = started.map_err(|error| End::Broken(error.to_string()))?;
    let first = tokio::time::timeout(CREATED_TIMEOUT, responses.message()).await;
    let first = first.map_err(|_| End::Broken("no answer in time".to_owned()))?;
    match first {
        Ok(Some(response)) if response.created && !response.canceled => Ok(responses),
        Ok(Some(response)) => Err(canceled(&response)),
        Ok(None) => Err(End::Broken("etcd ended it".to_owned())),
        Err(status) => Err(End::Broken(status.to_string())),
    }
}

fn canceled(response: &WatchResponse) -> End {
    if response.compact_revision > 0 {
        let revision = response.compact_revision;
        End::Gap(format!(
            "its history is compacted up to revision {revision}"
        ))
    } else {
        End::Broken(format!("etcd ended it: {}", response.cancel_reason))
    }
}

/// Publishes the events of a response, once all of its fragments are here.
fn take<H: Send + Sync + 'static>(
    core: &Core<H>,
    known: &mut Option<Last>,
    progress: &mut Progress,
    response: WatchResponse,
) -> Result<(), End> {
    if response.canceled {
        return Err(canceled(&response));
    }
    progress.fragments.extend(response.events);
    if response.fragment {
        return Ok(());
    }
    let events = std::mem::take(&mut progress.fragments);
    let shown = core.memory.revision();
    if progress.last == 0 && !events.is_empty() {
        let recognised = history::recognise(shown, *known, &events);
        *known = recognised.map_err(|other| End::Restored(other.to_string()))?;
        progress.is_recognised = true;
        core.recognised.send_replace(true);
    }
    let last = Last::of(&events);
    publish(core, progress, events)?;
    *known = last.or(*known);
    Ok(())
}

fn publish<H: Send + Sync + 'static>(
    core: &Core<H>,
    progress: &mut Progress,
    events: Vec<WatchEvent>,
) -> Result<(), End> {
    let shown = core.memory.revision();
    let mut batch = Batch {
        core,
        changed: HashMap::new(),
        events: Vec::new(),
    };
    let mut last = shown;
    for event in events {
        let Some(kv) = event.kv else { continue };
        let revision = unsigned(kv.mod_revision);
        if revision == progress.last {
            // It was published without this event.
            let what = format!("revision {revision} arrived in two parts");
            return Err(End::Gap(what));
        }
        if revision <= shown {
            continue;
        }
        if revision != last && revision != last + 1 {
            let what = format!("revision {revision} follows {last}");
            return Err(End::Gap(what));
        }
        last = revision;
        batch.add(revision, event.kind == DELETE, kv);
    }
    progress.last = last.max(progress.last);
    if last > shown {
        core.memory.publish(&batch.events, last, Instant::now());
        add(&core.counters.batches);
        core.shown.moved();
    }
    Ok(())
}

/// Events that become visible together.
struct Batch<'a, H> {
    core: &'a Core<H>,
    /// The keys that the batch has changed so far.
    changed: HashMap<Arc<str>, Option<Arc<Record<H>>>>,
    events: Vec<Arc<Event<H>>>,
}

impl<H: Send + Sync + 'static> Batch<'_, H> {
    fn add(&mut self, revision: Revision, is_delete: bool, kv: KeyValue) {
        let Some(key) = self.core.reader.object_key(&kv.key) else {
            return;
        };
        let before = match self.changed.get(key) {
            Some(changed) => changed.clone(),
            None => self.core.memory.get(key),
        };
        let key = match &before {
            Some(record) => Arc::clone(&record.key),
            None => Arc::from(key),
        };
        let after = if is_delete {
            self.core.set_aside().remove(&*key);
            None
        } else {
            self.read(&key, kv)
        };
        if before.is_none() && after.is_none() {
            return;
        }
        self.changed.insert(Arc::clone(&key), after.clone());
        self.events.push(Arc::new(Event {
            revision,
            key,
            before,
            after,
        }));
    }

    /// The new record; `None` if it cannot be read.
    fn read(&self, key: &Arc<str>, kv: KeyValue) -> Option<Arc<Record<H>>> {
        if let Some((own, value, head)) = self.core.under_way.take(key, &kv.value) {
            self.forget_damaged(key);
            let record = Arc::new(Record {
                key: Arc::clone(key),
                value,
                created: unsigned(kv.create_revision),
                modified: unsigned(kv.mod_revision),
                head,
            });
            own.show(&record);
            return Some(record);
        }
        let (created, revision) = (kv.create_revision, unsigned(kv.mod_revision));
        match self.core.reader.record(Arc::clone(key), kv) {
            Ok((record, _)) => {
                self.forget_damaged(key);
                Some(record)
            }
            Err(reason) => {
                let damage = DamagedValue {
                    key: key.to_string(),
                    created,
                    reason: reason.to_string(),
                };
                let (key, one) = SetAside::entry((damage, revision));
                self.core.set_aside().insert(key, one);
                None
            }
        }
    }

    fn forget_damaged(&self, key: &str) {
        let mut set_aside = self.core.set_aside();
        if !set_aside.is_empty() {
            set_aside.remove(key);
        }
    }
}

/// Loads memory anew; first continues the revisions of an etcd whose history is another one.
async fn reload<H: Send + Sync + 'static>(
    core: &Core<H>,
    restored: Option<&str>,
) -> Result<(), super::EtcdError> {
    if let Some(reason) = restored {
        let raised = history::go_on_after_restore(&core.client, reason, core.last_served()).await;
        raised.map_err(|error| super::EtcdError::Unreachable(error.to_string()))?;
    }
    let Loaded {
        cluster,
        revision,
        records,
        damaged,
        ..
    } = load::load(&core.client, &core.reader).await?;
    let damaged = damaged.into_iter().map(SetAside::entry).collect();
    *core.set_aside() = damaged;
    core.memory.reset(records, revision);
    core.cluster.store(cluster, Ordering::Release);
    core.reset_served(revision);
    core.shown.moved();
    Ok(())
}

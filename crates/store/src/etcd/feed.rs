//! Feeds memory from one watch over all keys of etcd, so that every revision arrives as an event.
//!
//! Revisions follow each other without gaps; a gap means that etcd compacted what this process had not seen yet. Then, and when etcd
//! went back to an older state, all watches end with [`WatchEnd::Reset`](crate::WatchEnd::Reset) and memory is loaded anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tonic::Streaming;

use super::load::{self, Loaded};
use super::proto::{
    DELETE, KeyValue, WatchCreateRequest, WatchEvent, WatchRequest, WatchResponse, signed, unsigned,
};
use super::shared::{Core, SetAside, add};
use crate::DamagedValue;
use crate::record::{Event, Record, Revision};

/// The first pause after the watch broke; it doubles up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long etcd may take to say its newest revision.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long etcd may take to confirm that a watch has been created.
const CREATED_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a watch ended.
enum End {
    Closed,
    /// Another watch can go on where this one ended.
    Broken(String),
    /// Events are missing, or memory is of another history.
    Gap(String),
}

/// The events of responses that were not complete yet, and what this watch has delivered.
#[derive(Default)]
struct Progress {
    fragments: Vec<WatchEvent>,
    /// The last revision of this watch.
    last: Revision,
}

/// Feeds memory until the store is closed.
pub(super) async fn run<H: Send + Sync + 'static>(core: Arc<Core<H>>) {
    let mut pause = PAUSE_MIN;
    loop {
        let started = Instant::now();
        let end = tokio::select! {
            () = core.stop.cancelled() => End::Closed,
            end = follow(&core) => end,
        };
        let reason = match end {
            End::Closed => return,
            End::Broken(reason) => {
                core.client.choose_another();
                reason
            }
            End::Gap(reason) => {
                tracing::warn!("reading all of etcd again: {reason}");
                match reload(&core).await {
                    Ok(()) => continue,
                    Err(error) => error.to_string(),
                }
            }
        };
        core.monitor.failed(&reason);
        if started.elapsed() > PAUSE_MAX {
            pause = PAUSE_MIN;
        }
        tracing::warn!("the watch of etcd broke: {reason}");
        tokio::select! {
            () = core.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = PAUSE_MAX.min(pause * 2);
    }
}

async fn follow<H: Send + Sync + 'static>(core: &Core<H>) -> End {
    let shown = core.memory.revision();
    let newest = match load::newest(&core.client, CHECK_TIMEOUT).await {
        Ok(newest) => newest,
        Err(error) => return End::Broken(error.to_string()),
    };
    if newest.cluster_id != core.cluster.load(Ordering::Acquire) {
        return End::Gap("it is another cluster than before".to_owned());
    }
    if unsigned(newest.revision) < shown {
        return End::Gap(format!(
            "it is at revision {}, and was at {shown}",
            newest.revision
        ));
    }
    let mut responses = match start(core, shown).await {
        Ok(responses) => responses,
        Err(end) => return end,
    };
    let mut progress = Progress::default();
    loop {
        let received = tokio::select! {
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
        if let Err(end) = take(core, &mut progress, response) {
            return end;
        }
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
    publish(core, progress)
}

fn publish<H: Send + Sync + 'static>(core: &Core<H>, progress: &mut Progress) -> Result<(), End> {
    let shown = core.memory.revision();
    let mut batch = Batch {
        core,
        changed: HashMap::new(),
        events: Vec::new(),
    };
    let mut last = shown;
    for event in std::mem::take(&mut progress.fragments) {
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

/// Loads memory anew.
async fn reload<H: Send + Sync + 'static>(core: &Core<H>) -> Result<(), super::EtcdError> {
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
    core.shown.moved();
    Ok(())
}

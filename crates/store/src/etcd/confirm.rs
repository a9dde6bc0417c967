//! Confirms that memory is up to date: asks etcd for its newest revision and waits until memory has it. One question serves all
//! readers that came before it was sent.
//!
//! Etcd's progress notifications would say the same without a question, but Debian's etcd 3.4.23 delivers events after a notification
//! that claims to cover them.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::history::Note;
use super::load;
use super::proto::{AlarmRequest, NOSPACE, unsigned};
use super::shared::Core;
use crate::error::Unconfirmed;
use crate::record::Revision;

/// How long a read waits for etcd and memory together.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(3);
/// How often memory is confirmed while nobody reads.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(2);
/// How often etcd is asked for its alarms, and expired history is dropped.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);

type Answer = Result<Revision, Unconfirmed>;

#[derive(Default)]
pub(super) struct Rounds {
    /// The readers that the next question is for.
    waiting: Mutex<Vec<oneshot::Sender<Answer>>>,
    asked: Notify,
}

impl Rounds {
    /// Etcd's newest revision, as of now or later.
    async fn newest(&self, deadline: Instant) -> Answer {
        let (send, receive) = oneshot::channel();
        self.add(send);
        self.asked.notify_one();
        match tokio::time::timeout_at(deadline, receive).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Unconfirmed("the store is closed".to_owned())),
            Err(_) => Err(Unconfirmed(format!(
                "etcd did not answer within {} s",
                CONFIRM_TIMEOUT.as_secs()
            ))),
        }
    }

    fn add(&self, waiter: oneshot::Sender<Answer>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(waiter);
    }

    fn take(&self) -> Vec<oneshot::Sender<Answer>> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Asks etcd while somebody waits, one question at a time.
pub(super) async fn run_rounds<H: Send + Sync + 'static>(core: Arc<Core<H>>) {
    loop {
        tokio::select! {
            () = core.stop.cancelled() => {
                // Dropping the waiting ones answers them.
                drop(core.rounds.take());
                return;
            }
            () = core.rounds.asked.notified() => {}
        }
        // Those who come from here on may have seen a write that this question misses.
        let waiting = core.rounds.take();
        if waiting.is_empty() {
            continue;
        }
        let answer = ask(&core).await;
        for waiter in waiting {
            // One who has given up does not listen.
            drop(waiter.send(answer.clone()));
        }
    }
}

async fn ask<H>(core: &Core<H>) -> Answer {
    let shown = core.memory.revision();
    let header = load::newest(&core.client, CONFIRM_TIMEOUT).await;
    let header = header.map_err(|error| Unconfirmed(format!("etcd does not answer: {error}")))?;
    if !core.is_later(Some(&header), shown) {
        core.reload.notify_one();
        return Err(Unconfirmed("etcd went back to an older state".to_owned()));
    }
    Ok(unsigned(header.revision))
}

/// See [`Store::confirm`](crate::Store::confirm).
pub(super) async fn confirm<H: Send + Sync + 'static>(core: Arc<Core<H>>) -> Answer {
    catch_up(&core).await.map_err(Unconfirmed::from)
}

/// Why memory is not confirmed.
pub(super) enum Stale {
    Unconfirmed(Unconfirmed),
    /// Memory does not show this revision, which etcd had, in time.
    Behind(Revision, Unconfirmed),
}

impl From<Stale> for Unconfirmed {
    fn from(stale: Stale) -> Self {
        match stale {
            Stale::Unconfirmed(reason) | Stale::Behind(_, reason) => reason,
        }
    }
}

/// Waits until memory shows all that etcd has, and notes the outcome for health checks.
pub(super) async fn catch_up<H: Send + Sync + 'static>(core: &Core<H>) -> Result<Revision, Stale> {
    let outcome = wait(core).await;
    match &outcome {
        Ok(revision) => {
            core.served(*revision);
            core.monitor.confirmed();
        }
        Err(Stale::Unconfirmed(reason) | Stale::Behind(_, reason)) => {
            core.monitor.failed(&reason.0);
        }
    }
    outcome
}

async fn wait<H: Send + Sync + 'static>(core: &Core<H>) -> Result<Revision, Stale> {
    let deadline = Instant::now() + CONFIRM_TIMEOUT;
    let revision = core.rounds.newest(deadline).await;
    let revision = revision.map_err(Stale::Unconfirmed)?;
    if !is_recognised(core, deadline).await {
        let reason = "whether etcd has the history of this server is not known yet";
        return Err(Stale::Unconfirmed(Unconfirmed(reason.to_owned())));
    }
    let shown = core.memory.revision();
    if core.shown.wait(revision, deadline).await {
        return Ok(revision);
    }
    if core.memory.revision() == shown {
        core.restart_watch.notify_one();
    }
    let reason = format!(
        "this server is at revision {}, etcd at {revision}",
        core.memory.revision()
    );
    Err(Stale::Behind(revision, Unconfirmed(reason)))
}

/// Whether the watch finds in time that etcd has the history that memory is of.
async fn is_recognised<H>(core: &Core<H>, deadline: Instant) -> bool {
    if *core.recognised.borrow() {
        return true;
    }
    let mut recognised = core.recognised.subscribe();
    let found = tokio::time::timeout_at(deadline, recognised.wait_for(|found| *found)).await;
    matches!(found, Ok(Ok(_)))
}

/// Confirms memory while nobody reads, notes the revision, asks for alarms, and drops expired history.
pub(super) async fn upkeep<H: Send + Sync + 'static>(core: Arc<Core<H>>) {
    let mut due = Instant::now();
    loop {
        if core.monitor.silence() >= CONFIRM_INTERVAL {
            // Its outcome is noted.
            drop(confirm(Arc::clone(&core)).await);
        }
        if core.monitor.silence() < CONFIRM_INTERVAL {
            write_note(&core, false).await;
        }
        if due <= Instant::now() {
            due = Instant::now() + UPKEEP_INTERVAL;
            core.memory.expire(std::time::Instant::now());
            check_alarms(&core).await;
        }
        tokio::select! {
            () = core.stop.cancelled() => return,
            () = tokio::time::sleep(CONFIRM_INTERVAL) => {}
        }
    }
}

/// Notes for the next start which history this server has served.
pub(super) async fn write_note<H>(core: &Core<H>, is_last: bool) {
    let Some(path) = core.options.note.clone() else {
        return;
    };
    let note = Note {
        cluster: core.cluster.load(Ordering::Acquire),
        revision: core.last_served(),
        is_last,
    };
    let mut noted = core.noted.lock().await;
    if *noted == Some(note) {
        return;
    }
    let written = tokio::task::spawn_blocking(move || write(note, &path)).await;
    if written.is_ok_and(|written| written) {
        *noted = Some(note);
    }
}

fn write(note: Note, path: &Path) -> bool {
    let written = note.write(path);
    if let Err(error) = &written {
        tracing::warn!("cannot write {}: {error}", path.display());
    }
    written.is_ok()
}

async fn check_alarms<H>(core: &Core<H>) {
    // The action 0 asks.
    let asked = core
        .client
        .call(AlarmRequest { action: 0 }, CONFIRM_TIMEOUT)
        .await;
    if let Ok(response) = asked {
        let is_full = response.alarms.iter().any(|alarm| alarm.alarm == NOSPACE);
        core.monitor.set_full(is_full);
    }
}

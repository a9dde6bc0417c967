//! Follows one rollout: what `watch` and `report` share.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use kennel_core::rollout::Outcome;
use kennel_core::rollout::state::Phase;
use kennel_core::rollout::status::Status;
use kennel_inspect::live::{Live, Scope, Set, View};
use kennel_inspect::record::{Causes, order};
use kennel_inspect::snapshot::now;
use kennel_types::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::options::Target;
use crate::inspect::connect;

/// How long after a look the next one comes at the earliest.
const READ_AFTER: Duration = Duration::from_millis(100);
/// How long after a look the next one comes although nothing has changed: clocks move.
const READ_ANYWAY: Duration = Duration::from_secs(1);
/// A status reads all nodes. It takes at most this part of the time.
const STATUS_SHARE: u32 = 10;

/// See the [module](self).
pub(super) struct Follow {
    live: Live,
    changes: watch::Receiver<u64>,
    namespace: String,
    pub(super) name: String,
    pub(super) causes: Causes,
    /// The newest status, and the order of the nodes.
    status: Option<(Status, Vec<usize>)>,
    status_due: Instant,
    deadline: Option<tokio::time::Instant>,
    last_read: tokio::time::Instant,
    resized: Signal,
    interrupted: Signal,
    terminated: Signal,
    _stop: DropGuard,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Changed,
    Resized,
    /// By Ctrl-C or the time limit.
    Ended,
}

impl Follow {
    /// Connects, and waits until everything is read.
    pub(super) async fn start(target: &Target, limit: Option<Duration>) -> anyhow::Result<Self> {
        let (client, namespace) = connect(&target.cluster).await?;
        let name = target.daemon_set.0.clone();
        let stop = CancellationToken::new();
        let scope = Scope::One {
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let causes = Causes::new(client.clone(), &namespace, &name);
        let live = Live::start(client, scope, stop.clone()).await?;
        let follow = Self {
            changes: live.changes(),
            live,
            namespace,
            name,
            causes,
            status: None,
            status_due: Instant::now(),
            deadline: limit.and_then(|limit| tokio::time::Instant::now().checked_add(limit)),
            last_read: tokio::time::Instant::now(),
            resized: signal(SignalKind::window_change())?,
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
            _stop: stop.drop_guard(),
        };
        let connection = follow.live.settled().await;
        if let Some(why) = connection.why.filter(|_| !connection.synced) {
            bail!("cannot watch {why}");
        }
        for what in connection.refused {
            tracing::warn!("you may not watch {what}: what they say is missing");
        }
        Ok(follow)
    }

    /// Waits for a change, but not for long.
    pub(super) async fn wait(&mut self) -> Woken {
        let woken = tokio::select! {
            () = until(self.deadline) => Woken::Ended,
            _signal = self.interrupted.recv() => Woken::Ended,
            _signal = self.terminated.recv() => Woken::Ended,
            _signal = self.resized.recv() => Woken::Resized,
            () = next_change(&mut self.changes, self.last_read) => Woken::Changed,
        };
        self.last_read = tokio::time::Instant::now();
        woken
    }

    /// Reads the present state.
    pub(super) fn read<R>(
        &mut self,
        read: impl FnOnce(&Present<'_>, &mut Causes) -> R,
    ) -> anyhow::Result<R> {
        let Self {
            live,
            namespace,
            name,
            causes,
            status,
            status_due,
            ..
        } = self;
        let gone = || format!("DaemonSet {namespace}/{name} was deleted");
        let found = live.read(|view| {
            let set = view.set(namespace, name)?;
            let begun = Instant::now();
            let now = now();
            if status.is_none() || begun >= *status_due {
                let order = order(set.picture(), view.nodes(), now);
                *status = Some((view.status(set, now), order));
                let cost = begun.elapsed();
                *status_due = begun + (cost * STATUS_SHARE).max(READ_AFTER);
            }
            let (status, order) = status.as_ref()?;
            let present = Present {
                view,
                set,
                status,
                order,
                now,
            };
            Some(read(&present, causes))
        });
        found.with_context(gone)
    }
}

/// The present state.
pub(super) struct Present<'a> {
    pub(super) view: &'a View,
    pub(super) set: &'a Set,
    pub(super) status: &'a Status,
    /// The indexes of the nodes, in the order in which they are shown.
    pub(super) order: &'a [usize],
    pub(super) now: Timestamp,
}

impl Present<'_> {
    /// Whether it has an outcome: it is complete, has failed and is not on the way back, or a person has to do something.
    pub(super) fn has_outcome(&self) -> bool {
        let goes_back = self.status.phase == Phase::RollingBack.into();
        self.status.outcome != Outcome::Progressing && !goes_back
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A change, not before some time after the last read.
async fn next_change(changes: &mut watch::Receiver<u64>, last_read: tokio::time::Instant) {
    tokio::time::sleep_until(last_read + READ_AFTER).await;
    let anyway = last_read + READ_ANYWAY;
    // Either is a reason to read again; the watches stop only with this.
    let _changed = tokio::time::timeout_at(anyway, changes.changed()).await;
}

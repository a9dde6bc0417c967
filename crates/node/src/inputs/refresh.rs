//! Updates the volumes of a running pod when the objects that they show change.

use std::sync::{Arc, Weak};

use kennel_client::backoff::Backoff;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use super::tokens::RETRY;
use super::volumes::{self, Kind};
use super::write_lock::WriteLock;
use crate::json::list;
use crate::pods::Pod;
use crate::sync::sleep_until;

/// Updates the volumes of one pod until dropped.
pub(super) struct VolumeRefresher {
    pod: watch::Sender<Arc<Pod>>,
    _task: AbortOnDropHandle<()>,
}

impl VolumeRefresher {
    /// None for a pod whose volumes never change.
    pub(super) fn start(
        shared: &Arc<Shared>,
        pod: &Arc<Pod>,
        write_lock: WriteLock,
    ) -> Option<Self> {
        let notify = shared.objects.register(pod);
        let volumes = list(pod.raw_spec(), "volumes").iter();
        let mut kinds = volumes.filter_map(|volume| Kind::of(volume).ok());
        if !kinds.any(|(kind, _)| kind.is_updated()) {
            return None;
        }
        let (sender, receiver) = watch::channel(pod.clone());
        let task = RefreshTask {
            shared: Arc::downgrade(shared),
            pod: receiver,
            write_lock,
            notify,
            retry: Backoff::new(RETRY),
        };
        Some(Self {
            pod: sender,
            _task: AbortOnDropHandle::new(tokio::spawn(task.run())),
        })
    }

    /// Volumes may show labels and annotations.
    pub(super) fn set_pod(&self, pod: &Arc<Pod>) {
        self.pod.send_replace(pod.clone());
    }
}

struct RefreshTask {
    shared: Weak<Shared>,
    pod: watch::Receiver<Arc<Pod>>,
    write_lock: WriteLock,
    notify: Arc<Notify>,
    retry: Backoff,
}

impl RefreshTask {
    async fn run(mut self) {
        // Start with an update: objects may have changed while no agent ran.
        while let Some(next) = self.refresh().await {
            tokio::select! {
                () = self.notify.notified() => {}
                changed = self.pod.changed() => if changed.is_err() { return },
                () = sleep_until(next) => {}
            }
        }
    }

    /// Writes what has changed. Returns when the next update is due; none when the agent stops.
    async fn refresh(&mut self) -> Option<Option<Instant>> {
        let shared = self.shared.upgrade()?;
        let pod = self.pod.borrow_and_update().clone();
        let paths = &shared.settings.paths;
        let volumes = list(pod.raw_spec(), "volumes").iter();
        let written = volumes.filter(|volume| {
            let is_updated = Kind::of(volume).is_ok_and(|(kind, _)| kind.is_updated());
            let path = || volumes::path(paths, &pod.id.uid, volume);
            is_updated && path().is_ok_and(|dir| dir.join("..data").is_symlink())
        });
        let mut failed = false;
        // One at a time: a volume that fails keeps its content and must not delay the others.
        for volume in written {
            if let Err(failure) = shared
                .set_up(&pod, std::iter::once(volume), &self.write_lock)
                .await
            {
                tracing::debug!(pod = %pod.id.name, "{}", failure.message);
                failed = true;
            }
        }
        let retry = if failed {
            Some(Instant::now() + self.retry.next_delay())
        } else {
            self.retry.reset();
            None
        };
        let renewal = shared.tokens.renewal(&pod.id.uid);
        Some(retry.into_iter().chain(renewal).min())
    }
}

//! Keeps what the volumes of a running pod show in step with what they show it of.

use std::sync::{Arc, Weak};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::tokens::RETRY;
use super::tree::list;
use super::turn::Turn;
use super::volumes::{self, Kind};
use super::{Shared, objects};
use crate::pods::Pod;

/// Of one pod. Dropping it ends it.
pub(super) struct Follower {
    pod: watch::Sender<Arc<Pod>>,
    _task: AbortOnDropHandle<()>,
}

impl Follower {
    /// None for a pod whose volumes show nothing that changes.
    pub(super) fn start(shared: &Arc<Shared>, pod: &Arc<Pod>, turn: Turn) -> Option<Self> {
        let notify = shared.objects.hold(&pod.id.uid, || objects::of(pod));
        let volumes = list(pod.raw_spec(), "volumes").iter();
        let mut kinds = volumes.filter_map(|volume| Kind::of(volume).ok());
        if !kinds.any(|(kind, _)| kind.changes()) {
            return None;
        }
        let (sender, receiver) = watch::channel(pod.clone());
        let follow = Follow {
            shared: Arc::downgrade(shared),
            pod: receiver,
            turn,
            notify,
        };
        Some(Self {
            pod: sender,
            _task: AbortOnDropHandle::new(tokio::spawn(follow.run())),
        })
    }

    /// The pod has changed: its labels and annotations may be shown, too.
    pub(super) fn changed(&self, pod: &Arc<Pod>) {
        self.pod.send_replace(pod.clone());
    }
}

struct Follow {
    shared: Weak<Shared>,
    pod: watch::Receiver<Arc<Pod>>,
    turn: Turn,
    notify: Arc<Notify>,
}

impl Follow {
    async fn run(mut self) {
        // Things may have changed while no agent ran.
        while let Some(next) = self.refresh().await {
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.notify.notified() => {}
                changed = self.pod.changed() => if changed.is_err() { return },
                () = due => {}
            }
        }
    }

    /// Writes what has changed, and says when to do so again at the latest; nothing when it is all over.
    async fn refresh(&mut self) -> Option<Option<Instant>> {
        let shared = self.shared.upgrade()?;
        let pod = self.pod.borrow_and_update().clone();
        let paths = &shared.settings.paths;
        let volumes = list(pod.raw_spec(), "volumes").iter();
        let shown = volumes.filter(|volume| {
            let changes = Kind::of(volume).is_ok_and(|(kind, _)| kind.changes());
            let there = || volumes::place(paths, &pod.id.uid, volume);
            changes && there().is_ok_and(|dir| dir.join("..data").is_symlink())
        });
        let mut retry = None;
        // One that cannot be had must not hold the others back: it goes on showing what it did.
        for volume in shown {
            if let Err(trouble) = shared
                .set_up(&pod, std::iter::once(volume), &self.turn)
                .await
            {
                tracing::debug!(pod = %pod.id.name, "{}", trouble.message);
                retry = Some(Instant::now() + RETRY);
            }
        }
        let renewal = shared.tokens.renewal(&pod.id.uid);
        Some(retry.into_iter().chain(renewal).min())
    }
}

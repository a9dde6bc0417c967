//! Static pods: runs the pods of a directory of manifests, with or without an API server.
//!
//! ```text
//!   files ─▶ directory ─▶ manifest (a file's pod) ─▶ sequencer (the old pod ends first) ─▶ pods::manager
//!     ▲ crate::directory_watch                          └─▶ mirror ─▶ API
//! ```
//!
//! An invalid manifest is reported and changes nothing: the pods of other manifests go on, and so does the pod of its
//! last valid version.

mod directory;
#[doc(hidden)]
pub mod fuzz;
mod manifest;
pub mod mirror;
mod sequencer;
#[cfg(test)]
mod tests;
mod validate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::metrics::{Counter, Gauge, Observed, Page};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::directory::{Invalid, ManifestDirectory, StaticPods};
use self::sequencer::{RunningPods, Sequencer, Step};
use crate::directory_watch::DirectoryWatch;
use crate::pods::{Origin, PodCache, PodUpdate};
use crate::runtime::{PodId, Runtime};

/// The annotation that says where a pod comes from: `file`.
pub const SOURCE: &str = "kubernetes.io/config.source";
/// The annotation with the hash of a static pod's manifest.
pub const HASH: &str = "kubernetes.io/config.hash";
/// The annotation with the time when a manifest was read.
pub const SEEN: &str = "kubernetes.io/config.seen";

/// How often the directory is read if no change is notified: upstream's period.
const POLL_INTERVAL: Duration = Duration::from_secs(20);
/// Wait for further changes after a notification: files are often written together.
const SETTLE_DELAY: Duration = Duration::from_millis(50);
/// How often to check whether an old pod has terminated while its successor waits.
const TERMINATION_POLL_INTERVAL: Duration = Duration::from_millis(250);
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// What static pods need.
pub struct Manifests {
    pub dir: PathBuf,
    pub node_name: String,
    pub runtime: Arc<dyn Runtime>,
    pub cache: Arc<PodCache>,
    /// Records events about invalid manifests; none without an API server.
    pub events: Option<Recorder>,
    pub metrics: Arc<Metrics>,
    /// To the pod manager.
    pub pods: mpsc::Sender<PodUpdate>,
    /// To [`mirror::Mirror`]; none without an API server.
    pub mirror: Option<mpsc::Sender<PodUpdate>>,
}

kennel_core::metrics! {
    pub METRICS;
    Gauge PODS = "kennel_static_pods" [] "Static pods of valid manifests.";
    Gauge UNUSABLE = "kennel_static_pod_files_unusable" [] "Invalid manifests of static pods.";
    Counter FAILURES = "kennel_static_pod_failures_total" []
        "How often a manifest was invalid when it appeared or changed.";
}

#[derive(Debug, Default)]
pub struct Metrics {
    invalid: Gauge,
    failures: Counter,
    pods: Gauge,
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        page.number(&PODS, self.pods.get());
        page.number(&UNUSABLE, self.invalid.get());
        page.number(&FAILURES, self.failures.get());
    }
}

/// Follows the directory until `stop`.
pub async fn run(manifests: Manifests, stop: CancellationToken) {
    stop.run_until_cancelled(manifests.run()).await;
}

impl Manifests {
    /// Returns once the pod manager has stopped.
    async fn run(self) {
        let mut directory = ManifestDirectory::new(self.dir.clone(), &self.node_name);
        let watch = DirectoryWatch::new(&self.dir);
        let mut sequencer = Sequencer::default();
        let mut synced = false;
        loop {
            watch.attach();
            let pods;
            (directory, pods) = self.read(directory).await;
            sequencer.set_desired(pods);
            if !self.forward(&mut sequencer, &mut synced).await {
                return;
            }
            let next_poll = Instant::now() + POLL_INTERVAL;
            while !self.wait(&watch, &sequencer, next_poll).await {
                if !self.forward(&mut sequencer, &mut synced).await {
                    return;
                }
            }
        }
    }

    /// Reads the directory on a thread that may wait for disks.
    async fn read(&self, mut directory: ManifestDirectory) -> (ManifestDirectory, StaticPods) {
        let read = tokio::task::spawn_blocking(move || {
            let invalid = directory.read(&clock::now_rfc3339());
            (directory, invalid)
        });
        let (directory, invalid) = read.await.expect("reading manifests does not panic");
        for invalid in &invalid {
            self.report(invalid);
        }
        let pods = directory.pods();
        self.metrics.invalid.set(count(directory.invalid()));
        self.metrics.pods.set(count(pods.len()));
        (directory, pods)
    }

    /// Sends the updates that can be sent now. Returns false once the pod manager has stopped.
    async fn forward(&self, sequencer: &mut Sequencer, synced: &mut bool) -> bool {
        let running = self.running_pods(sequencer.needs_runtime()).await;
        for step in sequencer.steps(&running) {
            let sent = match step {
                Step::Start(pod) => self.send_to_both(PodUpdate::Set(pod)).await,
                Step::Stop(id) => self.pods.send(PodUpdate::Removed(id)).await.is_ok(),
                // The mirror pod stays until the pod has terminated.
                Step::Stopped(id) => {
                    self.send_to_mirror(PodUpdate::Removed(id)).await;
                    true
                }
            };
            if !sent {
                return false;
            }
        }
        if std::mem::replace(synced, true) {
            return true;
        }
        self.send_to_both(PodUpdate::Synced(Origin::File)).await
    }

    /// The pod manager first: a slow API must not delay pods. Returns false once the pod manager has stopped.
    async fn send_to_both(&self, update: PodUpdate) -> bool {
        if self.pods.send(update.clone()).await.is_err() {
            return false;
        }
        self.send_to_mirror(update).await;
        true
    }

    async fn send_to_mirror(&self, update: PodUpdate) {
        if let Some(mirror) = &self.mirror {
            let _stopped = mirror.send(update).await;
        }
    }

    /// Returns true when the directory is to be read again, false when only [`Self::forward`] is due because a pod
    /// waits for another's termination.
    async fn wait(
        &self,
        watch: &DirectoryWatch,
        sequencer: &Sequencer,
        next_poll: Instant,
    ) -> bool {
        let termination_poll = async {
            if sequencer.is_waiting() {
                tokio::time::sleep(TERMINATION_POLL_INTERVAL).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = watch.changed() => {
                tokio::time::sleep(SETTLE_DELAY).await;
                true
            }
            () = tokio::time::sleep_until(next_poll) => true,
            () = termination_poll => false,
        }
    }

    fn report(&self, invalid: &Invalid) {
        let Invalid { file, error } = invalid;
        let message = format!("Can't process manifest file {:?}: {error}", file.display());
        tracing::error!("{message}");
        self.metrics.failures.increment();
        if let Some(events) = &self.events {
            let note = Note::new(true, "InvalidStaticPod", message);
            events.emit(Reference::own_node(&self.node_name), note);
        }
    }

    async fn running_pods(&self, with_runtime: bool) -> Running<'_> {
        let found = if with_runtime {
            // If the runtime is unavailable nothing starts anyway, so there is nothing to wait for.
            let listed = tokio::time::timeout(LIST_TIMEOUT, self.runtime.list()).await;
            listed.ok().and_then(Result::ok).unwrap_or_default()
        } else {
            Vec::new()
        };
        Running {
            cache: &self.cache,
            runtime: found.into_iter().map(|found| found.pod).collect(),
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

struct Running<'a> {
    cache: &'a PodCache,
    runtime: Vec<PodId>,
}

impl RunningPods for Running<'_> {
    fn is_managed(&self, uid: &str) -> bool {
        self.cache.by_uid(uid).is_some()
    }

    fn is_name_in_use(&self, id: &PodId) -> bool {
        self.runtime.iter().any(|other| {
            other.namespace == id.namespace && other.name == id.name && other.uid != id.uid
        })
    }
}

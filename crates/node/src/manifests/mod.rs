//! Static pods: what the files of a directory say, this node runs, whether or not there is a server.
//!
//! ```text
//!   files ─▶ folder ─▶ manifest (a file's pod) ─▶ gate (the old one ends first) ─▶ keeper
//!     ▲ bell                                        └─▶ mirror ─▶ API
//! ```
//!
//! A file that makes no sense is told about and changes nothing: the other files' pods go on, and so does the
//! pod that the file asked for before.

pub(crate) mod bell;
mod folder;
mod gate;
mod manifest;
pub mod mirror;
mod refuse;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::metrics::{Counter, Gauge, Observed, Page};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::bell::Bell;
use self::folder::{Complaint, Folder};
use self::gate::{Gate, Present, Step};
use crate::pods::{Origin, PodCache, PodUpdate};
use crate::runtime::Runtime;

/// The pods of files say where they come from with this annotation.
pub const SOURCE: &str = "kubernetes.io/config.source";
/// What a file's pod is a hash of.
pub const HASH: &str = "kubernetes.io/config.hash";
/// When a file was read.
pub const SEEN: &str = "kubernetes.io/config.seen";

/// How often the directory is looked through, even if nobody has rung: upstream's own period.
const LOOK: Duration = Duration::from_secs(20);
/// How long to wait for more after the bell: whoever writes one file often writes another.
const SETTLE: Duration = Duration::from_millis(50);
/// How often to look whether an old pod is over, while a new one waits for that.
const WAIT: Duration = Duration::from_millis(250);

/// How long a runtime may take to list what it has.
const LIST: Duration = Duration::from_secs(10);

/// What static pods need.
pub struct Manifests {
    /// The directory of files.
    pub dir: PathBuf,
    /// The node's name.
    pub node_name: String,
    /// What runs pods: what is left of a file's earlier pod ends before the next one starts.
    pub runtime: Arc<dyn Runtime>,
    /// The pods that are being looked after.
    pub directory: Arc<PodCache>,
    /// Takes events about files that make no sense; none without a server.
    pub events: Option<Recorder>,
    /// Where numbers go.
    pub metrics: Arc<Metrics>,
    /// Takes what is to run.
    pub pods: mpsc::Sender<PodUpdate>,
    /// Takes what is to be shown in the API ([`mirror::Mirror`]); none without a server.
    pub shown: Option<mpsc::Sender<PodUpdate>>,
}

kennel_core::metrics! {
    pub METRICS;
    Gauge PODS = "kennel_static_pods" [] "Pods that files on this machine ask for.";
    Gauge UNUSABLE = "kennel_static_pod_files_unusable" []
        "Files in the directory of static pods that make no sense.";
    Counter FAILURES = "kennel_static_pod_failures_total" []
        "How often a file made no sense when it appeared or changed.";
}

/// Numbers about static pods.
#[derive(Debug, Default)]
pub struct Metrics {
    unusable: Gauge,
    failures: Counter,
    pods: Gauge,
}

impl Observed for Metrics {
    fn show(&self, page: &mut Page) {
        page.number(&PODS, self.pods.get());
        page.number(&UNUSABLE, self.unusable.get());
        page.number(&FAILURES, self.failures.get());
    }
}

/// Follows the directory, until told to stop.
pub async fn watch(manifests: Manifests, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = manifests.follow() => {}
    }
}

impl Manifests {
    async fn follow(self) {
        let folder = Folder::new(self.dir.clone(), &self.node_name);
        let mut folder = Some(folder);
        let bell = Bell::new(&self.dir);
        let mut gate = Gate::default();
        let mut synced = false;
        loop {
            bell.listen();
            let read = self.read(&mut folder).await;
            gate.wants(read);
            if !self.pass(&mut gate, &mut synced).await {
                return;
            }
            let next = tokio::time::Instant::now() + LOOK;
            while !self.wait(&bell, &gate, next).await {
                if !self.pass(&mut gate, &mut synced).await {
                    return;
                }
            }
        }
    }

    /// Looks through the directory, away from the threads that must not wait for disks.
    async fn read(&self, folder: &mut Option<Folder>) -> folder::Pods {
        let mut taken = folder.take().expect("it is put back after each look");
        let looked = tokio::task::spawn_blocking(move || {
            let complaints = taken.look(&kennel_client::clock::now_rfc3339());
            (taken, complaints)
        });
        let (taken, complaints) = looked.await.expect("looking at files does not panic");
        for complaint in &complaints {
            self.complain(complaint);
        }
        let pods = taken.pods();
        self.metrics.unusable.set(count(taken.unusable()));
        self.metrics.pods.set(count(pods.len()));
        *folder = Some(taken);
        pods
    }

    /// Tells what can be told now. Does anybody still listen?
    async fn pass(&self, gate: &mut Gate, synced: &mut bool) -> bool {
        let present = Here::look(&self.runtime, &self.directory, gate.needs_runtime()).await;
        for step in gate.steps(&present) {
            let (change, keeper) = match step {
                Step::Start(pod) => (PodUpdate::Set(pod), true),
                Step::End(id) => {
                    let told = self.pods.send(PodUpdate::Removed(id)).await;
                    if told.is_err() {
                        return false;
                    }
                    continue;
                }
                Step::Over(id) => (PodUpdate::Removed(id), false),
            };
            if !self.tell(change, keeper).await {
                return false;
            }
        }
        if std::mem::replace(synced, true) {
            return true;
        }
        self.tell(PodUpdate::Synced(Origin::File), true).await
    }

    /// Tells whoever shows pods, after whoever keeps them if he is to know: an API that is slow is no reason to
    /// keep a pod waiting.
    async fn tell(&self, change: PodUpdate, keeper: bool) -> bool {
        if keeper && self.pods.send(change.clone()).await.is_err() {
            return false;
        }
        if let Some(shown) = &self.shown {
            let _nobody = shown.send(change).await;
        }
        true
    }

    /// Waits for the bell or the next look, and says so; or for a moment, if a pod waits for another's end.
    async fn wait(&self, bell: &Bell, gate: &Gate, next: tokio::time::Instant) -> bool {
        let moment = async {
            if gate.is_waiting() {
                tokio::time::sleep(WAIT).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = bell.rung() => {
                tokio::time::sleep(SETTLE).await;
                true
            }
            () = tokio::time::sleep_until(next) => true,
            () = moment => false,
        }
    }

    fn complain(&self, complaint: &Complaint) {
        let Complaint { file, why } = complaint;
        let message = format!("Can't process manifest file {:?}: {why}", file.display());
        tracing::error!("{message}");
        self.metrics.failures.increment();
        if let Some(events) = &self.events {
            events.emit(
                Reference::own_node(&self.node_name),
                Note {
                    warning: true,
                    reason: "InvalidStaticPod".into(),
                    message,
                },
            );
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What there is of pods on this machine.
struct Here<'a> {
    directory: &'a PodCache,
    /// Namespace, name and uid of what the runtime has.
    runtime: Vec<crate::runtime::PodId>,
}

impl<'a> Here<'a> {
    async fn look(runtime: &Arc<dyn Runtime>, directory: &'a PodCache, needed: bool) -> Self {
        let found = if needed {
            // Without the runtime nothing starts anyway; then there is nothing to wait for.
            let listed = tokio::time::timeout(LIST, runtime.list()).await;
            listed.ok().and_then(Result::ok).unwrap_or_default()
        } else {
            Vec::new()
        };
        let runtime = found.into_iter().map(|found| found.pod).collect();
        Self { directory, runtime }
    }
}

impl Present for Here<'_> {
    fn is_kept(&self, uid: &str) -> bool {
        self.directory.by_uid(uid).is_some()
    }

    fn has_another(&self, id: &crate::runtime::PodId) -> bool {
        let named = |other: &&crate::runtime::PodId| {
            other.namespace == id.namespace && other.name == id.name && other.uid != id.uid
        };
        self.runtime.iter().any(|other| named(&other))
    }
}

//! The pods that are looked after, and those that have arrived and wait to be let in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kennel_core::pod::admit::{Admission, Guest, Host, admit};
use kennel_core::pod::evict;
use kennel_core::pod::status::Verdict;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::sweep::list;
use super::{AGAIN, Order};
use crate::pods::worker::{Beginning, News, Shared, Worker};
use crate::pods::{Change, Origin, Pod};
use crate::runtime::PodId;

/// A worker that broke is begun anew after so long.
const MENDED: Duration = Duration::from_secs(10);

/// A pod that is looked after.
pub(super) struct Kept {
    pod: Arc<Pod>,
    guest: Guest,
    news: mpsc::UnboundedSender<News>,
    released: Arc<AtomicBool>,
    /// It takes room until it is released.
    counts: bool,
    /// Why it may not run at all.
    refused: Option<Verdict>,
    /// Its source has it no more.
    gone: bool,
    /// It was told to make room.
    yields: bool,
}

/// See the [module](self).
pub(super) struct Household {
    pub(super) shared: Arc<Shared>,
    pub(super) kept: BTreeMap<String, Kept>,
    workers: JoinSet<()>,
    names: HashMap<Id, String>,
    pub(super) arrivals: Vec<Arc<Pod>>,
    /// Sources that have not said everything yet.
    pub(super) awaited: Vec<Origin>,
    /// The pods that were there before us.
    before: BTreeSet<String>,
    /// When to look for what nobody asks for.
    pub(super) sweep: Option<Instant>,
}

impl Household {
    /// Asks the runtime what there is, for as long as it takes.
    pub(super) async fn open(shared: Arc<Shared>) -> Self {
        let found = loop {
            if let Some(found) = list(&shared).await {
                break found;
            }
            tokio::time::sleep(AGAIN).await;
        };
        Self {
            awaited: shared.parts.sources.clone(),
            shared,
            kept: BTreeMap::new(),
            workers: JoinSet::new(),
            names: HashMap::new(),
            arrivals: Vec::new(),
            before: found.into_iter().map(|found| found.pod.uid).collect(),
            sweep: None,
        }
    }

    pub(super) fn heard(&mut self, change: Change) {
        match change {
            Change::Set(pod) => self.set(pod),
            Change::Gone(id) => self.gone(&id),
            Change::Synced(origin) => {
                let waited = !self.awaited.is_empty();
                self.awaited.retain(|awaited| *awaited != origin);
                self.let_in();
                self.sweep_soon();
                if waited && self.awaited.is_empty() {
                    tracing::info!("looking after {} pods", self.kept.len());
                }
            }
        }
    }

    fn set(&mut self, pod: Arc<Pod>) {
        let uid = &pod.id.uid;
        if let Some(kept) = self.kept.get_mut(uid).filter(|kept| !kept.gone) {
            kept.pod = Arc::clone(&pod);
            let _ended = kept.news.send(News::Pod(pod));
            return;
        }
        self.arrivals.retain(|other| other.id.uid != *uid);
        self.arrivals.push(pod);
        self.let_in();
    }

    fn gone(&mut self, id: &PodId) {
        self.arrivals.retain(|other| other.id.uid != id.uid);
        if let Some(kept) = self.kept.get_mut(&id.uid) {
            kept.gone = true;
            let _ended = kept.news.send(News::Gone);
        }
    }

    pub(super) fn happened(&mut self, uid: &str) {
        if uid.is_empty() {
            for kept in self.kept.values() {
                let _ended = kept.news.send(News::Look);
            }
        } else if let Some(kept) = self.kept.get(uid) {
            let _ended = kept.news.send(News::Look);
            return;
        }
        self.sweep_soon();
    }

    pub(super) fn ordered(&mut self, order: Order) {
        match order {
            Order::Evict {
                uid,
                verdict,
                grace,
            } => {
                if let Some(kept) = self.kept.get(&uid) {
                    let _ended = kept.news.send(News::Evict(verdict, grace));
                }
            }
            Order::Mirrored { uid, mirror } => self.shared.reports.mirrored(uid, mirror),
        }
    }

    /// Waits for something of our own to do, and does it.
    pub(super) async fn next(&mut self) {
        let due = self.sweep;
        let sweep = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = self.workers.join_next_with_id() => self.ended(ended),
            () = self.shared.freed.notified() => self.let_in(),
            () = sweep => self.sweep_now().await,
        }
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let Some(uid) = self.names.remove(&id) else {
            return;
        };
        let Some(kept) = self.kept.remove(&uid) else {
            return;
        };
        if let Err(error) = ended {
            tracing::error!(pod = %kept.pod.id.name, "its worker broke and is begun anew: {error}");
            self.begin(kept.pod, kept.refused, kept.gone, MENDED);
        }
        self.let_in();
    }

    /// Lets in all that may come in now: those that were here before first, then the oldest.
    fn let_in(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_cached_key(|pod| {
            let created = pod.metadata()["creationTimestamp"].as_str();
            let created = created.unwrap_or_default().to_owned();
            (!self.was_here(pod), created, pod.id.name.clone())
        });
        for pod in arrivals {
            match self.judge(&pod) {
                Some(Admission::Admitted) => self.begin(pod, None, false, Duration::ZERO),
                Some(Admission::Refused(verdict)) => {
                    self.begin(pod, Some(verdict), false, Duration::ZERO);
                }
                Some(Admission::Instead(victims)) => {
                    self.send_away(&victims);
                    self.arrivals.push(pod);
                }
                None => self.arrivals.push(pod),
            }
        }
    }

    /// What becomes of an arrival; nothing while it has to wait.
    fn judge(&self, pod: &Pod) -> Option<Admission> {
        if self.kept.contains_key(&pod.id.uid) || self.follows_another(pod) {
            return None;
        }
        if self.was_here(pod) {
            return Some(Admission::Admitted);
        }
        if self.awaited.contains(&pod.origin) {
            return None;
        }
        let (is_static, pressures) = (pod.origin == Origin::File, &self.shared.parts.pressures);
        if let Some(verdict) = evict::refused(&pod.object, is_static, *pressures.borrow()) {
            return Some(Admission::Refused(verdict));
        }
        let guest = guest(pod);
        let host = Host::read(&self.shared.parts.node.borrow());
        let takes_room = |kept: &&Kept| kept.counts && !kept.released.load(Ordering::SeqCst);
        let all = self.kept.values().filter(takes_room);
        let (leaving, staying): (Vec<&Kept>, Vec<&Kept>) = all.partition(|kept| kept.yields);
        let others: Vec<&Guest> = staying.iter().map(|kept| &kept.guest).collect();
        let verdict = admit(&guest, &host, &others);
        if leaving.is_empty() || verdict != Admission::Admitted {
            return Some(verdict);
        }
        // There will be room; but is there already?
        let others: Vec<&Guest> = leaving
            .iter()
            .map(|kept| &kept.guest)
            .chain(others)
            .collect();
        let now = admit(&guest, &host, &others);
        match now {
            Admission::Instead(_) => None,
            other => Some(other),
        }
    }

    /// The pod before it of the same file has not ended yet: they would be in each other's way.
    fn follows_another(&self, pod: &Pod) -> bool {
        let same = |other: &Kept| {
            let (a, b) = (&other.pod.id, &pod.id);
            a.namespace == b.namespace && a.name == b.name && a.uid != b.uid
        };
        pod.origin == Origin::File && self.kept.values().any(same)
    }

    /// Pods that ran are not judged again, and those that will not run need not be.
    fn was_here(&self, pod: &Pod) -> bool {
        let phase = pod.object["status"]["phase"].as_str();
        pod.is_deleted()
            || self.before.contains(&pod.id.uid)
            || matches!(phase, Some("Running" | "Succeeded" | "Failed"))
    }

    fn send_away(&mut self, victims: &[String]) {
        for uid in victims {
            let Some(kept) = self.kept.get_mut(uid) else {
                continue;
            };
            kept.yields = true;
            let verdict = Verdict {
                reason: "Preempting".to_owned(),
                message: "Preempted in order to admit critical pod".to_owned(),
            };
            let grace = kept.pod.spec.grace();
            let _ended = kept.news.send(News::Evict(verdict, grace));
        }
    }

    pub(super) fn begin(
        &mut self,
        pod: Arc<Pod>,
        refused: Option<Verdict>,
        gone: bool,
        after: Duration,
    ) {
        let (news, hears) = mpsc::unbounded_channel();
        let released = Arc::new(AtomicBool::new(false));
        let phase = pod.object["status"]["phase"].as_str();
        let over = matches!(phase, Some("Succeeded" | "Failed"));
        let uid = pod.id.uid.clone();
        let kept = Kept {
            guest: guest(&pod),
            news,
            released: Arc::clone(&released),
            counts: refused.is_none() && !over,
            refused: refused.clone(),
            gone,
            yields: false,
            pod: Arc::clone(&pod),
        };
        let beginning = Beginning {
            pod,
            news: hears,
            released,
            refused,
            gone,
        };
        let shared = Arc::clone(&self.shared);
        let task = self.workers.spawn(async move {
            tokio::time::sleep(after).await;
            Worker::new(shared, beginning).run().await;
        });
        self.names.insert(task.id(), uid.clone());
        self.kept.insert(uid, kept);
    }
}

fn guest(pod: &Pod) -> Guest {
    Guest::read(&pod.object, pod.origin == Origin::File)
}

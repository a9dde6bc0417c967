//! Looks after one pod: observes it, asks [`kennel_core::pod::plan`], has done what that says, and tells how it is.
//!
//! ```text
//!   news (pod, runtime, orders) ─▶ worker ─▶ plan ─▶ tasks (act, ask, clear) ─┐
//!                                    ▲                                        │
//!                                    └──────────── outcomes ──────────────────┘
//! ```
//!
//! Nothing is planned on old observations: whatever ends, the runtime is looked at before the next step. What
//! must survive the agent is with the runtime and in the API; a worker can be dropped at any moment.

mod act;
mod ask;
mod clear;
mod fate;
mod kill;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kennel_client::events::Recorder;
use kennel_core::pod::memory::Trouble;
use kennel_core::pod::plan::{Situation, Wanted, plan};
use kennel_core::pod::probe::Kind;
use kennel_core::pod::status::Verdict;
use kennel_core::pod::{Action, Instant, Memory, Observed};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::report::Reports;
use super::voice::Voice;
use super::{Parts, Pod};
use crate::runtime::{self, Found};
use fate::Ending;

/// How many sandboxes and containers are started at once on a node.
const STARTS: usize = 8;
/// How many images are got at once.
const PULLS: usize = 4;
/// How long a runtime may take to say what it has.
const LOOK: Duration = Duration::from_secs(30);
/// How long to wait before a runtime that does not answer is asked again, times the number of tries.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What all workers share.
pub(super) struct Shared {
    pub(super) parts: Parts,
    pub(super) reports: Reports,
    pub(super) recorder: Recorder,
    /// Somebody has made room.
    pub(super) freed: Notify,
    starts: Semaphore,
    pulls: Semaphore,
    began: tokio::time::Instant,
    runtime_name: String,
}

impl Shared {
    pub(super) fn new(parts: Parts, reports: Reports, recorder: Recorder) -> Self {
        Self {
            runtime_name: parts.runtime.about().name,
            parts,
            reports,
            recorder,
            freed: Notify::new(),
            starts: Semaphore::new(STARTS),
            pulls: Semaphore::new(PULLS),
            began: tokio::time::Instant::now(),
        }
    }

    fn now(&self) -> Instant {
        self.began.elapsed()
    }
}

/// What a worker hears.
#[derive(Debug)]
pub(super) enum News {
    /// The pod has changed.
    Pod(Arc<Pod>),
    /// Nobody wants the pod any more.
    Gone,
    /// Something happened to it in the runtime.
    Look,
    /// It is to end.
    Evict(Verdict, Duration),
}

/// How a task ended.
enum Outcome {
    /// A sandbox was made, or not.
    Sandbox(Result<(), act::Hindrance>),
    /// A container was started, or not.
    Start(String, Result<(), act::Hindrance>),
    /// A container or sandbox (with an empty name) was stopped, or may be tried again.
    Stop(String, bool),
    /// A hook after a start is over.
    Hook {
        name: String,
        id: String,
        well: bool,
    },
    /// A probe was answered.
    Answer {
        name: String,
        id: String,
        kind: Kind,
        /// Nothing, if it could not be asked.
        success: Option<bool>,
    },
    /// Old runs and sandboxes were removed, or may be tried again.
    Pruned(Vec<String>, bool),
    /// What the pod was given is taken back, now that it is over.
    Rested,
    /// Nothing is left of it.
    Cleared,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It lives.
    Living,
    /// It is over, and stays for people to look at.
    Resting,
    /// It is taken away.
    Clearing,
    /// Nothing of it is left here.
    Cleared,
}

/// See the [module](self).
pub(super) struct Worker {
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    news: mpsc::UnboundedReceiver<News>,
    /// It needs no room any more.
    released: Arc<AtomicBool>,
    voice: Voice,
    memory: Memory,
    observed: Observed,
    stale: Vec<String>,
    /// When the runtime is to be looked at, and how often that failed.
    look: Option<(Instant, u32)>,
    stage: Stage,
    fate: Option<Ending>,
    gone: bool,
    tasks: JoinSet<Outcome>,
    /// The containers that something is being done with; an empty name is the sandbox.
    busy: BTreeSet<String>,
    kills: BTreeMap<String, AbortHandle>,
    /// How often ending a container or sandbox failed.
    kill_tries: BTreeMap<String, u32>,
    asking: BTreeSet<(String, Kind)>,
    hooking: BTreeSet<String>,
    /// The runs whose logs are shown.
    linked: BTreeSet<String>,
    pruning: BTreeSet<String>,
    /// Stops starts that still wait for something.
    ending: CancellationToken,
    telling: tell::Telling,
}

/// What a worker begins with.
pub(super) struct Beginning {
    pub(super) pod: Arc<Pod>,
    pub(super) news: mpsc::UnboundedReceiver<News>,
    pub(super) released: Arc<AtomicBool>,
    /// Why it may not run at all.
    pub(super) refused: Option<Verdict>,
    /// Nobody wants it any more.
    pub(super) gone: bool,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, beginning: Beginning) -> Self {
        let Beginning {
            pod,
            news,
            released,
            refused,
            gone,
        } = beginning;
        let voice = Voice::of(&shared.recorder, &pod);
        let status = &pod.object["status"];
        let mut worker = Self {
            memory: Memory::recall(status),
            telling: tell::Telling::new(&pod),
            shared,
            news,
            released,
            voice,
            observed: Observed::default(),
            stale: Vec::new(),
            look: Some((Duration::ZERO, 0)),
            stage: Stage::Living,
            fate: None,
            gone: false,
            tasks: JoinSet::new(),
            busy: BTreeSet::new(),
            kills: BTreeMap::new(),
            kill_tries: BTreeMap::new(),
            asking: BTreeSet::new(),
            hooking: BTreeSet::new(),
            linked: BTreeSet::new(),
            pruning: BTreeSet::new(),
            ending: CancellationToken::new(),
            pod: Arc::clone(&pod),
        };
        worker.begin(refused, gone);
        worker
    }

    /// Looks after the pod until nobody wants it and nothing of it is left.
    pub(super) async fn run(mut self) {
        loop {
            self.look_if_due().await;
            let wake = match self.look {
                None => self.step(),
                Some((due, _)) => Some(due),
            };
            if self.gone && self.stage == Stage::Cleared {
                self.shared.reports.forget(&self.pod.id.uid);
                self.shared.parts.directory.remove(&self.pod.id.uid);
                return;
            }
            let wake = wake.map(|wake| self.shared.began + wake);
            tokio::select! {
                news = self.news.recv() => match news {
                    Some(news) => self.hear_all(news),
                    None => return,
                },
                Some(ended) = self.tasks.join_next() => self.ended(ended),
                () = sleep_until(wake) => {}
            }
        }
    }

    fn hear_all(&mut self, first: News) {
        let mut next = Some(first);
        while let Some(news) = next {
            self.hear(news);
            next = self.news.try_recv().ok();
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Pod(pod) => self.pod_changed(pod),
            News::Gone => self.unwanted(),
            News::Look => self.look_now(),
            News::Evict(verdict, grace) => self.evict(verdict, grace),
        }
    }

    fn look_now(&mut self) {
        self.look = Some((Duration::ZERO, 0));
    }

    async fn look_if_due(&mut self) {
        let Some((due, tries)) = self.look else {
            return;
        };
        if due > self.shared.now() {
            return;
        }
        let looking = self.shared.parts.runtime.look(&self.pod.id.uid);
        let found = tokio::time::timeout(LOOK, looking).await;
        let late = || runtime::Error::TimedOut("it does not answer".to_owned());
        match found.unwrap_or_else(|_| Err(late())) {
            Ok(found) => {
                self.look = None;
                self.saw(found).await;
            }
            Err(error) => {
                tracing::warn!(pod = %self.pod.id.name, "the runtime was not seen: {error}");
                let again = self.shared.now() + LOOK_AGAIN * (tries + 1).min(10);
                self.look = Some((again, tries + 1));
            }
        }
    }

    async fn saw(&mut self, found: Option<Found>) {
        let (observed, stale) = match found {
            Some(found) => (found.observed, found.stale),
            None => (Observed::default(), Vec::new()),
        };
        self.observed = self.with_last_words(observed).await;
        self.show_logs();
        self.stale = stale;
        let now = self.shared.now();
        self.memory.saw(&self.pod.spec, &self.observed, now);
    }

    /// Does what is next. Says when to ask again if nothing happens.
    fn step(&mut self) -> Option<Instant> {
        let now = self.shared.now();
        let mut wake = self.check_deadline(now);
        if matches!(self.stage, Stage::Living | Stage::Resting) {
            let situation = Situation {
                spec: &self.pod.spec,
                observed: &self.observed,
                memory: &self.memory,
                wanted: match &self.fate {
                    None => Wanted::Run,
                    Some(ending) => Wanted::End(ending.deadline),
                },
                busy: &self.busy,
                now,
            };
            let plan = plan(&situation);
            for action in plan.actions {
                self.carry_out(action);
            }
            if plan.over && self.busy.is_empty() {
                self.is_over(now);
            }
            wake = sooner(wake, plan.wake);
        }
        if self.stage == Stage::Living {
            wake = sooner(wake, self.ask(now));
            self.prune();
        }
        self.tell();
        wake
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::StartSandbox { attempt } => self.start_sandbox(attempt),
            Action::Start { name, attempt } => self.start(name, attempt),
            Action::Kill {
                name,
                id,
                grace,
                why,
            } => self.kill(name, id, grace, why),
            Action::StopSandbox { id } => self.stop_sandbox(id),
        }
    }

    fn ended(&mut self, ended: Result<Outcome, JoinError>) {
        let outcome = match ended.map_err(JoinError::try_into_panic) {
            Ok(outcome) => outcome,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // A kill that was begun anew.
            Err(Err(_cancelled)) => return self.look_now(),
        };
        let now = self.shared.now();
        match outcome {
            Outcome::Sandbox(result) => self.started("", result, now),
            Outcome::Start(name, result) => self.started(&name, result, now),
            Outcome::Stop(name, well) => {
                self.busy.remove(&name);
                self.kills.remove(&name);
                self.tried(&name, well);
                self.look_now();
            }
            Outcome::Hook { name, id, well } => {
                self.hooking.remove(&id);
                self.memory.hook_ended(&name, &id, well);
            }
            Outcome::Answer {
                name,
                id,
                kind,
                success,
            } => self.answered(name, &id, kind, success, now),
            Outcome::Pruned(ids, well) => {
                self.tried(kill::OLD, well);
                self.pruning.retain(|id| !ids.contains(id));
                self.look_now();
            }
            Outcome::Rested => {}
            Outcome::Cleared => self.cleared(),
        }
    }

    fn started(&mut self, name: &str, result: Result<(), act::Hindrance>, now: Instant) {
        self.busy.remove(name);
        match result {
            Ok(()) => self.memory.started(name),
            Err(act::Hindrance::Ended) => {}
            Err(act::Hindrance::Away) => {
                self.look = Some((now + LOOK_AGAIN, 0));
                return;
            }
            Err(act::Hindrance::Trouble(trouble)) => self.could_not_start(name, trouble, now),
        }
        self.look_now();
    }

    fn could_not_start(&mut self, name: &str, trouble: Trouble, now: Instant) {
        if trouble.waiting == act::IMAGE_BACK_OFF {
            let image = self.pod.spec.container(name).map(|c| c.image.as_str());
            let image = image.unwrap_or_default();
            let message = format!("Back-off pulling image \"{image}\"");
            self.voice.say("BackOff", message);
            self.voice
                .warn("Failed", format!("Error: {}", act::IMAGE_BACK_OFF));
        }
        self.memory.could_not_start(name, trouble, now);
    }

    fn release(&self) {
        if !self.released.swap(true, Ordering::SeqCst) {
            self.shared.freed.notify_one();
        }
    }

    fn raw(&self, container: &str) -> &Value {
        self.pod.raw_container(container).unwrap_or(&Value::Null)
    }
}

fn sooner(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

async fn sleep_until(wake: Option<tokio::time::Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

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
mod image;
mod kill;
mod look;
mod outcome;
mod shared;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kennel_core::pod::plan::{Situation, Wanted, plan};
use kennel_core::pod::probe::Kind;
use kennel_core::pod::status::Verdict;
use kennel_core::pod::{Action, Instant, Memory, Observed};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::Pod;
use super::voice::Voice;
use fate::Ending;
use outcome::Outcome;
pub(super) use shared::Shared;

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

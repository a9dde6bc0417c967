//! What a node remembers of a pod beyond what runs: failures, answers to probes, hooks.
//!
//! It is lost when the agent ends. [`Memory::recall`] brings back from the last status what must not be asked
//! anew: a container that was ready stays so until a probe says otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::backoff::Backoff;
use super::probe::{Judgement, Kind};
use super::{Container, Instant, Observed, Run, Spec};

const KINDS: [Kind; 3] = [Kind::Startup, Kind::Liveness, Kind::Readiness];

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Memory {
    containers: BTreeMap<String, Remembered>,
}

/// Of one container.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The waits between its restarts.
    pub restarts: Backoff,
    /// The waits between tries to get its image or to make it.
    pub tries: Backoff,
    /// What keeps it from being started.
    pub trouble: Option<Trouble>,
    /// The run whose end is already counted.
    counted: String,
    run: Lively,
    recalled: Option<Recalled>,
}

/// What keeps a container from being started, in the words that users know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Such as `ErrImagePull`.
    pub reason: &'static str,
    /// Such as `ImagePullBackOff`: what it is called while we wait to try again.
    pub waiting: &'static str,
    /// The details.
    pub message: String,
}

/// Of a run that is alive.
#[derive(Clone, Debug, Default)]
struct Lively {
    id: String,
    judgements: BTreeMap<Kind, Judgement>,
    hook: Hook,
}

/// How the hook after a start is going.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// Not yet over.
    #[default]
    Due,
    /// It went well, or there is none.
    Done,
    /// It did not.
    Failed,
}

#[derive(Clone, Debug)]
struct Recalled {
    id: String,
    ready: bool,
    started: bool,
}

impl Memory {
    /// What a pod's last status says about its containers.
    pub fn recall(status: &Value) -> Self {
        let mut memory = Self::default();
        let lists = ["initContainerStatuses", "containerStatuses"];
        let all = lists
            .iter()
            .filter_map(|list| status[list].as_array())
            .flatten();
        for status in all {
            let Some(name) = status["name"].as_str() else {
                continue;
            };
            let id = status["containerID"].as_str().unwrap_or_default();
            let id = id.split_once("://").map_or(id, |(_, id)| id).to_owned();
            let remembered = memory.containers.entry(name.to_owned()).or_default();
            remembered.counted.clone_from(&id);
            remembered.recalled = Some(Recalled {
                id,
                ready: status["ready"] == true,
                started: status["started"] == true,
            });
        }
        memory
    }

    /// Takes in what runs now.
    pub fn saw(&mut self, spec: &Spec, observed: &Observed, now: Instant) {
        for container in spec.init_containers.iter().chain(&spec.containers) {
            let Some(run) = observed.latest(&container.name) else {
                continue;
            };
            let remembered = self.containers.entry(container.name.clone()).or_default();
            remembered.saw(container, run, now);
        }
    }

    /// A container could not be started.
    pub fn could_not_start(&mut self, name: &str, trouble: Trouble, now: Instant) {
        let remembered = self.containers.entry(name.to_owned()).or_default();
        remembered.tries.failed(now);
        remembered.trouble = Some(trouble);
    }

    /// A container was started.
    pub fn started(&mut self, name: &str) {
        let remembered = self.containers.entry(name.to_owned()).or_default();
        remembered.tries = Backoff::default();
        remembered.trouble = None;
    }

    /// The hook of a run is over.
    pub fn hook_ended(&mut self, name: &str, id: &str, well: bool) {
        if let Some(run) = self.lively(name, id) {
            run.hook = if well { Hook::Done } else { Hook::Failed };
        }
    }

    /// A probe of a run was answered.
    pub fn answered(&mut self, container: &Container, id: &str, answer: Answer, now: Instant) {
        let Some(run) = self.lively(&container.name, id) else {
            return;
        };
        let judgement = run.judgements.get_mut(&answer.kind);
        if let Some((judgement, probe)) = judgement.zip(container.probe(answer.kind)) {
            judgement.answered(probe, answer.success, now);
        }
    }

    /// A probe of a run could not be asked: nothing is known, and it is asked again in its time.
    pub fn not_answered(&mut self, container: &Container, id: &str, kind: Kind, now: Instant) {
        let Some(run) = self.lively(&container.name, id) else {
            return;
        };
        let judgement = run.judgements.get_mut(&kind);
        if let Some((judgement, probe)) = judgement.zip(container.probe(kind)) {
            judgement.not_answered(probe, now);
        }
    }

    fn lively(&mut self, name: &str, id: &str) -> Option<&mut Lively> {
        let remembered = self.containers.get_mut(name)?;
        Some(&mut remembered.run).filter(|run| run.id == id)
    }

    /// Of a container.
    pub fn of(&self, name: &str) -> Option<&Remembered> {
        self.containers.get(name)
    }
}

/// An answer to a probe.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Which probe.
    pub kind: Kind,
    /// Was it well?
    pub success: bool,
}

impl Remembered {
    fn saw(&mut self, container: &Container, run: &Run, now: Instant) {
        if let Some(exit) = run.exit() {
            if self.counted != run.id {
                self.counted.clone_from(&run.id);
                let lived = exit.until.saturating_sub(exit.since).max(0);
                self.restarts
                    .ended(now, Duration::from_secs(lived.unsigned_abs()));
            }
        } else if run.is_running() && self.run.id != run.id {
            self.run = self.begin(container, run, now);
        }
    }

    /// What to ask of a run that has just begun, or that was there before we were.
    fn begin(&self, container: &Container, run: &Run, now: Instant) -> Lively {
        let before = self.recalled.as_ref().filter(|before| before.id == run.id);
        let judge = |kind| {
            let mut judgement = Judgement::new(kind, container.probe(kind)?, now);
            judgement.passed |= match kind {
                Kind::Startup => before.is_some_and(|before| before.started),
                Kind::Readiness => before.is_some_and(|before| before.ready),
                Kind::Liveness => true,
            };
            Some((kind, judgement))
        };
        // Whether the hook of a run from before went well, nobody knows any more: it is not run twice.
        let done = !container.has_post_start() || before.is_some();
        Lively {
            id: run.id.clone(),
            judgements: KINDS.into_iter().filter_map(judge).collect(),
            hook: if done { Hook::Done } else { Hook::Due },
        }
    }

    fn passed(&self, kind: Kind) -> bool {
        let judgement = self.run.judgements.get(&kind);
        judgement.is_none_or(|judgement| judgement.passed)
    }

    /// Is this run up?
    pub fn is_started(&self, run: &Run) -> bool {
        let ours = run.is_running() && self.run.id == run.id;
        ours && self.run.hook == Hook::Done && self.passed(Kind::Startup)
    }

    /// May this run be used?
    pub fn is_ready(&self, run: &Run) -> bool {
        self.is_started(run) && self.passed(Kind::Readiness)
    }

    /// The hook of this run has yet to be run or has failed.
    pub fn hook(&self, run: &Run) -> Option<&Hook> {
        (self.run.id == run.id).then_some(&self.run.hook)
    }

    /// The probe of this run that has failed for good.
    pub fn failed(&self, run: &Run) -> Option<Kind> {
        let failed = |kind: &Kind| {
            let judgement = self.run.judgements.get(kind);
            judgement.is_some_and(Judgement::failed)
        };
        let deadly = [Kind::Startup, Kind::Liveness];
        deadly
            .into_iter()
            .filter(|_| self.run.id == run.id)
            .find(failed)
    }

    /// The probes of this run, with the times of their next questions. Others wait for the startup probe.
    pub fn questions(&self, run: &Run) -> Vec<(Kind, Instant)> {
        if self.run.id != run.id || self.run.hook != Hook::Done || !run.is_running() {
            return Vec::new();
        }
        let up = self.passed(Kind::Startup);
        let asked = |kind: &Kind| (*kind == Kind::Startup) != up;
        let all = self.run.judgements.iter();
        all.filter(|(kind, _)| asked(kind))
            .map(|(kind, judgement)| (*kind, judgement.due))
            .collect()
    }
}

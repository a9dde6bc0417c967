//! How the tasks of a worker end, and what that means for its pod.

use kennel_core::pod::Instant;
use kennel_core::pod::memory::Trouble;
use kennel_core::pod::probe::Kind;
use tokio::task::JoinError;

use super::look::LOOK_AGAIN;
use super::{Worker, act, kill};

/// How a task ended.
pub(super) enum Outcome {
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

impl Worker {
    pub(super) fn ended(&mut self, ended: Result<Outcome, JoinError>) {
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
            let voice = self.voice_of(name);
            voice.say("BackOff", message);
            voice.warn("Failed", format!("Error: {}", act::IMAGE_BACK_OFF));
        }
        self.memory.could_not_start(name, trouble, now);
    }
}

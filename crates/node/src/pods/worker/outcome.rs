//! The results of a worker's tasks, and how the worker handles them.

use kennel_client::backoff;
use kennel_core::pod::tracker::StartFailure;
use kennel_types::Monotonic;
use kennel_types::ProbeKind;
use kennel_types::pod::WaitingReason;
use tokio::task::JoinError;

use super::start::StartError;
use super::{Worker, kill, observe};

pub(super) enum Outcome {
    Sandbox(Result<(), StartError>),
    /// A container, by name.
    Start(String, Result<(), StartError>),
    /// A container, or the sandbox (an empty name). False if the worker may retry now.
    Stop(String, bool),
    /// A `postStart` hook.
    Hook {
        name: String,
        id: String,
        succeeded: bool,
    },
    Probe {
        name: String,
        id: String,
        kind: ProbeKind,
        /// None if the probe could not run.
        success: Option<bool>,
    },
    /// Ids of runs and sandboxes. False if the worker may retry now.
    Pruned(Vec<String>, bool),
    InputsRemoved,
    AllRemoved,
}

impl Worker {
    pub(super) fn on_task_ended(&mut self, ended: Result<Outcome, JoinError>) {
        let outcome = match ended.map_err(JoinError::try_into_panic) {
            Ok(outcome) => outcome,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // `restart_kills` aborted it.
            Err(Err(_cancelled)) => return self.observe_now(),
        };
        let now = self.shared.now();
        match outcome {
            Outcome::Sandbox(result) => self.on_start_ended("", result, now),
            Outcome::Start(name, result) => self.on_start_ended(&name, result, now),
            Outcome::Stop(name, succeeded) => {
                self.busy.remove(&name);
                self.kills.remove(&name);
                self.reset_retry_delay_if(succeeded, &name);
                self.observe_now();
            }
            Outcome::Hook {
                name,
                id,
                succeeded,
            } => {
                self.running_hooks.remove(&id);
                self.tracker.hook_finished(&name, &id, succeeded);
            }
            Outcome::Probe {
                name,
                id,
                kind,
                success,
            } => self.on_probe_ended(name, &id, kind, success, now),
            Outcome::Pruned(ids, succeeded) => {
                self.reset_retry_delay_if(succeeded, kill::PRUNE);
                self.pruning.retain(|id| !ids.contains(id));
                self.observe_now();
            }
            Outcome::InputsRemoved => {}
            Outcome::AllRemoved => self.on_all_removed(),
        }
    }

    fn on_start_ended(&mut self, name: &str, result: Result<(), StartError>, now: Monotonic) {
        self.busy.remove(name);
        match result {
            Ok(()) => self.tracker.started(name),
            Err(StartError::Terminating) => {}
            Err(StartError::RuntimeUnavailable) => {
                self.observation_due = Some((now + backoff::delay(&observe::RETRY, 0), 0));
                return;
            }
            Err(StartError::Failed(failure)) => self.on_start_failed(name, failure, now),
        }
        self.observe_now();
    }

    fn on_start_failed(&mut self, name: &str, failure: StartFailure, now: Monotonic) {
        if failure.backoff_reason == WaitingReason::ImagePullBackOff {
            let image = self.pod.spec.container(name).map(|c| c.image.as_str());
            let image = image.unwrap_or_default();
            let events = self.container_events(name);
            events.normal("BackOff", format!("Back-off pulling image \"{image}\""));
            events.warn("Failed", format!("Error: {}", failure.backoff_reason));
        }
        self.tracker.start_failed(name, failure, now);
    }
}

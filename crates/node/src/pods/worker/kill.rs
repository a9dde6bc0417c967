//! Stops containers and sandboxes. Records an event when that fails, and retries with growing delays.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{self, Policy};
use kennel_core::pod::plan::KillReason;
use kennel_types::ProbeKind;

use super::start::with_timeout;
use super::{Outcome, Worker};
use crate::pods::events::PodEvents;
use crate::pods::traits::{ProbeRequest, ProbeRunner};
use crate::runtime::{Error, Runtime};

/// The grace period of a container whose `preStop` hook has used up the pod's.
const MIN_GRACE_PERIOD: Duration = Duration::from_secs(2);
/// How much longer than its grace period stopping a container may take.
const STOP_TIMEOUT: Duration = Duration::from_mins(2);
/// Before a failed call to the runtime is tried again.
const RETRY: Policy = Policy::exact(Duration::from_secs(1), Duration::from_mins(2));

/// Keys of `kill_failures` beside the names of containers, which contain no slash.
pub(super) const PRUNE: &str = "/prune";
pub(super) const REMOVE: &str = "/remove";

/// What a task that stops a container needs.
struct Kill {
    runtime: Arc<dyn Runtime>,
    events: PodEvents,
    id: String,
    grace: Duration,
    probes: Arc<dyn ProbeRunner>,
    pre_stop: Option<ProbeRequest>,
}

impl Worker {
    pub(super) fn kill(&mut self, name: String, id: String, grace: Duration, why: KillReason) {
        self.busy.insert(name.clone());
        self.record_killing(&name, why);
        let kill = Kill {
            runtime: Arc::clone(&self.shared.dependencies.runtime),
            events: self.container_events(&name),
            probes: Arc::clone(&self.shared.dependencies.probes),
            pre_stop: self.pre_stop_hook(&name, &id),
            id,
            grace,
        };
        let (pod_events, delay) = (self.events.clone(), self.next_retry_delay(&name));
        let task = name.clone();
        let handle = self.tasks.spawn(async move {
            let stopped = kill.stop().await;
            let succeeded = wait_after_failure(stopped, &pod_events, delay).await;
            Outcome::Stop(task, succeeded)
        });
        self.kills.insert(name, handle);
    }

    pub(super) fn stop_sandbox(&mut self, id: String) {
        self.busy.insert(String::new());
        let runtime = Arc::clone(&self.shared.dependencies.runtime);
        let (events, delay) = (self.events.clone(), self.next_retry_delay(""));
        self.tasks.spawn(async move {
            let stopped = with_timeout(STOP_TIMEOUT, runtime.stop_sandbox(&id)).await;
            let succeeded = wait_after_failure(stopped, &events, delay).await;
            Outcome::Stop(String::new(), succeeded)
        });
    }

    /// Aborts all kills, so that the next step starts them again with the shorter grace period.
    pub(super) fn restart_kills(&mut self) {
        for (name, kill) in std::mem::take(&mut self.kills) {
            kill.abort();
            self.busy.remove(&name);
            self.kill_failures.remove(&name);
            self.observe_now();
        }
    }

    /// The delay after this attempt, should it fail.
    pub(super) fn next_retry_delay(&mut self, key: &str) -> Duration {
        let failures = self.kill_failures.entry(key.to_owned()).or_default();
        let delay = backoff::delay(&RETRY, *failures);
        *failures = failures.saturating_add(1);
        delay
    }

    pub(super) fn reset_retry_delay_if(&mut self, succeeded: bool, key: &str) {
        if succeeded {
            self.kill_failures.remove(key);
        }
    }

    fn pre_stop_hook(&self, name: &str, id: &str) -> Option<ProbeRequest> {
        let hook = &self.raw_container(name)["lifecycle"]["preStop"];
        let container = self.pod.spec.container(name)?;
        let run = self.observed.runs.iter().find(|run| run.id == id)?;
        hook.is_object()
            .then(|| self.container_probe(container, run, hook.clone()))
    }

    fn record_killing(&self, name: &str, why: KillReason) {
        let message = match why {
            KillReason::PodTerminating | KillReason::SandboxGone => {
                format!("Stopping container {name}")
            }
            KillReason::ProbeFailed(ProbeKind::Startup) => {
                format!("Container {name} failed startup probe, will be restarted")
            }
            KillReason::ProbeFailed(_) => {
                format!("Container {name} failed liveness probe, will be restarted")
            }
            KillReason::PostStartHookFailed => "FailedPostStartHook".to_owned(),
            KillReason::ImageChanged => {
                format!("Container {name} definition changed, will be restarted")
            }
        };
        if !self.kill_failures.contains_key(name) {
            self.container_events(name).normal("Killing", message);
        }
    }
}

impl Kill {
    /// Runs the `preStop` hook, whose time counts towards the grace period, and stops the container.
    async fn stop(&self) -> Result<(), Error> {
        let grace = match &self.pre_stop {
            None => self.grace,
            Some(hook) => {
                let started = tokio::time::Instant::now();
                let ended = tokio::time::timeout(self.grace, self.probes.run_hook(hook)).await;
                if !matches!(ended, Ok(Ok(()))) {
                    self.events.warn("FailedPreStopHook", "PreStopHook failed");
                }
                let left = self.grace.saturating_sub(started.elapsed());
                left.max(MIN_GRACE_PERIOD)
            }
        };
        with_timeout(grace + STOP_TIMEOUT, self.runtime.stop(&self.id, grace)).await
    }
}

/// After a failure, records an event and waits before the worker may retry. Returns whether it succeeded.
pub(super) async fn wait_after_failure(
    result: Result<(), Error>,
    events: &PodEvents,
    delay: Duration,
) -> bool {
    let Err(error) = result else {
        return true;
    };
    events.warn("FailedKillPod", format!("error killing pod: {error}"));
    tokio::time::sleep(delay).await;
    false
}

//! Ends containers and sandboxes. What cannot be ended is tried again, with longer and longer pauses, and said.

use std::sync::Arc;
use std::time::Duration;

use kennel_core::pod::plan::Why;
use kennel_core::pod::probe::Kind;

use super::act::bounded;
use super::ask::Asked;
use super::{Outcome, Worker};
use crate::pods::voice::Voice;
use crate::runtime::{Error, Runtime};

/// Whatever time a hook took, a container gets so long to end well.
const LEAST: Duration = Duration::from_secs(2);
/// How much longer than its grace ending a container may take.
const EXTRA: Duration = Duration::from_mins(2);
/// The first pause after a failure; doubled each time.
const PAUSE: Duration = Duration::from_secs(1);
/// And the longest.
const PAUSE_MAX: Duration = Duration::from_mins(2);

/// Tries to take old runs and sandboxes away are counted under this name.
pub(super) const OLD: &str = "/old";
/// And those to take everything away under this one.
pub(super) const ALL: &str = "/all";

/// A container that is to end.
struct Kill {
    runtime: Arc<dyn Runtime>,
    voice: Voice,
    id: String,
    grace: Duration,
    hook: Option<Asked>,
}

impl Worker {
    pub(super) fn kill(&mut self, name: String, id: String, grace: Duration, why: Why) {
        self.busy.insert(name.clone());
        self.say_why(&name, why);
        let kill = Kill {
            runtime: Arc::clone(&self.shared.parts.runtime),
            voice: self.voice_of(&name),
            hook: self.pre_stop(&name, &id),
            id,
            grace,
        };
        let (whole, pause) = (self.voice.clone(), self.next_pause(&name));
        let task = name.clone();
        let handle = self.tasks.spawn(async move {
            let ended = kill.carry_out().await;
            let well = rest_if_failed(ended, &whole, pause).await;
            Outcome::Stop(task, well)
        });
        self.kills.insert(name, handle);
    }

    pub(super) fn stop_sandbox(&mut self, id: String) {
        self.busy.insert(String::new());
        let runtime = Arc::clone(&self.shared.parts.runtime);
        let (voice, pause) = (self.voice.clone(), self.next_pause(""));
        self.tasks.spawn(async move {
            let stopped = bounded(EXTRA, runtime.stop_sandbox(&id)).await;
            let well = rest_if_failed(stopped, &voice, pause).await;
            Outcome::Stop(String::new(), well)
        });
    }

    /// Whoever is being ended is ended anew, with what is left of the time.
    pub(super) fn hasten(&mut self) {
        for (name, kill) in std::mem::take(&mut self.kills) {
            kill.abort();
            self.busy.remove(&name);
            self.kill_tries.remove(&name);
            self.look_now();
        }
    }

    /// How long to wait after this try, should it fail.
    pub(super) fn next_pause(&mut self, name: &str) -> Duration {
        let tries = self.kill_tries.entry(name.to_owned()).or_default();
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow((*tries).min(16)));
        *tries += 1;
        pause.min(PAUSE_MAX)
    }

    /// What ended well begins anew the next time.
    pub(super) fn tried(&mut self, name: &str, well: bool) {
        if well {
            self.kill_tries.remove(name);
        }
    }

    fn pre_stop(&self, name: &str, id: &str) -> Option<Asked> {
        let hook = &self.raw(name)["lifecycle"]["preStop"];
        let container = self.pod.spec.container(name)?;
        let run = self.observed.runs.iter().find(|run| run.id == id)?;
        hook.is_object()
            .then(|| self.asked(container, run, hook.clone()))
    }

    fn say_why(&self, name: &str, why: Why) {
        let message = match why {
            Why::PodEnds | Why::SandboxGone => format!("Stopping container {name}"),
            Why::Probe(Kind::Startup) => {
                format!("Container {name} failed startup probe, will be restarted")
            }
            Why::Probe(_) => format!("Container {name} failed liveness probe, will be restarted"),
            Why::PostStart => "FailedPostStartHook".to_owned(),
            Why::Changed => format!("Container {name} definition changed, will be restarted"),
        };
        if !self.kill_tries.contains_key(name) {
            self.voice_of(name).say("Killing", message);
        }
    }
}

impl Kill {
    async fn carry_out(&self) -> Result<(), Error> {
        let left = match &self.hook {
            None => self.grace,
            Some(hook) => {
                let began = tokio::time::Instant::now();
                let ended = tokio::time::timeout(self.grace, hook.hook()).await;
                if !matches!(ended, Ok(Ok(()))) {
                    self.voice.warn("FailedPreStopHook", "PreStopHook failed");
                }
                self.grace.saturating_sub(began.elapsed()).max(LEAST)
            }
        };
        bounded(left + EXTRA, self.runtime.stop(&self.id, left)).await
    }
}

/// Says what could not be ended and waits, so that it is not tried again at once. Did it go well?
pub(super) async fn rest_if_failed(
    ended: Result<(), Error>,
    voice: &Voice,
    pause: Duration,
) -> bool {
    let Err(error) = ended else {
        return true;
    };
    voice.warn("FailedKillPod", format!("error killing pod: {error}"));
    tokio::time::sleep(pause).await;
    false
}

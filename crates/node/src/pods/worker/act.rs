//! Makes sandboxes and starts containers, as tasks that end in bounded time.
//!
//! A start that waits (for its turn, for an image) gives up when the pod is to end. Once the runtime has been
//! told to make something it is waited for, so that nothing appears after its pod was cleared away.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kennel_core::pod::memory::Trouble;
use kennel_core::pod::{Run, Sandbox, State};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::{Outcome, Shared, Worker};
use crate::pods::Pod;
use crate::pods::voice::Voice;
use crate::runtime::{Error, Image, Result as Done, Runtime};

/// What waiting for an image is called.
pub(super) const IMAGE_BACK_OFF: &str = "ImagePullBackOff";
/// How long a runtime may take to make something.
const CALL: Duration = Duration::from_mins(4);
/// Why something was not started.
#[derive(Debug)]
pub(super) enum Hindrance {
    /// The pod is to end.
    Ended,
    /// The runtime does not answer: as soon as it does, it is tried again.
    Away,
    /// It could not be.
    Trouble(Trouble),
}

pub(super) type Started<T> = Result<T, Hindrance>;

/// What a start takes along.
pub(super) struct Start {
    pub(super) shared: Arc<Shared>,
    pub(super) pod: Arc<Pod>,
    pub(super) voice: Voice,
    ending: CancellationToken,
}

impl Worker {
    /// Says things about one of its containers.
    pub(super) fn voice_of(&self, name: &str) -> Voice {
        self.voice.of_container(&self.pod, name)
    }

    fn start_of(&self) -> Start {
        Start {
            shared: Arc::clone(&self.shared),
            pod: Arc::clone(&self.pod),
            voice: self.voice.clone(),
            ending: self.ending.clone(),
        }
    }

    pub(super) fn start_sandbox(&mut self, attempt: u32) {
        self.busy.insert(String::new());
        let known = self.observed.sandbox.is_some();
        let start = self.start_of();
        self.tasks.spawn(async move {
            if known {
                let message = "Pod sandbox changed, it will be killed and re-created.";
                start.voice.say("SandboxChanged", message);
            }
            Outcome::Sandbox(start.sandbox(attempt).await)
        });
    }

    pub(super) fn start(&mut self, name: String, attempt: u32) {
        let Some(sandbox) = self.observed.sandbox.clone() else {
            return;
        };
        self.busy.insert(name.clone());
        let attempt = self.telling.next_attempt(&name, attempt, &self.observed);
        let mut runs = self.observed.runs.iter();
        let made = runs.find(|run| run.name == name && run.attempt == attempt);
        let made = made.cloned();
        let start = Start {
            voice: self.voice_of(&name),
            ..self.start_of()
        };
        self.tasks.spawn(async move {
            let result = start.container(&name, attempt, &sandbox, made).await;
            Outcome::Start(name, result)
        });
    }
}

impl Start {
    pub(super) fn runtime(&self) -> &dyn Runtime {
        &*self.shared.parts.runtime
    }

    /// Waits for something, unless the pod is to end.
    pub(super) async fn unless_ended<T>(&self, what: impl Future<Output = T>) -> Started<T> {
        tokio::select! {
            biased;
            () = self.ending.cancelled() => Err(Hindrance::Ended),
            done = what => Ok(done),
        }
    }

    pub(super) async fn turn<'a>(&self, turns: &'a Semaphore) -> Started<SemaphorePermit<'a>> {
        let turn = self.unless_ended(turns.acquire()).await?;
        turn.map_err(|_closed| Hindrance::Ended)
    }

    async fn sandbox(&self, attempt: u32) -> Started<()> {
        let _turn = self.turn(&self.shared.starts).await?;
        let (supplies, pod) = (&self.shared.parts.supplies, &*self.pod);
        let ready = async {
            supplies.prepare(pod).await?;
            supplies.sandbox(pod, attempt).await
        };
        let config = match self.unless_ended(ready).await? {
            Ok(config) => config,
            Err(trouble) => {
                self.voice.warn(trouble.reason, trouble.message.clone());
                return Err(Hindrance::Trouble(trouble));
            }
        };
        let made = bounded(CALL, self.runtime().start_sandbox(&config)).await;
        made.map(drop).map_err(|error| {
            if matches!(error, Error::Unavailable(_)) {
                return Hindrance::Away;
            }
            let message = format!("Failed to create pod sandbox: {error}");
            self.voice.warn("FailedCreatePodSandBox", message.clone());
            Hindrance::Trouble(Trouble {
                reason: "FailedCreatePodSandBox",
                waiting: "ContainerCreating",
                message,
            })
        })
    }

    async fn container(
        &self,
        name: &str,
        attempt: u32,
        sandbox: &Sandbox,
        made: Option<Run>,
    ) -> Started<()> {
        let image = self.image(name).await?;
        let _turn = self.turn(&self.shared.starts).await?;
        let id = match self.take_up(name, sandbox, made).await? {
            Some(id) => id,
            None => self.create(name, attempt, sandbox, &image).await?,
        };
        match bounded(CALL, self.runtime().start(&id)).await {
            Ok(()) => {
                self.voice.say("Started", "Container started");
                Ok(())
            }
            Err(error) => {
                self.forget_unstarted(&id).await;
                Err(self.refused("RunContainerError", &error))
            }
        }
    }

    /// What an agent before us has made and not started is started now, if it is still what is wanted.
    async fn take_up(
        &self,
        name: &str,
        sandbox: &Sandbox,
        made: Option<Run>,
    ) -> Started<Option<String>> {
        let Some(made) = made.filter(|made| made.state == State::Created) else {
            return Ok(None);
        };
        let image = self.pod.spec.container(name).map(|c| c.image.as_str());
        if made.sandbox == sandbox.id && Some(made.image.as_str()) == image {
            return Ok(Some(made.id));
        }
        match bounded(CALL, self.runtime().remove(&made.id)).await {
            Ok(()) => Ok(None),
            Err(error) => Err(self.refused("CreateContainerError", &error)),
        }
    }

    /// What could not be started would be in the way of the next try. If it cannot be removed, that one says so.
    async fn forget_unstarted(&self, id: &str) {
        let found = bounded(CALL, self.runtime().look(&self.pod.id.uid)).await;
        let runs = found.ok().flatten().map(|found| found.observed.runs);
        let mut runs = runs.into_iter().flatten();
        if runs.any(|run| run.id == id && run.state == State::Created)
            && let Err(error) = bounded(CALL, self.runtime().remove(id)).await
        {
            tracing::warn!(id, "an unstarted container stays: {error}");
        }
    }

    async fn create(
        &self,
        name: &str,
        attempt: u32,
        sandbox: &Sandbox,
        image: &Image,
    ) -> Started<String> {
        let parts = &self.shared.parts;
        let addresses: &[IpAddr] = match &*sandbox.addresses {
            [] => &parts.settings.addresses,
            own => own,
        };
        let (supplies, pod) = (&parts.supplies, &*self.pod);
        let configs = async {
            let shared = supplies.sandbox(pod, sandbox.attempt).await?;
            let own = supplies.container(pod, name, attempt, image, addresses);
            Ok((shared, own.await?))
        };
        let (shared, own) = configs.await.map_err(|trouble: Trouble| {
            self.failed(trouble.reason, trouble.waiting, &trouble.message)
        })?;
        let made = bounded(CALL, self.runtime().create(&shared, &sandbox.id, &own)).await;
        let id = made.map_err(|error| self.refused("CreateContainerError", &error))?;
        self.voice.say("Created", "Container created");
        Ok(id)
    }

    fn refused(&self, reason: &'static str, error: &Error) -> Hindrance {
        match error {
            Error::Unavailable(_) => Hindrance::Away,
            error => self.failed(reason, reason, &error.to_string()),
        }
    }

    fn failed(&self, reason: &'static str, waiting: &'static str, why: &str) -> Hindrance {
        self.voice.warn("Failed", format!("Error: {why}"));
        Hindrance::Trouble(Trouble {
            reason,
            waiting,
            message: why.to_owned(),
        })
    }
}

/// Gives up after a while: nothing is known then, and the runtime is looked at again.
pub(super) async fn bounded<T>(limit: Duration, call: impl Future<Output = Done<T>>) -> Done<T> {
    let late = |_| {
        let message = format!("no answer within {} seconds", limit.as_secs());
        Err(Error::TimedOut(message))
    };
    tokio::time::timeout(limit, call).await.unwrap_or_else(late)
}

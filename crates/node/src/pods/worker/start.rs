//! Creates sandboxes and starts containers, in tasks that end in bounded time.
//!
//! A start that waits for a permit or an image gives up when the pod terminates. Once the runtime has been told to
//! create something the task waits for it, so that no container appears after its pod was removed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kennel_core::pod::tracker::StartFailure;
use kennel_core::pod::{Observed, Run, Sandbox, State};
use kennel_types::pod::WaitingReason;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::{Outcome, Shared, Worker};
use crate::json::text;
use crate::pods::events::PodEvents;
use crate::pods::{Pod, start_failure};
use crate::runtime::{self, ContainerConfig, Error, Image, Runtime};

/// Timeout of calls that create or start something.
const START_TIMEOUT: Duration = Duration::from_mins(4);

/// Why a sandbox or container was not started.
#[derive(Debug)]
pub(super) enum StartError {
    /// The pod terminates.
    Terminating,
    /// The runtime does not answer. The worker tries again as soon as it does, without backoff.
    RuntimeUnavailable,
    Failed(StartFailure),
}

/// The container whose processes an ephemeral container sees.
enum Target {
    None,
    /// By the runtime's id.
    Running(String),
    /// It does not run, by name.
    Missing(String),
}

impl Target {
    fn of(container: &Value, observed: &Observed) -> Self {
        let name = text(container, "targetContainerName");
        if name.is_empty() {
            return Self::None;
        }
        match observed.latest(name).filter(|run| run.is_running()) {
            Some(run) => Self::Running(run.id.clone()),
            None => Self::Missing(name.to_owned()),
        }
    }

    /// The runtime's id; empty for none.
    fn id(self) -> Result<String, StartFailure> {
        match self {
            Self::None => Ok(String::new()),
            Self::Running(id) => Ok(id),
            Self::Missing(name) => {
                let message = format!("unable to find target container {name}");
                Err(start_failure::container_config(message))
            }
        }
    }
}

/// What a task that starts something needs of its worker.
pub(super) struct Start {
    pub(super) shared: Arc<Shared>,
    pub(super) pod: Arc<Pod>,
    pub(super) events: PodEvents,
    terminating: CancellationToken,
}

impl Worker {
    fn new_start(&self) -> Start {
        Start {
            shared: Arc::clone(&self.shared),
            pod: Arc::clone(&self.pod),
            events: self.events.clone(),
            terminating: self.terminating.clone(),
        }
    }

    pub(super) fn start_sandbox(&mut self, attempt: u32) {
        self.busy.insert(String::new());
        let replaces_another = self.observed.sandbox.is_some();
        let start = self.new_start();
        self.tasks.spawn(async move {
            if replaces_another {
                let message = "Pod sandbox changed, it will be killed and re-created.";
                start.events.normal("SandboxChanged", message);
            }
            Outcome::Sandbox(start.sandbox(attempt).await)
        });
    }

    pub(super) fn start(&mut self, name: String, attempt: u32) {
        let Some(sandbox) = self.observed.sandbox.clone() else {
            return;
        };
        self.busy.insert(name.clone());
        let attempt = self.status.next_attempt(&name, attempt, &self.observed);
        let mut runs = self.observed.runs.iter();
        let created = runs.find(|run| run.name == name && run.attempt == attempt);
        let created = created.cloned();
        let target = Target::of(self.raw_container(&name), &self.observed);
        let start = Start {
            events: self.container_events(&name),
            ..self.new_start()
        };
        self.tasks.spawn(async move {
            let result = start.container(&name, attempt, &sandbox, created, target);
            let result = result.await;
            Outcome::Start(name, result)
        });
    }
}

impl Start {
    pub(super) fn runtime(&self) -> &dyn Runtime {
        &*self.shared.dependencies.runtime
    }

    /// Awaits `future` unless the pod terminates first.
    pub(super) async fn unless_terminating<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, StartError> {
        tokio::select! {
            biased;
            () = self.terminating.cancelled() => Err(StartError::Terminating),
            output = future => Ok(output),
        }
    }

    pub(super) async fn acquire<'a>(
        &self,
        permits: &'a Semaphore,
    ) -> Result<SemaphorePermit<'a>, StartError> {
        let permit = self.unless_terminating(permits.acquire()).await?;
        permit.map_err(|_closed| StartError::Terminating)
    }

    async fn sandbox(&self, attempt: u32) -> Result<(), StartError> {
        let _permit = self.acquire(&self.shared.starts).await?;
        let (inputs, pod) = (&self.shared.dependencies.inputs, &*self.pod);
        let prepare = async {
            inputs.prepare(pod).await?;
            inputs.sandbox_config(pod, attempt).await
        };
        let failed = |failure: StartFailure| {
            self.events
                .warn(failure.reason.to_string(), failure.message.clone());
            StartError::Failed(failure)
        };
        let config = self.unless_terminating(prepare).await?.map_err(failed)?;
        let started = with_timeout(START_TIMEOUT, self.runtime().start_sandbox(&config)).await;
        started.map(drop).map_err(|error| match error {
            Error::Unavailable(_) => StartError::RuntimeUnavailable,
            error => failed(start_failure::sandbox(error)),
        })
    }

    async fn container(
        &self,
        name: &str,
        attempt: u32,
        sandbox: &Sandbox,
        created: Option<Run>,
        target: Target,
    ) -> Result<(), StartError> {
        let image = self.image(name).await?;
        let _permit = self.acquire(&self.shared.starts).await?;
        let id = if let Some(id) = self.reuse_created(name, sandbox, created).await? {
            id
        } else {
            let create = self.create(name, attempt, sandbox, &image, target);
            create.await?
        };
        match with_timeout(START_TIMEOUT, self.runtime().start(&id)).await {
            Ok(()) => {
                self.events.normal("Started", "Container started");
                Ok(())
            }
            Err(error) => {
                self.remove_unstarted(&id).await;
                Err(self.runtime_error(WaitingReason::RunContainerError, &error))
            }
        }
    }

    /// The id of a container that an earlier agent created and did not start, if it still matches the spec. Removes
    /// it otherwise.
    async fn reuse_created(
        &self,
        name: &str,
        sandbox: &Sandbox,
        created: Option<Run>,
    ) -> Result<Option<String>, StartError> {
        let Some(created) = created.filter(|created| created.state == State::Created) else {
            return Ok(None);
        };
        let image = self.pod.spec.container(name).map(|c| c.image.as_str());
        if created.sandbox == sandbox.id && Some(created.image.as_str()) == image {
            return Ok(Some(created.id));
        }
        match with_timeout(START_TIMEOUT, self.runtime().remove(&created.id)).await {
            Ok(()) => Ok(None),
            Err(error) => Err(self.runtime_error(WaitingReason::CreateContainerError, &error)),
        }
    }

    /// Removes a container that did not start, since its name would conflict with the next attempt. If this fails,
    /// that attempt reports the error.
    async fn remove_unstarted(&self, id: &str) {
        let found = with_timeout(START_TIMEOUT, self.runtime().inspect(&self.pod.id.uid)).await;
        let runs = found.ok().flatten().map(|found| found.observed.runs);
        let mut runs = runs.into_iter().flatten();
        if runs.any(|run| run.id == id && run.state == State::Created)
            && let Err(error) = with_timeout(START_TIMEOUT, self.runtime().remove(id)).await
        {
            tracing::warn!(id, "cannot remove a container that did not start: {error}");
        }
    }

    async fn create(
        &self,
        name: &str,
        attempt: u32,
        sandbox: &Sandbox,
        image: &Image,
        target: Target,
    ) -> Result<String, StartError> {
        let dependencies = &self.shared.dependencies;
        let host = dependencies.settings.addresses.current();
        let addresses: &[IpAddr] = match &*sandbox.addresses {
            [] => &host,
            own => own,
        };
        let (inputs, pod) = (&dependencies.inputs, &*self.pod);
        let configs = async {
            let sandbox = inputs.sandbox_config(pod, sandbox.attempt).await?;
            let container = inputs.container_config(pod, name, attempt, image, addresses);
            let container = ContainerConfig {
                target: target.id()?,
                ..container.await?
            };
            Ok((sandbox, container))
        };
        let (sandbox_config, config) = configs.await.map_err(|failure: StartFailure| {
            self.failed(failure.reason, failure.backoff_reason, &failure.message)
        })?;
        let create = self.runtime().create(&sandbox_config, &sandbox.id, &config);
        let created = with_timeout(START_TIMEOUT, create).await;
        let id = created
            .map_err(|error| self.runtime_error(WaitingReason::CreateContainerError, &error))?;
        self.events.normal("Created", "Container created");
        Ok(id)
    }

    fn runtime_error(&self, reason: WaitingReason<'static>, error: &Error) -> StartError {
        match error {
            Error::Unavailable(_) => StartError::RuntimeUnavailable,
            error => self.failed(reason, reason, &error.to_string()),
        }
    }

    fn failed(
        &self,
        reason: WaitingReason<'static>,
        backoff_reason: WaitingReason<'static>,
        message: &str,
    ) -> StartError {
        self.events.warn("Failed", format!("Error: {message}"));
        StartError::Failed(StartFailure {
            reason,
            backoff_reason,
            message: message.to_owned(),
        })
    }
}

/// After a timeout the result of the call is unknown; the worker observes the runtime again.
pub(super) async fn with_timeout<T>(
    timeout: Duration,
    call: impl Future<Output = runtime::Result<T>>,
) -> runtime::Result<T> {
    let timed_out = |_| {
        let message = format!("no answer within {} seconds", timeout.as_secs());
        Err(Error::TimedOut(message))
    };
    let result = tokio::time::timeout(timeout, call).await;
    result.unwrap_or_else(timed_out)
}

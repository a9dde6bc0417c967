//! The [`Runtime`] of the fake runtime.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use kennel_types::pod::WaitingReason;
use tokio::sync::mpsc;

use super::script::Script;
use super::{FakeRuntime, KILLED, RuntimeEvent, TERMINATED, UNPULLABLE_REGISTRY};
use crate::runtime::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};
use crate::sync::lock;

/// Pods whose changes may wait for the listener; beyond that, it relists.
const CHANGES: usize = 1024;

fn unsupported() -> Error {
    Error::Refused(
        "containers of --runtime=simulated support no exec, attach or port-forward: \
         start the agent with --runtime=process or --runtime=cri"
            .to_owned(),
    )
}

#[async_trait]
impl Runtime for FakeRuntime {
    fn about(&self) -> About {
        About {
            name: "simulated".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            images: true,
        }
    }

    async fn health(&self) -> Health {
        Health {
            runtime: self
                .begin_request()
                .await
                .err()
                .map(|error| format!("container runtime is down: {error}")),
            network: None,
        }
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.begin_request().await?;
        Ok(self.all())
    }

    async fn inspect(&self, uid: &str) -> Result<Option<Found>> {
        self.begin_request().await?;
        Ok(self.0.state().found(uid))
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(CHANGES);
        *lock(&self.0.listener) = Some(sender);
        receiver
    }

    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        _logins: &[RegistryLogin],
    ) -> Result<Image> {
        self.begin_request().await?;
        if image.starts_with(UNPULLABLE_REGISTRY) {
            let never = policy == PullPolicy::Never;
            return Err(Error::Image {
                reason: if never {
                    WaitingReason::ErrImageNeverPull
                } else {
                    WaitingReason::ErrImagePull
                },
                message: format!("{image}: no such host"),
            });
        }
        Ok(Image {
            reference: image.to_owned(),
            id: format!("simulated:{image}"),
            ..Image::default()
        })
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        self.begin_request().await?;
        let id = self.0.state().add_sandbox(config)?;
        self.0.notify(config.pod.uid.clone());
        Ok(id)
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        self.begin_request().await?;
        self.check_not_stuck()?;
        self.crash_sandbox(id);
        Ok(())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        self.begin_request().await?;
        self.check_not_stuck()?;
        self.crash_sandbox(id);
        self.0.state().forget_sandbox(id);
        Ok(())
    }

    async fn create(
        &self,
        _sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        self.begin_request().await?;
        let (id, uid) = self.0.state().add_container(id, config)?;
        self.0.notify(uid);
        Ok(id)
    }

    async fn start(&self, id: &str) -> Result<()> {
        self.begin_request().await?;
        let (uid, script) = self.0.state().start(id, self.0.now())?;
        self.0.notify(uid);
        if let Some((after, code)) = script.exits {
            self.exit_later(id, after, code);
        }
        Ok(())
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        self.begin_request().await?;
        self.check_not_stuck()?;
        let script = self
            .0
            .state()
            .containers
            .get(id)
            .filter(|contained| contained.run.is_running())
            .map(|contained| contained.script);
        let Some(script) = script else {
            return Ok(());
        };
        if let Some(after) = script.stops {
            self.exit_later(id, after, TERMINATED);
        }
        let (after, code) = match script.stops {
            Some(after) if after <= grace => (after, TERMINATED),
            _ => (grace, KILLED),
        };
        tokio::time::sleep(after).await;
        self.0.exit(id, code);
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.begin_request().await?;
        self.0.state().containers.remove(id);
        Ok(())
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        self.begin_request().await?;
        let running = self
            .0
            .state()
            .containers
            .get(id)
            .is_some_and(|contained| contained.run.is_running());
        if !running {
            return Err(Error::NotFound(format!("container {id} does not run")));
        }
        let words = command.join(" ");
        let set_code = lock(&self.0.exec_exit_codes).get(&words).copied();
        self.0.state().record(RuntimeEvent::Executed(words));
        let (takes, code) = match set_code {
            Some(code) => (Duration::ZERO, code),
            None => Script::parse(command).exits.unwrap_or_default(),
        };
        tokio::time::sleep(takes.min(timeout)).await;
        if takes > timeout {
            return Err(Error::TimedOut(format!("command timed out: {command:?}")));
        }
        let text = Vec::new();
        Ok(Output { code, text })
    }

    async fn exec_session(&self, _id: &str, _request: &ExecRequest) -> Result<Session> {
        Err(unsupported())
    }

    async fn attach(&self, _id: &str, _attachment: Attachment) -> Result<Session> {
        Err(unsupported())
    }

    async fn connect(&self, _sandbox: &str, _port: u16) -> Result<Box<dyn Duplex>> {
        Err(unsupported())
    }

    async fn reopen_log(&self, _id: &str) -> Result<()> {
        Ok(())
    }

    async fn usage(&self, _disks: bool) -> Result<Vec<Usage>> {
        Ok(Vec::new())
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        Ok(0)
    }

    fn image_dir(&self) -> Option<PathBuf> {
        None
    }
}

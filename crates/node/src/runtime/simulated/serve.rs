//! What a simulated runtime answers.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::play::Play;
use super::{Happening, KILLED, NOWHERE, Simulated, TERMINATED, locked};
use crate::runtime::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};

fn nothing_inside() -> Error {
    Error::Refused(
        "a simulated container runs nothing that could be looked into: \
         start the agent with --runtime=process or --runtime=cri"
            .to_owned(),
    )
}

#[async_trait]
impl Runtime for Simulated {
    fn about(&self) -> About {
        About {
            name: "simulated".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            images: true,
        }
    }

    async fn health(&self) -> Health {
        Health {
            runtime: self.asked().await.err().map(|error| error.to_string()),
            network: None,
        }
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.asked().await?;
        Ok(self.all())
    }

    async fn look(&self, uid: &str) -> Result<Option<Found>> {
        self.asked().await?;
        Ok(self.0.state().found(uid))
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(1024);
        *locked(&self.0.listener) = Some(sender);
        receiver
    }

    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        _logins: &[RegistryLogin],
    ) -> Result<Image> {
        self.asked().await?;
        if image.starts_with(NOWHERE) {
            let never = policy == PullPolicy::Never;
            return Err(Error::Image {
                reason: if never {
                    "ErrImageNeverPull"
                } else {
                    "ErrImagePull"
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
        self.asked().await?;
        let id = self.0.state().add_sandbox(config)?;
        self.0.tell(config.pod.uid.clone());
        Ok(id)
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        self.asked().await?;
        self.may_end()?;
        self.crash_sandbox(id);
        Ok(())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        self.asked().await?;
        self.may_end()?;
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
        self.asked().await?;
        let (id, uid) = self.0.state().add_container(id, config)?;
        self.0.tell(uid);
        Ok(id)
    }

    async fn start(&self, id: &str) -> Result<()> {
        self.asked().await?;
        let (uid, play) = self.0.state().begin(id, self.0.now())?;
        self.0.tell(uid);
        if let Some((after, code)) = play.ends {
            self.end_later(id, after, code);
        }
        Ok(())
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        self.asked().await?;
        self.may_end()?;
        let play = self
            .0
            .state()
            .containers
            .get(id)
            .filter(|contained| contained.run.is_running())
            .map(|contained| contained.play);
        let Some(play) = play else {
            return Ok(());
        };
        if let Some(after) = play.obeys {
            self.end_later(id, after, TERMINATED);
        }
        let (after, code) = match play.obeys {
            Some(after) if after <= grace => (after, TERMINATED),
            _ => (grace, KILLED),
        };
        tokio::time::sleep(after).await;
        self.0.end(id, code);
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.asked().await?;
        self.0.state().containers.remove(id);
        Ok(())
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        self.asked().await?;
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
        let set = locked(&self.0.answers).get(&words).copied();
        self.0.state().happened(Happening::Ran(words));
        let (takes, code) = match set {
            Some(code) => (Duration::ZERO, code),
            None => Play::read(command).ends.unwrap_or_default(),
        };
        tokio::time::sleep(takes.min(timeout)).await;
        if takes > timeout {
            return Err(Error::TimedOut(format!("command timed out: {command:?}")));
        }
        let text = Vec::new();
        Ok(Output { code, text })
    }

    async fn exec_session(&self, _id: &str, _request: &ExecRequest) -> Result<Session> {
        Err(nothing_inside())
    }

    async fn attach(&self, _id: &str, _attachment: Attachment) -> Result<Session> {
        Err(nothing_inside())
    }

    async fn connect(&self, _sandbox: &str, _port: u16) -> Result<Box<dyn Duplex>> {
        Err(nothing_inside())
    }

    async fn reopen_log(&self, _id: &str) -> Result<()> {
        Ok(())
    }

    async fn usage(&self) -> Result<Vec<Usage>> {
        Ok(Vec::new())
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        Ok(0)
    }

    fn image_dir(&self) -> Option<PathBuf> {
        None
    }
}

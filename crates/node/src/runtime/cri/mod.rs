//! Containers run by containerd, over its socket: the container runtime interface (CRI v1).
//!
//! ```text
//!   Cri ─▶ translate (what to make) ─▶ make · end ──┐
//!       ─▶ images                                   ├─▶ line ─▶ containerd
//!       ─▶ found (what there is) · changes ─────────┘
//!       ─▶ kubelet_api::stream::spdy ─▶ containerd's streaming server (exec, attach, port-forward)
//! ```
//!
//! All state is containerd's: another instance on the same socket sees the same. What is kept here saves
//! questions, and is lost without loss. Containers that are not ours are never looked at.

mod api;
mod cgroups;
mod changes;
mod end;
mod exec;
mod found;
mod health;
mod images;
mod labels;
mod line;
mod make;
mod names;
mod translate;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use self::cgroups::Driver;
use self::changes::Heard;
use self::found::Known;
use self::health::Facts;
use self::images::Images;
use self::line::Line;
use super::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};
use crate::kubelet_api::stream::spdy::client as streams;

/// Pods told of and not yet heard.
const CHANGES: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub struct Cri {
    line: Line,
    facts: Facts,
    known: Known,
    images: Images,
    heard: Arc<Heard>,
    /// Whether somebody has taken [`Runtime::changes`].
    taken: Mutex<bool>,
}

impl Cri {
    /// Connects to the runtime at this socket. It must answer now; later it may go and come back.
    pub async fn connect(socket: &Path) -> Result<Self> {
        let line = Line::new(socket);
        Ok(Self {
            facts: health::facts(&line).await?,
            line,
            known: Known::default(),
            images: Images::default(),
            heard: Arc::default(),
            taken: Mutex::new(false),
        })
    }

    /// We did something to this sandbox or container.
    fn did(&self, id: &str) {
        if let Some(uid) = self.known.owner(id) {
            self.heard.own(uid);
        }
    }

    async fn stream_url<C>(&self, call: C) -> Result<String>
    where
        C: api::Call<Answer = api::StreamResponse>,
    {
        Ok(self.line.ask(call).await?.url)
    }
}

#[async_trait]
impl Runtime for Cri {
    fn about(&self) -> About {
        self.facts.about.clone()
    }

    async fn health(&self) -> Health {
        health::health(&self.line).await
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.known.gather(&self.line, None).await
    }

    async fn look(&self, uid: &str) -> Result<Option<Found>> {
        Ok(self.known.gather(&self.line, Some(uid)).await?.pop())
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(CHANGES);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *taken, true) {
            tokio::spawn(changes::tell(self.line.clone(), self.heard.clone(), sender));
        }
        receiver
    }

    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image> {
        self.images.ensure(&self.line, image, policy, logins).await
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        if !config.host_network
            && let Some(why) = self.health().await.network
        {
            // One that was begun all the same could not be taken away again, with no network to give back to.
            return Err(Error::Failed(format!("network is not ready: {why}")));
        }
        let id = make::sandbox(&self.line, self.facts.cgroups, config).await?;
        self.known.made(&id, &config.pod.uid);
        self.did(&id);
        Ok(id)
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        make::stop_sandbox(&self.line, id).await?;
        self.did(id);
        Ok(())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        let group = found::cgroup(&self.line, id).await?;
        make::remove_sandbox(&self.line, id).await?;
        if let Some(group) = group.filter(|_| self.facts.cgroups == Driver::Files) {
            cgroups::remove(&group);
        }
        self.did(id);
        Ok(())
    }

    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        if !config.stop_signal.is_empty() {
            end::number(&config.stop_signal)?;
        }
        let container =
            make::container(&self.line, self.facts.cgroups, sandbox, id, config).await?;
        self.known.made(&container, &sandbox.pod.uid);
        Ok(container)
    }

    async fn start(&self, id: &str) -> Result<()> {
        make::start(&self.line, id).await?;
        self.did(id);
        Ok(())
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        match self.known.stop_signal(&self.line, id).await? {
            Some(signal) => end::with_signal(&self.line, id, &signal, grace).await?,
            None => end::gracefully(&self.line, id, grace).await?,
        }
        self.did(id);
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<()> {
        make::remove(&self.line, id).await?;
        self.did(id);
        Ok(())
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        exec::and_wait(&self.line, id, command, timeout).await
    }

    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session> {
        let streams = exec::sound(request.streams);
        let call = api::ExecRequest {
            container_id: id.to_owned(),
            cmd: request.command.clone(),
            tty: streams.tty,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
        };
        streams::exec(&self.stream_url(call).await?, streams).await
    }

    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session> {
        let streams = exec::sound(attachment);
        let call = api::AttachRequest {
            container_id: id.to_owned(),
            tty: streams.tty,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
        };
        streams::attach(&self.stream_url(call).await?, streams).await
    }

    async fn connect(&self, sandbox: &str, port: u16) -> Result<Box<dyn Duplex>> {
        let call = api::PortForwardRequest {
            pod_sandbox_id: sandbox.to_owned(),
            port: vec![port.into()],
        };
        let url = self.stream_url(call).await?;
        Ok(Box::new(streams::port_forward(&url, port).await?))
    }

    async fn reopen_log(&self, id: &str) -> Result<()> {
        let request = api::ReopenContainerLogRequest {
            container_id: id.to_owned(),
        };
        self.line.ask(request).await.map(|_| ())
    }

    async fn usage(&self) -> Result<Vec<Usage>> {
        usage::usage(&self.line).await
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        let sandbox_image = health::sandbox_image(&self.line).await?;
        self.images.remove_unused(&self.line, &sandbox_image).await
    }

    fn image_dir(&self) -> Option<PathBuf> {
        self.facts.image_dir.clone()
    }
}

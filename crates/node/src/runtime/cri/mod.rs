//! The CRI runtime: containers run by containerd, over the container runtime interface (CRI v1).
//!
//! ```text
//!   Cri ─▶ translate (configurations) ─▶ create · stop ──┐
//!       ─▶ images                                        ├─▶ connection ─▶ containerd
//!       ─▶ inventory (what exists) · changes ────────────┘
//!       ─▶ kubelet_api::stream::spdy ─▶ containerd's streaming server (exec, attach, port-forward)
//! ```
//!
//! All state is containerd's: another instance on the same socket sees the same. What is cached here only saves requests.
//! Containers of other clients are ignored, and so are those of agents with other data directories.

mod api;
mod cgroups;
mod changes;
mod connection;
mod corrections;
mod create;
mod exec;
mod health;
mod image_names;
mod images;
mod inventory;
mod labels;
mod stop;
mod translate;
mod usage;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kennel_network::cni::Places;
use tokio::sync::mpsc;

use self::cgroups::Driver;
use self::changes::PendingChanges;
use self::connection::Connection;
use self::health::RuntimeInfo;
use self::images::Images;
use self::inventory::Inventory;
use super::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};
use crate::kubelet_api::stream::spdy::client as streams;
use crate::sync::lock;

/// Uids of changed pods that wait to be received. A full channel makes the detector wait.
const CHANGES: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub struct Cri {
    connection: Connection,
    /// None until the runtime first answers.
    info: Mutex<Option<RuntimeInfo>>,
    inventory: Inventory,
    images: Images,
    pending: Arc<PendingChanges>,
    /// Whether [`Runtime::changes`] was called.
    changes_taken: AtomicBool,
}

impl Cri {
    /// For the agent of the data directory `data`. Connects with the first call: the runtime may start later than the agent,
    /// and restart.
    pub fn new(socket: &Path, data: &Path) -> Self {
        Self {
            connection: Connection::new(socket),
            info: Mutex::default(),
            inventory: Inventory::new(data),
            images: Images::default(),
            pending: Arc::default(),
            changes_taken: AtomicBool::new(false),
        }
    }

    async fn info(&self) -> Result<RuntimeInfo> {
        let known = lock(&self.info).clone();
        match known {
            Some(info) => Ok(info),
            None => self.read_info().await,
        }
    }

    async fn read_info(&self) -> Result<RuntimeInfo> {
        let info = health::info(&self.connection).await?;
        let About { name, version, .. } = &info.about;
        tracing::info!("the container runtime is {name} {version}");
        *lock(&self.info) = Some(info.clone());
        Ok(info)
    }

    async fn check(&self) -> Result<Health> {
        let health = health::health(&self.connection).await?;
        let about = health::about(&self.connection).await?;
        // It started after the agent, or was upgraded.
        let is_known = lock(&self.info).as_ref().is_some_and(|i| i.about == about);
        if !is_known {
            self.read_info().await?;
        }
        Ok(health)
    }

    /// Reports a change that we made to a sandbox or container.
    fn report_change(&self, id: &str) {
        if let Some(uid) = self.inventory.owner(id) {
            self.pending.add(uid);
        }
    }

    async fn stream_url<C>(&self, call: C) -> Result<String>
    where
        C: api::Call<Response = api::StreamResponse>,
    {
        Ok(self.connection.call(call).await?.url)
    }
}

#[async_trait]
impl Runtime for Cri {
    fn about(&self) -> About {
        let info = lock(&self.info);
        info.as_ref()
            .map_or_else(health::unknown, |info| info.about.clone())
    }

    async fn health(&self) -> Health {
        self.check().await.unwrap_or_else(|error| Health {
            runtime: Some(format!("container runtime is down: {error}")),
            network: None,
        })
    }

    async fn cni(&self) -> Result<Option<Places>> {
        health::cni(&self.connection).await.map(Some)
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.inventory.list(&self.connection, None).await
    }

    async fn inspect(&self, uid: &str) -> Result<Option<Found>> {
        Ok(self
            .inventory
            .list(&self.connection, Some(uid))
            .await?
            .pop())
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(CHANGES);
        if !self.changes_taken.swap(true, Ordering::Relaxed) {
            tokio::spawn(changes::detect(
                self.connection.clone(),
                self.pending.clone(),
                sender,
            ));
        }
        receiver
    }

    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image> {
        self.images
            .ensure(&self.connection, image, policy, logins)
            .await
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        if !config.host_network
            && let Some(why) = self.health().await.network
        {
            // Without a network, a half-created sandbox could not be removed.
            return Err(Error::Failed(format!("network is not ready: {why}")));
        }
        let cgroups = self.info().await?.cgroups;
        let id = create::sandbox(&self.connection, cgroups, config).await?;
        self.inventory.set_owner(&id, &config.pod.uid);
        self.report_change(&id);
        Ok(id)
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        create::stop_sandbox(&self.connection, id).await?;
        self.report_change(id);
        Ok(())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        let driver = self.info().await?.cgroups;
        let group = inventory::cgroup(&self.connection, id).await?;
        create::remove_sandbox(&self.connection, id).await?;
        if let Some(group) = group.filter(|_| driver == Driver::Cgroupfs) {
            cgroups::remove(&group);
        }
        self.report_change(id);
        Ok(())
    }

    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        if !config.stop_signal.is_empty() {
            stop::signal_number(&config.stop_signal)?;
        }
        let cgroups = self.info().await?.cgroups;
        let container = create::container(&self.connection, cgroups, sandbox, id, config).await?;
        self.inventory.set_owner(&container, &sandbox.pod.uid);
        Ok(container)
    }

    async fn start(&self, id: &str) -> Result<()> {
        create::start(&self.connection, id).await?;
        self.report_change(id);
        Ok(())
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        match self.inventory.stop_signal(&self.connection, id).await? {
            Some(signal) => stop::with_signal(&self.connection, id, &signal, grace).await?,
            None => stop::gracefully(&self.connection, id, grace).await?,
        }
        self.report_change(id);
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<()> {
        create::remove(&self.connection, id).await?;
        self.report_change(id);
        Ok(())
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        exec::run(&self.connection, id, command, timeout).await
    }

    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session> {
        let streams = exec::without_tty_stderr(request.streams);
        let call = api::ExecRequest {
            container_id: id.to_owned(),
            cmd: request.command.clone(),
            tty: streams.tty,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
        };
        streams::session(&self.stream_url(call).await?, streams).await
    }

    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session> {
        let streams = exec::without_tty_stderr(attachment);
        let call = api::AttachRequest {
            container_id: id.to_owned(),
            tty: streams.tty,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
        };
        streams::session(&self.stream_url(call).await?, streams).await
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
        self.connection.call(request).await.map(|_| ())
    }

    async fn usage(&self, _disks: bool) -> Result<Vec<Usage>> {
        let driver = self.info().await?.cgroups;
        usage::usage(&self.connection, driver).await
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        let sandbox_image = health::sandbox_image(&self.connection).await?;
        self.images
            .remove_unused(&self.connection, &sandbox_image)
            .await
    }

    fn image_dir(&self) -> Option<PathBuf> {
        lock(&self.info).as_ref()?.image_dir.clone()
    }
}

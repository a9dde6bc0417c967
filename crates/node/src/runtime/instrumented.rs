//! A decorator that counts the operations of a runtime and their failures, and changes nothing else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kennel_client::metrics::{Counter, Observed, Page};
use kennel_network::cni::Places;
use tokio::sync::mpsc;

use super::{
    About, Attachment, ContainerConfig, Duplex, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};

/// The counted operations, by the kubelet's names.
const OPERATIONS: [&str; 15] = [
    "list_podsandbox",
    "podsandbox_status",
    "pull_image",
    "run_podsandbox",
    "stop_podsandbox",
    "remove_podsandbox",
    "create_container",
    "start_container",
    "stop_container",
    "remove_container",
    "exec_sync",
    "exec",
    "attach",
    "port_forward",
    "reopen_container_log",
];

kennel_core::metrics! {
    pub METRICS;
    Counter REQUESTED = "kubelet_runtime_operations_total" ["operation_type"]
        "What the runtime was asked for, by operation.";
    Counter FAILED = "kubelet_runtime_operations_errors_total" ["operation_type"]
        "What it failed to do, by operation.";
}

/// See the [module](self).
pub struct InstrumentedRuntime {
    runtime: Arc<dyn Runtime>,
    operations: [Counter; OPERATIONS.len()],
    errors: [Counter; OPERATIONS.len()],
}

impl InstrumentedRuntime {
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            operations: Default::default(),
            errors: Default::default(),
        }
    }

    async fn count<T>(
        &self,
        operation: &str,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let index = OPERATIONS.iter().position(|known| *known == operation);
        let index = index.expect("every counted operation is in the table");
        self.operations[index].increment();
        let result = work.await;
        if result.is_err() {
            self.errors[index].increment();
        }
        result
    }
}

impl Observed for InstrumentedRuntime {
    fn show(&self, page: &mut Page) {
        for (metric, counters) in [(&REQUESTED, &self.operations), (&FAILED, &self.errors)] {
            let counts = OPERATIONS.iter().zip(counters);
            let counts = counts.filter(|(_, count)| count.get() > 0);
            let row = |(operation, count): (&&str, &Counter)| {
                (format!("operation_type=\"{operation}\""), count.get())
            };
            page.rows(metric, counts.map(row));
        }
    }
}

#[async_trait]
impl Runtime for InstrumentedRuntime {
    fn about(&self) -> About {
        self.runtime.about()
    }

    async fn health(&self) -> Health {
        self.runtime.health().await
    }

    async fn cni(&self) -> Result<Option<Places>> {
        self.runtime.cni().await
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.count("list_podsandbox", self.runtime.list()).await
    }

    async fn inspect(&self, uid: &str) -> Result<Option<Found>> {
        self.count("podsandbox_status", self.runtime.inspect(uid))
            .await
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        self.runtime.changes()
    }

    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image> {
        let work = self.runtime.image(image, policy, logins);
        self.count("pull_image", work).await
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        self.count("run_podsandbox", self.runtime.start_sandbox(config))
            .await
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        self.count("stop_podsandbox", self.runtime.stop_sandbox(id))
            .await
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        self.count("remove_podsandbox", self.runtime.remove_sandbox(id))
            .await
    }

    async fn create(
        &self,
        sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        let work = self.runtime.create(sandbox, id, config);
        self.count("create_container", work).await
    }

    async fn start(&self, id: &str) -> Result<()> {
        self.count("start_container", self.runtime.start(id)).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        self.count("stop_container", self.runtime.stop(id, grace))
            .await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.count("remove_container", self.runtime.remove(id))
            .await
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        let work = self.runtime.exec(id, command, timeout);
        self.count("exec_sync", work).await
    }

    async fn exec_session(&self, id: &str, request: &ExecRequest) -> Result<Session> {
        self.count("exec", self.runtime.exec_session(id, request))
            .await
    }

    async fn attach(&self, id: &str, attachment: Attachment) -> Result<Session> {
        self.count("attach", self.runtime.attach(id, attachment))
            .await
    }

    async fn connect(&self, sandbox: &str, port: u16) -> Result<Box<dyn Duplex>> {
        self.count("port_forward", self.runtime.connect(sandbox, port))
            .await
    }

    async fn reopen_log(&self, id: &str) -> Result<()> {
        self.count("reopen_container_log", self.runtime.reopen_log(id))
            .await
    }

    async fn usage(&self, disks: bool) -> Result<Vec<Usage>> {
        self.runtime.usage(disks).await
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        self.runtime.remove_unused_images().await
    }

    fn image_dir(&self) -> Option<PathBuf> {
        self.runtime.image_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::fake::FakeRuntime;

    #[tokio::test]
    async fn failed_operations_count_as_operations_and_as_errors() {
        let runtime = InstrumentedRuntime::new(Arc::new(FakeRuntime::new()));
        runtime.reopen_log("x").await.unwrap();
        runtime.start("x").await.unwrap_err();
        let page = Page::of([&runtime as &dyn Observed]);
        for line in [
            "kubelet_runtime_operations_total{operation_type=\"reopen_container_log\"} 1",
            "kubelet_runtime_operations_total{operation_type=\"start_container\"} 1",
            "kubelet_runtime_operations_errors_total{operation_type=\"start_container\"} 1",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
        let failed = "operations_errors_total{operation_type=\"reopen_container_log\"}";
        assert!(!page.contains(failed), "{page}");
    }
}

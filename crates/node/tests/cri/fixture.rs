//! A fixture: a containerd, the runtime on it, and helpers that create pods.

use std::path::PathBuf;
use std::time::Duration;

use kennel_core::pod::{Exit, Observed, Run, State};
use kennel_node::runtime::cri::Cri;
use kennel_node::runtime::{
    ContainerConfig, Error, PodId, PullPolicy, Runtime, SandboxConfig, Security,
};
use kennel_testkit::machine::{Builder, Containerd, Image};
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout};

/// The image of all containers.
pub(crate) const IMAGE: &str = "kennel.test/app:1";
/// Generous, for busy machines.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// See the [module](self).
pub(crate) struct Fixture {
    pub(crate) containerd: Containerd,
    pub(crate) cri: Cri,
    pub(crate) changes: Mutex<Receiver<String>>,
}

pub(crate) struct Started {
    pub(crate) config: SandboxConfig,
    pub(crate) sandbox: String,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(Containerd::builder()).await
    }

    pub(crate) async fn with(builder: Builder) -> Self {
        let containerd = builder.start();
        containerd.import(&Image::new(IMAGE));
        let cri = Cri::new(&containerd.socket(), containerd.directory());
        assert_eq!(cri.health().await.runtime, None);
        let changes = Mutex::new(cri.changes());
        Self {
            containerd,
            cri,
            changes,
        }
    }

    /// The configuration of a pod with host networking.
    pub(crate) fn pod(&self, name: &str) -> SandboxConfig {
        let uid = format!("uid-of-{name}");
        SandboxConfig {
            pod: PodId {
                namespace: "default".to_owned(),
                name: name.to_owned(),
                uid: uid.clone(),
            },
            hostname: String::new(),
            host_network: true,
            log_dir: self.logs(name),
            data_dir: self.containerd.directory().to_owned(),
            // Concurrent tests have pods of the same names.
            cgroup: format!("/kubepods/pod{uid}-{}", self.containerd.network().name()),
            ..SandboxConfig::default()
        }
    }

    pub(crate) fn logs(&self, name: &str) -> PathBuf {
        self.containerd.directory().join("logs").join(name)
    }

    pub(crate) async fn start(&self, config: SandboxConfig) -> Started {
        let sandbox = self.cri.start_sandbox(&config).await.unwrap();
        Started { config, sandbox }
    }

    /// The configuration of a container that runs a script.
    pub(crate) async fn script(&self, name: &str, script: &str) -> ContainerConfig {
        let image = self.cri.image(IMAGE, PullPolicy::Never, &[]).await.unwrap();
        ContainerConfig {
            name: name.to_owned(),
            image: IMAGE.to_owned(),
            image_reference: image.reference,
            command: words("/bin/sh -c"),
            args: vec![script.to_owned()],
            log_path: format!("{name}/0.log").into(),
            security: Security::default(),
            ..ContainerConfig::default()
        }
    }

    /// Creates and starts a container.
    pub(crate) async fn run(&self, pod: &Started, config: &ContainerConfig) -> String {
        let id = self
            .cri
            .create(&pod.config, &pod.sandbox, config)
            .await
            .unwrap();
        self.cri.start(&id).await.unwrap();
        id
    }

    /// Runs a container until its exit, and returns its output.
    pub(crate) async fn output(&self, pod: &Started, config: &ContainerConfig) -> String {
        let id = self.run(pod, config).await;
        self.exit_of(&pod.config.pod.uid, &id).await;
        let log = pod.config.log_dir.join(&config.log_path);
        let log = std::fs::read_to_string(log).unwrap();
        let content = |line: &str| line.splitn(4, ' ').nth(3).unwrap_or_default().to_owned();
        log.lines().map(content).collect::<Vec<_>>().join("\n")
    }

    pub(crate) async fn inspect(&self, uid: &str) -> Observed {
        let found = self.cri.inspect(uid).await.unwrap();
        found.map(|found| found.observed).unwrap_or_default()
    }

    /// Waits for the exit of a container.
    pub(crate) async fn exit_of(&self, uid: &str, id: &str) -> Exit {
        self.exit_that(uid, id, |_| true).await
    }

    /// Waits until the runtime says this of the exit of a container.
    pub(crate) async fn exit_that(&self, uid: &str, id: &str, is: impl Fn(&Exit) -> bool) -> Exit {
        let deadline = Instant::now() + DEADLINE;
        let mut changes = self.changes.lock().await;
        loop {
            let found = match self.cri.inspect(uid).await {
                Ok(found) => found,
                // A change is sent when it is back.
                Err(Error::Unavailable(_)) => None,
                Err(error) => panic!("{error}"),
            };
            let runs = found.map(|found| found.observed.runs).unwrap_or_default();
            let run = runs.into_iter().find(|run| run.id == id);
            if let Some(Run {
                state: State::Exited(exit),
                ..
            }) = run
                && is(&exit)
            {
                return exit;
            }
            // Inspects again only after a change, so that missing changes fail the test.
            let left = deadline.saturating_duration_since(Instant::now());
            let change = timeout(left, changes.recv()).await;
            change.expect("in time").expect("the channel is open");
        }
    }
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

//! A runtime with a data directory of its own, and the most frequent calls. Ends everything when it is dropped,
//! also when a test fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kennel_core::pod::{Exit, Run, State};
use kennel_node::runtime::process::{Options, Process};
use kennel_node::runtime::{ContainerConfig, Mount, PodId, Runtime, SandboxConfig};
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// The processes and threads of a pod.
pub(crate) const PIDS_LIMIT: u64 = 200;
/// No processes.
pub(crate) const NONE: [i32; 0] = [];
/// Far longer than anything takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Fixture {
    pub(crate) runtime: Arc<Process>,
    changes: Mutex<mpsc::Receiver<String>>,
    pub(crate) data: Arc<TempDir>,
    pub(crate) pod: SandboxConfig,
    pub(crate) sandbox: String,
}

impl Fixture {
    /// A pod in it. As such pods are: with the machine's network.
    pub(crate) async fn new() -> Self {
        let data = Arc::new(tempfile::tempdir().unwrap());
        let pod = SandboxConfig {
            pod: PodId {
                namespace: "default".to_owned(),
                name: "pod".to_owned(),
                uid: unique("uid"),
            },
            host_network: true,
            log_dir: data.path().join("logs"),
            ..SandboxConfig::default()
        };
        Self::open(data, pod).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut SandboxConfig)) -> Self {
        let mut fixture = Self::new().await;
        fixture
            .runtime
            .remove_sandbox(&fixture.sandbox)
            .await
            .unwrap();
        change(&mut fixture.pod);
        fixture.pod.attempt += 1;
        fixture.sandbox = fixture.runtime.start_sandbox(&fixture.pod).await.unwrap();
        fixture
    }

    async fn open(data: Arc<TempDir>, pod: SandboxConfig) -> Self {
        let runtime = open(data.path());
        let changes = Mutex::new(runtime.changes());
        let sandbox = runtime.start_sandbox(&pod).await.unwrap();
        Self {
            runtime: Arc::new(runtime),
            changes,
            data,
            pod,
            sandbox,
        }
    }

    /// Another agent on the same machine, after this one has ended.
    pub(crate) async fn reopened(&self) -> Self {
        Self::open(Arc::clone(&self.data), self.pod.clone()).await
    }

    pub(crate) async fn create(&self, config: &ContainerConfig) -> String {
        self.runtime
            .create(&self.pod, &self.sandbox, config)
            .await
            .unwrap()
    }

    /// Creates and starts one.
    pub(crate) async fn start(&self, config: &ContainerConfig) -> String {
        let id = self.create(config).await;
        self.runtime.start(&id).await.unwrap();
        id
    }

    /// Runs one to its end.
    pub(crate) async fn run(&self, config: &ContainerConfig) -> Exit {
        let id = self.start(config).await;
        self.exit(&id).await
    }

    /// What a container wrote.
    pub(crate) async fn output(&self, config: &ContainerConfig) -> String {
        let exit = self.run(config).await;
        let log = self.log(config);
        assert_eq!(exit.code, 0, "{log}");
        log
    }

    pub(crate) async fn state(&self, id: &str) -> Option<Run> {
        let found = self.runtime.inspect(&self.pod.pod.uid).await.unwrap()?;
        found.observed.runs.into_iter().find(|run| run.id == id)
    }

    /// Waits, by what the runtime tells, until a container has ended.
    pub(crate) async fn exit(&self, id: &str) -> Exit {
        let mut changes = self.changes.lock().await;
        loop {
            if let Some(State::Exited(exit)) = self.state(id).await.map(|run| run.state) {
                return exit;
            }
            let told = timeout(TIMEOUT, changes.recv())
                .await
                .expect("the end of a container is told");
            assert_eq!(told.as_deref(), Some(self.pod.pod.uid.as_str()));
        }
    }

    /// The complete lines of its log, without times.
    pub(crate) fn log(&self, config: &ContainerConfig) -> String {
        let text = std::fs::read_to_string(self.log_path(config)).unwrap();
        let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
        let plain = complete.lines().map(|line| line.split_once(' ').unwrap().1);
        plain.fold(String::new(), |all, line| all + line + "\n")
    }

    pub(crate) fn log_path(&self, config: &ContainerConfig) -> PathBuf {
        self.pod.log_dir.join(&config.log_path)
    }

    /// The directory of a container.
    pub(crate) fn dir(&self, id: &str) -> PathBuf {
        self.data
            .path()
            .join("process/pods")
            .join(&self.sandbox)
            .join(id)
    }

    /// Takes everything away, and sees that nothing is left.
    pub(crate) async fn end(self) {
        self.runtime.stop_sandbox(&self.sandbox).await.unwrap();
        self.runtime.remove_sandbox(&self.sandbox).await.unwrap();
        assert!(
            self.runtime
                .inspect(&self.pod.pod.uid)
                .await
                .unwrap()
                .is_none()
        );
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(
            !mounts.contains(self.data.path().to_str().unwrap()),
            "{mounts}"
        );
        let pods = std::fs::read_dir(self.data.path().join("process/pods")).unwrap();
        assert_eq!(pods.count(), 0);
    }
}

impl Drop for Fixture {
    /// A test that failed leaves nothing either: shims end with their containers.
    fn drop(&mut self) {
        let children = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let pods = children(self.data.path().join("process/pods"));
        for container in pods.flat_map(|pod| children(pod.path())) {
            let start = std::fs::read_to_string(container.path().join("start")).unwrap_or_default();
            let ended = container.path().join("exit").exists();
            let pid = start.split(' ').nth(1).and_then(|pid| pid.parse().ok());
            if let Some(pid) = pid
                .filter(|_| !ended)
                .and_then(rustix::process::Pid::from_raw)
            {
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

pub(crate) fn open(data: &Path) -> Process {
    let options = Options {
        data: data.to_owned(),
        shim: PathBuf::from(env!("CARGO_BIN_EXE_kennel")),
        pod_pids_limit: PIDS_LIMIT,
    };
    Process::open(options).unwrap()
}

/// A container that runs a shell script.
pub(crate) fn script(text: &str) -> ContainerConfig {
    let name = unique("app");
    ContainerConfig {
        log_path: PathBuf::from(&name).join("0.log"),
        name,
        image: "none".to_owned(),
        command: vec!["sh".to_owned(), "-c".to_owned()],
        args: vec![text.to_owned()],
        ..ContainerConfig::default()
    }
}

pub(crate) fn volume(host: &Path, container: &str, read_only: bool) -> Mount {
    Mount {
        host_path: host.to_owned(),
        container_path: container.into(),
        read_only,
        ..Mount::default()
    }
}

/// Numbers of processes that have these words on their command line.
pub(crate) fn processes(words: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(words) && pid != std::process::id().cast_signed()).then_some(pid)
    });
    found.collect()
}

/// A number of seconds that no other process sleeps for.
pub(crate) fn nap() -> String {
    unique("9").replace('-', "")
}

pub(crate) fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}{number:03}", std::process::id())
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(TIMEOUT, wait).await.is_ok(), "never: {what}");
}

/// Lines on stdout, as a log has them.
pub(crate) fn stdout(lines: &[&str]) -> String {
    lines
        .iter()
        .fold(String::new(), |all, line| all + "stdout F " + line + "\n")
}

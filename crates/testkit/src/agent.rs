//! A running `kennel agent`: a child process on this machine, or on one of a [`Network`].
//!
//! Its data directory outlives its lives, as a machine's disk does. What it has started is ended when it is
//! dropped: daemons outlive their agent on purpose.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::machine::Network;
use crate::{Deadline, eventually};

/// From SIGTERM to the end of the process, and from its start to the words that are waited for.
const TIMEOUT_SECONDS: u64 = 60;

/// How to start an agent.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// `kennel`.
    pub binary: PathBuf,
    /// Its name in the cluster.
    pub node: String,
    /// Everything else it is told, such as `--kubeconfig`.
    pub arguments: Vec<String>,
}

/// A `kennel agent` process.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    plan: AgentPlan,
    dir: TempDir,
    /// How much of the log is from earlier lives.
    before: usize,
}

impl Agent {
    /// Starts one, on this machine if no network is given.
    pub fn start(plan: AgentPlan, network: Option<&Network>) -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let child = launch(&plan, dir.path(), network);
        Self {
            child,
            plan,
            dir,
            before: 0,
        }
    }

    /// Its name in the cluster.
    pub fn node(&self) -> &str {
        &self.plan.node
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it keeps its things.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Where the logs of its containers are.
    pub fn log_dir(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Where static pods go.
    pub fn manifest_dir(&self) -> PathBuf {
        self.dir.path().join("manifests")
    }

    /// What it has logged so far, in all its lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("stderr.log")).unwrap_or_default()
    }

    /// Waits until it has logged this in its present life.
    pub fn wait_for(&self, words: &str) {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let log = self.log();
            let found = log[self.before..].contains(words);
            found.then_some(()).ok_or(format!("no {words:?} in\n{log}"))
        });
    }

    /// Kills it as a crash would. What it has started runs on.
    pub fn kill(&mut self) {
        let _dead_already = self.child.kill();
        let ended = self.child.wait();
        ended.expect("a child can be waited for");
    }

    /// Asks it to stop as an operator would, and waits for its end.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("our own child can be signalled");
        let deadline = Deadline::seconds(TIMEOUT_SECONDS);
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(!deadline.passed(), "it does not stop:\n{}", self.log());
            deadline.pause();
        }
    }

    /// Starts it once more, after its end, with other arguments.
    pub fn start_again_with(&mut self, arguments: Vec<String>, network: Option<&Network>) {
        self.plan.arguments = arguments;
        self.start_again(network);
    }

    /// Starts it again, after [`Self::kill`] or [`Self::stop`].
    pub fn start_again(&mut self, network: Option<&Network>) {
        self.before = self.log().len();
        self.child = launch(&self.plan, self.dir.path(), network);
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }
}

fn launch(plan: &AgentPlan, dir: &Path, network: Option<&Network>) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(dir.join("stderr.log"));
    let mut command = match network {
        Some(network) => network.command(&plan.binary),
        None => Command::new(&plan.binary),
    };
    command.args(["agent", "--node-name", &plan.node]);
    for (flag, name) in [
        ("--data-dir", "data"),
        ("--log-dir", "log"),
        ("--manifest-dir", "manifests"),
    ] {
        if !plan.arguments.iter().any(|told| told.starts_with(flag)) {
            command.arg(flag).arg(dir.join(name));
        }
    }
    // On this machine, tests run beside each other: each agent listens on a free port.
    let told = plan
        .arguments
        .iter()
        .any(|told| told.starts_with("--listen"));
    if network.is_none() && !told {
        command.args(["--listen", "0.0.0.0:0"]);
    }
    command
        .args(&plan.arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.expect("the log can be opened"))
        .spawn()
        .expect("the agent can be started")
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
        end_daemons(&self.data_dir());
        unmount_below(self.dir.path());
    }
}

/// Takes away what an agent has mounted for pods that were still there: secrets, and parts of volumes.
fn unmount_below(dir: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let points: Vec<&str> = points
        .filter(|point| Path::new(point).starts_with(dir))
        .collect();
    for point in points.into_iter().rev() {
        let _gone_already = rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Ends what the `process` runtime left running below a data directory.
fn end_daemons(data: &Path) {
    let needle = data.to_string_lossy().into_owned();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let ours = [line, environment]
            .iter()
            .any(|text| String::from_utf8_lossy(text).contains(&needle));
        if let Some(pid) = Pid::from_raw(pid).filter(|_| ours) {
            let _gone_already = kill_process(pid, Signal::KILL);
        }
    }
}

//! Starts a playground in a temporary directory. If a test fails, dropping it starts the playground once more, which
//! cleans up.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kennel_testkit::{Deadline, Kubectl, Version};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const TIMEOUT_SECONDS: u64 = 60;
/// The user `nobody`.
const NOBODY: u32 = 65534;

/// The user and PATH that it runs with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunAs {
    Root,
    RootWithPath(&'static str),
    Nobody,
}

pub(crate) struct Playground {
    child: Child,
    directory: TempDir,
    run_as: RunAs,
}

impl Playground {
    /// Starts a playground, and waits until it prints its address.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::launch(arguments, RunAs::Root)
    }

    /// Starts it as the user `nobody`.
    pub(crate) fn start_without_root(arguments: &[&str]) -> Self {
        Self::launch(arguments, RunAs::Nobody)
    }

    /// Starts it with this PATH.
    pub(crate) fn start_with_path(path: &'static str, arguments: &[&str]) -> Self {
        Self::launch(arguments, RunAs::RootWithPath(path))
    }

    fn launch(arguments: &[&str], run_as: RunAs) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        if run_as == RunAs::Nobody {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            // The build directory may not be readable for other users.
            std::fs::copy(
                env!("CARGO_BIN_EXE_kennel"),
                directory.path().join("kennel"),
            )
            .unwrap();
        }
        let child = spawn(directory.path(), arguments, run_as);
        let mut playground = Self {
            child,
            directory,
            run_as,
        };
        playground.wait_for_address();
        playground
    }

    /// Runs a second playground in the same directory, and waits for its end.
    pub(crate) fn run_second(&self, arguments: &[&str]) -> Output {
        let mut command = command(self.directory.path(), arguments, self.run_as);
        command.output().unwrap()
    }

    /// Starts it again in the same directory, after it has ended.
    pub(crate) fn restart(&mut self, arguments: &[&str]) {
        self.child = spawn(self.directory.path(), arguments, self.run_as);
        self.wait_for_address();
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn wait_for_address(&mut self) {
        let lines = BufReader::new(self.child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let serves = lines.any(|line| line.contains("https://"));
        assert!(serves, "it exited early:\n{}", self.output());
    }

    /// Its stderr.
    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("stderr")).unwrap_or_default()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(Version::V1_32, &self.data().join("admin.kubeconfig"))
    }

    /// The bridge between its nodes, from its journal.
    pub(crate) fn bridge(&self) -> PathBuf {
        let journal = std::fs::read(self.data().join("playground.json")).unwrap();
        let journal: Value = serde_json::from_slice(&journal).unwrap();
        Path::new("/sys/class/net").join(journal["bridge"].as_str().unwrap())
    }

    /// Sends a signal, and waits for its end.
    pub(crate) fn stop(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let deadline = Deadline::seconds(TIMEOUT_SECONDS);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(!deadline.passed(), "it does not exit:\n{}", self.output());
            deadline.pause();
        }
    }

    /// Checks that no process, mount or directory is left.
    pub(crate) fn assert_gone(&self) {
        let data = self.data();
        let data = data.to_str().unwrap();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(data), "{mounts}");
        assert_eq!(processes(data), [] as [String; 0]);
        assert!(!self.data().exists(), "{data} is left:\n{}", self.output());
    }
}

impl Drop for Playground {
    /// Cleans up after a failed test.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _exited = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _reaped = self.child.wait();
        }
        if self.data().exists() {
            let mut last = spawn(self.directory.path(), &["--simulate=1"], self.run_as);
            let lines = BufReader::new(last.stdout.take().unwrap()).lines();
            let _serves = lines
                .map_while(Result::ok)
                .any(|line| line.contains("https://"));
            let _exited = kill_process(Pid::from_child(&last), Signal::TERM);
            let _reaped = last.wait();
        }
    }
}

fn command(directory: &Path, arguments: &[&str], run_as: RunAs) -> Command {
    let mut command = if run_as == RunAs::Nobody {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(directory.join("kennel"));
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_kennel"))
    };
    command.arg("playground").args(arguments);
    command.arg("--data-dir").arg(directory.join("data"));
    if let RunAs::RootWithPath(path) = run_as {
        command.env("PATH", path);
    }
    command.stdin(Stdio::null());
    command
}

fn spawn(directory: &Path, arguments: &[&str], run_as: RunAs) -> Child {
    let mut options = std::fs::File::options();
    let stderr = options
        .create(true)
        .append(true)
        .open(directory.join("stderr"));
    command(directory, arguments, run_as)
        .stdout(Stdio::piped())
        .stderr(stderr.unwrap())
        .spawn()
        .unwrap()
}

/// A number of seconds that no other process sleeps for, to find the process by its command line.
pub(crate) fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("9{:07}{number}", std::process::id())
}

/// The command lines of processes that contain this text.
pub(crate) fn processes(text: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

/// The body of an HTTP response.
pub(crate) fn http_get(address: Ipv4Addr, port: u16) -> std::io::Result<String> {
    let timeout = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&(address, port).into(), timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.trim().to_owned());
    body.ok_or_else(|| std::io::Error::other(answer))
}

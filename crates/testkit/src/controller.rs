//! A running `kennel controller`: a child process beside a cluster that runs elsewhere.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Deadline, eventually};

/// From SIGTERM to the end of the process, and from its start to its first line.
const TIMEOUT_SECONDS: u64 = 60;
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// A `kennel controller` process. It serves its metrics on a free port.
#[derive(Debug)]
pub struct Controller {
    child: Child,
    dir: TempDir,
}

impl Controller {
    /// Starts one for the cluster of a kubeconfig.
    pub fn start(binary: impl AsRef<Path>, kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::start_with(binary, kubeconfig, arguments, &[])
    }

    /// Starts one with additional environment variables.
    pub fn start_with(
        binary: impl AsRef<Path>,
        kubeconfig: &Path,
        arguments: &[&str],
        environment: &[(&str, &Path)],
    ) -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let log = File::create(log(&dir)).expect("the log can be made");
        let child = Command::new(binary.as_ref())
            .arg("controller")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--metrics-listen", "127.0.0.1:0"])
            .args(arguments)
            .env("NO_COLOR", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the controller can be started");
        Self { child, dir }
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(log(&self.dir)).unwrap_or_default()
    }

    /// Waits until its log contains this.
    pub fn wait_for(&self, words: &str) {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let log = self.log();
            if log.contains(words) {
                Ok(())
            } else {
                Err(format!("no {words:?} in\n{log}"))
            }
        });
    }

    /// What it answers to a GET on its own port.
    pub fn get(&self, path: &str) -> String {
        self.wait_for("metrics at http://");
        let log = self.log();
        let (_, rest) = log.split_once("metrics at http://").expect("it was there");
        let (address, _) = rest.split_once('/').expect("an address has a path here");
        let mut socket = TcpStream::connect(address).expect("it listens");
        let bounded = socket.set_read_timeout(Some(ANSWER));
        bounded.expect("a socket can have a timeout");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let sent = socket.write_all(request.as_bytes());
        sent.expect("a request can be sent");
        let mut answer = String::new();
        let read = socket.read_to_string(&mut answer);
        read.expect("an answer comes");
        answer
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) {
        self.end();
    }

    /// Asks it to stop with SIGTERM and waits for its end.
    pub fn stop(mut self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("our own child can be signalled");
        self.wait_for_end()
    }

    /// Waits until it ends by itself.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let deadline = Deadline::seconds(TIMEOUT_SECONDS);
        loop {
            match self.child.try_wait().expect("the child can be waited for") {
                Some(status) => return status,
                None => assert!(!deadline.passed(), "it does not end:\n{}", self.log()),
            }
            deadline.pause();
        }
    }

    fn end(&mut self) {
        // It may have exited already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.end();
    }
}

fn log(dir: &TempDir) -> PathBuf {
    dir.path().join("stderr.log")
}

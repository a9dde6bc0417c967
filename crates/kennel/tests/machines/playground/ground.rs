//! A playground as people start it, in a directory of its own. Whatever a test does, nothing of it is left: one that was
//! killed is started once more, which takes everything away.

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

/// Far longer than anything takes.
const PATIENCE: u64 = 60;
/// Somebody without rights.
const NOBODY: u32 = 65534;

/// Who starts it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    Root,
    RootWithPath(&'static str),
    Nobody,
}

pub(crate) struct Ground {
    child: Child,
    place: TempDir,
    who: As,
}

impl Ground {
    /// Starts one, and waits until it says how to reach it.
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::begin(words, As::Root)
    }

    /// As somebody without rights.
    pub(crate) fn start_as_nobody(words: &[&str]) -> Self {
        Self::begin(words, As::Nobody)
    }

    /// Where programs are found only here.
    pub(crate) fn start_with_path(path: &'static str, words: &[&str]) -> Self {
        Self::begin(words, As::RootWithPath(path))
    }

    fn begin(words: &[&str], who: As) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        if who == As::Nobody {
            chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            // Build directories may be closed to others.
            std::fs::copy(env!("CARGO_BIN_EXE_kennel"), place.path().join("kennel")).unwrap();
        }
        let child = launch(place.path(), words, who);
        let mut ground = Self { child, place, who };
        ground.wait_until_it_serves();
        ground
    }

    /// Starts another in the same directory, and waits for its end.
    pub(crate) fn again(&self, words: &[&str]) -> Output {
        let mut command = command(self.place.path(), words, self.who);
        command.output().unwrap()
    }

    /// Starts another in the same directory, after the end of this one.
    pub(crate) fn start_again(&mut self, words: &[&str]) {
        self.child = launch(self.place.path(), words, self.who);
        self.wait_until_it_serves();
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn wait_until_it_serves(&mut self) {
        let lines = BufReader::new(self.child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let serves = lines.any(|line| line.contains("https://"));
        assert!(serves, "it ended early:\n{}", self.said());
    }

    /// What it has said, apart from how to reach it.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.place.path().join("said")).unwrap_or_default()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(Version::V1_32, &self.data().join("admin.kubeconfig"))
    }

    /// The bridge between its nodes, from its own notes.
    pub(crate) fn bridge(&self) -> PathBuf {
        let notes = std::fs::read(self.data().join("playground.json")).unwrap();
        let notes: Value = serde_json::from_slice(&notes).unwrap();
        Path::new("/sys/class/net").join(notes["bridge"].as_str().unwrap())
    }

    /// Asks it to end, and waits for it.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let deadline = Deadline::seconds(PATIENCE);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(!deadline.passed(), "it does not end:\n{}", self.said());
            deadline.pause();
        }
    }

    /// Nothing of it is left: no process, no mount, no directory.
    pub(crate) fn assert_gone(&self) {
        let data = self.data();
        let data = data.to_str().unwrap();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(data), "{mounts}");
        assert_eq!(processes(data), [] as [String; 0]);
        assert!(!self.data().exists(), "{data} is left:\n{}", self.said());
    }
}

impl Drop for Ground {
    /// Only for tests that failed: others have seen to it.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _gone = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ended = self.child.wait();
        }
        if self.data().exists() {
            let mut last = launch(self.place.path(), &["--simulate=1"], self.who);
            let lines = BufReader::new(last.stdout.take().unwrap()).lines();
            let _serves = lines
                .map_while(Result::ok)
                .any(|line| line.contains("https://"));
            let _gone = kill_process(Pid::from_child(&last), Signal::TERM);
            let _ended = last.wait();
        }
    }
}

fn command(place: &Path, words: &[&str], who: As) -> Command {
    let mut command = if who == As::Nobody {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(place.join("kennel"));
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_kennel"))
    };
    command.arg("playground").args(words);
    command.arg("--data-dir").arg(place.join("data"));
    if let As::RootWithPath(path) = who {
        command.env("PATH", path);
    }
    command.stdin(Stdio::null());
    command
}

fn launch(place: &Path, words: &[&str], who: As) -> Child {
    let mut said = std::fs::File::options();
    let said = said.create(true).append(true).open(place.join("said"));
    command(place, words, who)
        .stdout(Stdio::piped())
        .stderr(said.unwrap())
        .spawn()
        .unwrap()
}

/// A number of seconds that no other process sleeps for.
pub(crate) fn nap() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("9{:07}{number}", std::process::id())
}

/// The command lines of processes that have these words in them, except for those of tests.
pub(crate) fn processes(words: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(words)).collect()
}

/// What a web server answers, without its head.
pub(crate) fn fetch(address: Ipv4Addr, port: u16) -> std::io::Result<String> {
    let patience = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&(address, port).into(), patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.trim().to_owned());
    body.ok_or_else(|| std::io::Error::other(answer))
}

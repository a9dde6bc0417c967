//! A running `kennel`: a child process with a data directory of its own on a free port. It is asked to
//! stop with SIGTERM as an operator would, and killed only when it is forgotten or does not answer.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::Deadline;

/// From start to the line that says where it listens; making certificates takes most of it.
const START_SECONDS: u64 = 60;
/// From SIGTERM to the end of the process.
const STOP_SECONDS: u64 = 30;

/// A free port.
const ANYWHERE: &str = "127.0.0.1:0";

/// The data directory within the temporary one. Kennel makes it, as it does for its users.
const DATA: &str = "data";

/// A `kennel` process that serves.
#[derive(Debug)]
pub struct Kennel {
    child: Child,
    binary: PathBuf,
    arguments: Vec<String>,
    data: TempDir,
    /// Where it was told to listen; its port may have been any.
    listen: SocketAddr,
    url: String,
}

impl Kennel {
    /// `kennel server`: the API alone.
    pub fn server(binary: impl AsRef<Path>) -> Self {
        Self::start(binary, &["server"])
    }

    /// `kennel up --simulate n`: the API, the controllers and so many simulated nodes.
    pub fn up(binary: impl AsRef<Path>, nodes: u32) -> Self {
        Self::start(binary, &["up", "--simulate", &nodes.to_string()])
    }

    /// Any verb that serves, on a new data directory and a free port.
    pub fn start(binary: impl AsRef<Path>, arguments: &[&str]) -> Self {
        Self::start_at(binary, arguments, ANYWHERE)
    }

    /// Any verb that serves, where it is told to.
    pub fn start_at(binary: impl AsRef<Path>, arguments: &[&str], listen: &str) -> Self {
        let data = TempDir::new().expect("a temporary directory can be made");
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self::launch(binary.as_ref().to_owned(), arguments, data, listen)
    }

    fn launch(binary: PathBuf, arguments: Vec<String>, data: TempDir, listen: &str) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(data.path().join("stderr.log"));
        let mut child = Command::new(&binary)
            .args(&arguments)
            .arg("--data-dir")
            .arg(data.path().join(DATA))
            .args(["--listen", listen])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("the log can be opened"))
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", binary.display()));
        let lines = read_lines(child.stdout.take().expect("stdout was piped"));
        let mut kennel = Self {
            child,
            binary,
            arguments,
            data,
            listen: listen.parse().expect("an address and a port"),
            url: String::new(),
        };
        kennel.url = kennel.wait_for_url(&lines);
        kennel
    }

    /// The first https address it prints: it prints it when it listens, so nothing else is awaited.
    fn wait_for_url(&self, lines: &Receiver<String>) -> String {
        let patience = Duration::from_secs(START_SECONDS);
        loop {
            let Ok(line) = lines.recv_timeout(patience) else {
                panic!(
                    "kennel did not say where it listens; its log:\n{}",
                    self.log()
                );
            };
            if let Some(start) = line.find("https://") {
                let url = line[start..].split_whitespace().next().unwrap_or_default();
                return url.trim_end_matches(['.', ',', '/']).to_owned();
            }
        }
    }

    /// Where it listens, as `https://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.data.path().join(DATA)
    }

    /// Where it listens, for sockets.
    pub fn address(&self) -> SocketAddr {
        let address = self.url.trim_start_matches("https://").parse();
        address.expect("the address it prints is one")
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data_dir().join("admin.kubeconfig")
    }

    /// What `kennel token create` prints, as flags for several machines, and without the address: that differs from
    /// machine to machine.
    pub fn join_flags(&self) -> Vec<String> {
        let mut command = Command::new(&self.binary);
        command.args(["token", "create", "--uses", "100", "--data-dir"]);
        let line = crate::machine::run(command.arg(self.data_dir()));
        let words: Vec<&str> = line.split_whitespace().collect();
        let token = words
            .iter()
            .find_map(|word| word.strip_prefix("KENNEL_TOKEN="));
        let hash = words.iter().skip_while(|word| **word != "--ca-hash").nth(1);
        let (Some(token), Some(hash)) = (token, hash) else {
            panic!("no token and hash in {line}");
        };
        let flags = ["--token", token, "--ca-hash", hash];
        flags.map(str::to_owned).to_vec()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far, in all its lives on this directory.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.path().join("stderr.log")).unwrap_or_default()
    }

    /// Stops it as an operator would, and starts it again on the same directory (on another port).
    #[must_use = "dropping it ends it"]
    pub fn restart(self) -> Self {
        self.restart_after(|_| ())
    }

    /// Stops it as an operator would, does something to its data directory, and starts it again on another port.
    #[must_use = "dropping it ends it"]
    pub fn restart_after(mut self, meanwhile: impl FnOnce(&Path)) -> Self {
        self.terminate();
        let status = self.wait_for_end();
        assert!(
            status.success(),
            "kennel ended with {status}:\n{}",
            self.log()
        );
        meanwhile(&self.data_dir());
        self.launch_again()
    }

    /// Kills it as a crash would, and starts it again on the same directory (on another port).
    #[must_use = "dropping it ends it"]
    pub fn crash_and_restart(mut self) -> Self {
        self.kill();
        self.launch_again()
    }

    /// Kills it as a crash would, and starts it again on the same directory and the same port.
    #[must_use = "dropping it ends it"]
    pub fn crash_and_come_back(self) -> Self {
        self.crash_and_come_back_after(|| ())
    }

    /// Kills it as a crash would, does something while it is away, and starts it again on the same directory
    /// and the same port.
    #[must_use = "dropping it ends it"]
    pub fn crash_and_come_back_after(mut self, meanwhile: impl FnOnce()) -> Self {
        self.kill();
        meanwhile();
        let address = SocketAddr::new(self.listen.ip(), self.address().port());
        self.launch_at(&address.to_string())
    }

    /// Stops it as an operator would, and starts it again on the same directory with other arguments.
    #[must_use = "dropping it ends it"]
    pub fn restart_with(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self.restart()
    }

    /// The same, and does something to its data directory in between.
    #[must_use = "dropping it ends it"]
    pub fn restart_with_after(mut self, arguments: &[&str], meanwhile: impl FnOnce(&Path)) -> Self {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self.restart_after(meanwhile)
    }

    /// Stops it as an operator would, and starts it again on the same directory and the same port with other arguments.
    #[must_use = "dropping it ends it"]
    pub fn come_back_with(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self.terminate();
        self.wait_for_end();
        let address = SocketAddr::new(self.listen.ip(), self.address().port());
        self.launch_at(&address.to_string())
    }

    /// Kills it as a crash would, and starts it again on the same directory with other arguments.
    #[must_use = "dropping it ends it"]
    pub fn crash_and_restart_with(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self.crash_and_restart()
    }

    /// How much memory it holds, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("it runs, so it has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kibibytes.map_or(0, |kibibytes: u64| kibibytes * 1024)
    }

    /// Asks it to stop with SIGTERM and waits for its end.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate();
        self.wait_for_end()
    }

    /// Asks it to stop with SIGTERM, and does not wait.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks it to stop as Ctrl-C does, and does not wait.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Waits for the end of a process that was asked to stop, and says how it ended.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let deadline = Deadline::seconds(STOP_SECONDS);
        loop {
            match self.child.try_wait().expect("the child can be waited for") {
                Some(status) => return status,
                None => assert!(!deadline.passed(), "no end after SIGTERM:\n{}", self.log()),
            }
            deadline.pause();
        }
    }

    fn launch_again(self) -> Self {
        let anywhere = self.listen.to_string();
        self.launch_at(&anywhere)
    }

    fn launch_at(mut self, listen: &str) -> Self {
        let elsewhere = TempDir::new().expect("a temporary directory can be made");
        let data = std::mem::replace(&mut self.data, elsewhere);
        Self::launch(self.binary.clone(), self.arguments.clone(), data, listen)
    }

    /// How many files and sockets it has open.
    pub fn open_files(&self) -> usize {
        let listed = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        listed.expect("it runs, so it has descriptors").count()
    }

    /// Ends it at once, as a crash would, and waits for its end. The data directory stays.
    pub fn kill(&mut self) {
        // It may have exited already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("our own child can be signalled");
    }
}

impl Drop for Kennel {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lines of output that wait for the test. A test reads them until it knows the address, then drops the receiver.
const LINES_MAX: usize = 1024;

/// Reads a child's output to its end on a thread of its own, so that the child never blocks on it.
fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // After the address is known the receiver is gone; drain the pipe, so that the process does not block.
            let _unheard = sender.send(line);
        }
    });
    receiver
}

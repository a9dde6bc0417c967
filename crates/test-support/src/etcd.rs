//! A real etcd of one member or several, in a directory of its own, on free ports of the loopback interface.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long etcd may take to start.
const START_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// What etcd takes for `--initial-cluster-token`.
const DEFAULT_TOKEN: &str = "etcd-cluster";

/// An etcd that is killed when this is dropped.
pub struct Etcd {
    process: Option<Child>,
    name: String,
    /// The members of its cluster, as etcd takes them; alone, if there are none.
    initial_cluster: Option<String>,
    dir: TempDir,
    client_port: u16,
    peer_port: u16,
    /// Where clients do not look for it.
    other_port: u16,
    arguments: Vec<String>,
    scheme: &'static str,
}

impl Etcd {
    /// Starts an etcd whose data is on disk. `None`, and the test counts as skipped, if it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with further arguments.
    pub fn start_with(arguments: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self::start_in(dir, arguments)
    }

    /// The same with its data in memory, for tests that write much.
    pub fn start_in_memory() -> Option<Self> {
        let dir = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir());
        Self::start_in(dir.expect("a temporary directory"), &[])
    }

    fn start_in(dir: TempDir, arguments: &[&str]) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let mut etcd = Self::new(dir, "m".to_owned(), arguments);
        etcd.restart();
        Some(etcd)
    }

    /// Starts a cluster of so many members, with its data in memory.
    pub fn cluster(size: usize) -> Option<Vec<Self>> {
        if !is_installed() {
            return None;
        }
        let member = |n: usize| {
            let dir = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir());
            Self::new(dir.expect("a temporary directory"), format!("m{n}"), &[])
        };
        let mut members: Vec<Self> = (0..size).map(member).collect();
        let names = members
            .iter()
            .map(|one| format!("{}={}", one.name, one.peer()));
        let names = names.collect::<Vec<_>>().join(",");
        for one in &mut members {
            one.initial_cluster = Some(names.clone());
            one.start_again();
        }
        members.iter().for_each(Self::wait);
        Some(members)
    }

    fn new(dir: TempDir, name: String, arguments: &[&str]) -> Self {
        let is_tls = arguments.iter().any(|one| one.starts_with("--cert-file"));
        Self {
            process: None,
            name,
            initial_cluster: None,
            dir,
            client_port: free_port(),
            peer_port: free_port(),
            other_port: free_port(),
            arguments: arguments.iter().map(|&one| one.to_owned()).collect(),
            scheme: if is_tls { "https" } else { "http" },
        }
    }

    fn peer(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer_port)
    }

    /// The name of the member.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `HOST:PORT` of its clients.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    /// Its address as a store.
    pub fn store(&self) -> String {
        format!("etcd://{}", self.address())
    }

    /// Where its data is.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A directory beside its data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Kills it as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("etcd can be killed");
            process.wait().expect("a killed etcd ends");
        }
    }

    /// Starts it on the data that it had, and waits until it answers.
    ///
    /// # Panics
    /// If it does not answer in time.
    pub fn restart(&mut self) {
        self.start_again();
        self.wait();
    }

    /// Starts it without waiting.
    pub fn start_again(&mut self) {
        self.kill();
        let client = format!("{}://127.0.0.1:{}", self.scheme, self.client_port);
        let peer = self.peer();
        let alone = format!("{}={peer}", self.name);
        let log = std::fs::File::create(self.dir.path().join("log")).expect("a file for the log");
        let mut command = Command::new("etcd");
        command
            .args(["--name", &self.name])
            .args(["--log-level", "warn", "--logger", "zap"])
            .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
            .arg("--data-dir")
            .arg(self.data_dir())
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args([
                "--initial-cluster",
                self.initial_cluster.as_ref().unwrap_or(&alone),
            ])
            .args(&self.arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdout(Stdio::null())
            .stderr(log);
        self.process = Some(command.spawn().expect("etcd starts"));
    }

    /// Waits until it answers.
    ///
    /// # Panics
    /// If it does not answer in time.
    pub fn wait(&self) {
        let started = Instant::now();
        while !self.is_healthy() {
            let log = || std::fs::read_to_string(self.dir.path().join("log"));
            assert!(started.elapsed() < START_TIMEOUT, "{:?}", log());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn is_healthy(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.client_port)) else {
            return false;
        };
        if self.scheme == "https" {
            // It listens only after it has joined its cluster.
            return true;
        }
        let mut answer = String::new();
        let asked = stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .and_then(|()| stream.write_all(b"GET /health HTTP/1.0\r\n\r\n"))
            .and_then(|()| stream.read_to_string(&mut answer));
        asked.is_ok() && answer.contains(r#""health":"true""#)
    }

    /// Its current revision.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn revision(&self) -> u64 {
        let status = self.ctl(&["endpoint", "status", "--write-out", "json"]);
        let revision = status.split("\"revision\":").nth(1).expect("a revision");
        let digits: String = revision.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    }

    /// Saves a snapshot in a file.
    pub fn snapshot(&self) -> PathBuf {
        let file = self.dir.path().join("snapshot");
        self.ctl(&["snapshot", "save", file.to_str().expect("a path in UTF-8")]);
        file
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let process = self.process.as_ref().expect("etcd runs");
        let pid = process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill runs").success(), "{name}");
    }

    /// Starts it again on another port, so that clients that know the old one do not reach it.
    pub fn move_away(&mut self) {
        self.kill();
        std::mem::swap(&mut self.client_port, &mut self.other_port);
        self.restart();
    }

    /// Ends what [`Self::move_away`] began.
    pub fn move_back(&mut self) {
        self.move_away();
    }

    /// Replaces its data by those of a snapshot, which makes it another cluster with older revisions.
    ///
    /// # Panics
    /// If `etcdctl` fails.
    pub fn restore(&mut self, snapshot: &Path) {
        self.restore_as(snapshot, "restored");
    }

    /// The same with the token that it was started with, so that the id of the cluster stays.
    ///
    /// # Panics
    /// If `etcdctl` fails.
    pub fn restore_same_cluster(&mut self, snapshot: &Path) {
        self.restore_as(snapshot, DEFAULT_TOKEN);
    }

    fn restore_as(&mut self, snapshot: &Path, token: &str) {
        self.kill();
        std::fs::remove_dir_all(self.data_dir()).expect("the old data can be removed");
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let data_dir = self.data_dir();
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["snapshot", "restore"])
            .arg(snapshot)
            .arg("--data-dir")
            .arg(data_dir)
            .args(["--name", "m", "--initial-cluster", &format!("m={peer}")])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster-token", token])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(command.status().expect("etcdctl runs").success());
        self.restart();
    }

    /// Runs `etcdctl` and returns what it wrote.
    ///
    /// # Panics
    /// If it fails.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        self.ctl_with_input(arguments, b"")
    }

    /// Changes all of these keys in one transaction; no value deletes the key.
    pub fn change(&self, changes: &[(&str, Option<&str>)]) {
        let lines = changes.iter().map(|(key, value)| match value {
            Some(value) => format!("put {key} {value:?}\n"),
            None => format!("del {key}\n"),
        });
        let input = format!("\n{}\n\n", lines.collect::<String>());
        self.ctl_with_input(&["txn"], input.as_bytes());
    }

    /// Stores any bytes.
    pub fn put_from_input(&self, key: &str, value: &[u8]) {
        self.ctl_with_input(&["put", key], value);
    }

    /// The value of a key, if there is one.
    pub fn stored(&self, key: &str) -> Option<Vec<u8>> {
        let mut value = self.run_ctl(&["get", key, "--print-value-only"], b"");
        // etcdctl ends the value with a line break, and writes nothing if there is none.
        value.pop().map(|_| value)
    }

    fn ctl_with_input(&self, arguments: &[&str], input: &[u8]) -> String {
        String::from_utf8(self.run_ctl(arguments, input)).expect("etcdctl writes text")
    }

    fn run_ctl(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut running = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.address()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("etcdctl runs (Debian: etcd-client)");
        let mut stdin = running.stdin.take().expect("it is a pipe");
        // One that does not read its input may have closed it.
        drop(stdin.write_all(input));
        drop(stdin);
        let output = running.wait_with_output().expect("etcdctl ends");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        output.stdout
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_installed() -> bool {
    let is_installed = Command::new("etcd").arg("--version").output().is_ok();
    if !is_installed {
        crate::skip("etcd is not installed (Debian: etcd-server)");
    }
    is_installed
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

//! A cluster without nodes, and machines that join it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
pub(super) const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// The first word of the line of `kennel token create`.
pub(super) const TOKEN: &str = "KENNEL_TOKEN=";
pub(super) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A cluster without nodes.
pub(super) struct Cluster {
    pub(super) kennel: Kennel,
    pub(super) admin: Access,
}

pub(super) fn cluster(more: &[&str]) -> Cluster {
    let arguments: Vec<&str> = ["up", "--nodes", "0"].iter().chain(more).copied().collect();
    let kennel = Kennel::start(BINARY, &arguments);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    Cluster { kennel, admin }
}

impl Cluster {
    pub(super) fn token(&self, arguments: &[&str]) -> String {
        let output = Command::new(BINARY)
            .arg("token")
            .args(arguments)
            .arg("--data-dir")
            .arg(self.kennel.data_dir())
            .output()
            .unwrap();
        let heard = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{heard}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is to be run on a machine, without the program's name.
    pub(super) fn invitation(&self) -> Vec<String> {
        self.invitation_with(&[])
    }

    pub(super) fn invitation_with(&self, flags: &[&str]) -> Vec<String> {
        let line = self.token(&[&["create"], flags].concat());
        // All users can read the command line of a process.
        assert!(!line.contains("--token"), "{line}");
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(words.remove(1), "kennel", "{line}");
        words
    }

    pub(super) fn get(&self, path: &str) -> Value {
        self.admin.ask("GET", path, b"").json()
    }

    pub(super) fn is_ready(&self, node: &str) {
        eventually(Deadline::seconds(60), || {
            let node = self.get(&format!("/api/v1/nodes/{node}"));
            let conditions = node["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
            ready.then_some(()).ok_or(node)
        });
    }

    /// What `kubectl certificate approve` does.
    pub(super) fn approve(&self, request: &str) {
        let mut approved = self.get(&format!("{REQUESTS}/{request}"));
        approved["status"]["conditions"] = json!([{"type": "Approved", "status": "True",
            "reason": "KubectlApprove", "message": "This CSR was approved by kubectl certificate approve."}]);
        let path = format!("{REQUESTS}/{request}/approval");
        let answer = self
            .admin
            .ask("PUT", &path, approved.to_string().as_bytes());
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    /// The node renews its lease again from now on.
    pub(super) fn renews(&self, node: &str) {
        let renewed = || self.get(&format!("{LEASES}/{node}"))["spec"]["renewTime"].clone();
        let before = renewed();
        eventually(Deadline::seconds(60), || {
            let now = renewed();
            (now.is_string() && now != before).then_some(()).ok_or(now)
        });
    }
}

/// A machine: a directory, and an agent that runs in it or not.
pub(super) struct Machine {
    pub(super) dir: TempDir,
    agent: Option<Child>,
}

impl Machine {
    pub(super) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        Self { dir, agent: None }
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    pub(super) fn command<S: AsRef<str>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(BINARY);
        for argument in arguments {
            match argument.as_ref().strip_prefix(TOKEN) {
                Some(token) => command.env("KENNEL_TOKEN", token),
                None => command.arg(argument.as_ref()),
            };
        }
        command
            .args(["--runtime=simulated", "--listen=127.0.0.1:0"])
            .arg("--data-dir")
            .arg(self.data())
            .arg("--log-dir")
            .arg(self.dir.path().join("logs"))
            .arg("--manifest-dir")
            .arg(self.dir.path().join("manifests"))
            .stdin(Stdio::null());
        command
    }

    pub(super) fn start<S: AsRef<str>>(&mut self, arguments: &[S], node: &str) {
        let path = self.dir.path().join("log");
        let log = File::options().create(true).append(true).open(path);
        let mut command = self.command(arguments);
        command
            .args(["--node-name", node])
            .stdout(Stdio::null())
            .stderr(log.unwrap());
        self.agent = Some(command.spawn().unwrap());
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
    }

    pub(super) fn has_ended(&mut self) -> bool {
        let agent = self.agent.as_mut().unwrap();
        agent.try_wait().unwrap().is_some()
    }

    pub(super) fn stop(&mut self) {
        let mut agent = self.agent.take().unwrap();
        kill_process(Pid::from_child(&agent), Signal::TERM).unwrap();
        let ended = eventually(Deadline::seconds(30), || {
            agent.try_wait().unwrap().ok_or("still running")
        });
        assert!(ended.success(), "{ended}: {}", self.log());
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub(super) fn says(&self, words: &str) {
        eventually(Deadline::seconds(60), || {
            let log = self.log();
            log.contains(words).then_some(()).ok_or(log)
        });
    }

    /// Takes the certificates of another machine.
    pub(super) fn copy_identity(&self, from: &Self) {
        let (from, to) = (from.data().join("pki"), self.data().join("pki"));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// An agent that must not start; says why not.
    pub(super) fn refused<S: AsRef<str>>(&self, arguments: &[S], node: &str) -> String {
        let mut command = self.command(arguments);
        let output = command.args(["--node-name", node]).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) fn check_private(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
}

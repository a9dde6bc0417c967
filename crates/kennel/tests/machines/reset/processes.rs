//! Pods in the process runtime.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::Value;

use super::{KENNEL, cgroups, check, mounts, reset, run, until};
use crate::process_runtime::fixture::{nap, processes};

/// With a secret, a memory volume and a process of its own. `TRAP` is what it does with SIGTERM.
const DAEMON: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemon}
spec:
  selector: {matchLabels: {app: daemon}}
  template:
    metadata: {labels: {app: daemon}}
    spec:
      hostNetwork: true
      containers:
      - name: daemon
        image: none
        command: [sh, -c, "trap 'TRAP' TERM; echo started; while :; do sleep MARK & wait; done"]
        volumeMounts: [{name: memory, mountPath: /memory}]
      volumes: [{name: memory, emptyDir: {medium: Memory}}]
"#;

/// A cluster with a daemon on its node, on this machine.
struct Cluster {
    /// None only while it is restarted.
    kennel: Option<Kennel>,
    logs: PathBuf,
    /// In the command line of the daemon's process.
    mark: String,
    uid: String,
}

impl Cluster {
    fn new(trap: &str, place: &Path) -> Self {
        let logs = place.join("log");
        let log_dir = format!("--log-dir={}", logs.display());
        let kennel = Kennel::start(
            KENNEL,
            &[
                "up",
                "--runtime=process",
                "--node-listen=127.0.0.1:0",
                "--eviction-hard=memory.available<1Mi",
                &log_dir,
            ],
        );
        let mark = nap();
        let manifest = DAEMON.replace("TRAP", trap).replace("MARK", &mark);
        let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
        kubectl.run_with_input(&["apply", "-f-"], &manifest).ok();
        let uid = ready(&kennel);
        let cluster = Self {
            kennel: Some(kennel),
            logs,
            mark,
            uid,
        };
        until("the daemon runs", || cluster.runs());
        cluster
    }

    fn kennel(&self) -> &Kennel {
        self.kennel.as_ref().unwrap()
    }

    fn data(&self) -> PathBuf {
        self.kennel().data_dir()
    }

    fn restart(&mut self) {
        let kennel = self.kennel.take().unwrap();
        self.kennel = Some(kennel.crash_and_restart());
    }

    /// Waits for its end, after a signal.
    fn wait_for_end(&mut self) {
        let status = self.kennel.as_mut().unwrap().wait_for_end();
        assert!(status.success(), "{status}");
    }

    fn kill(&mut self) {
        self.kennel.as_mut().unwrap().kill();
    }

    fn runs(&self) -> bool {
        !processes(&self.mark).is_empty()
    }

    fn shims(&self) -> Vec<i32> {
        processes(self.data().to_str().unwrap())
    }

    /// Asserts that no process, mount, cgroup or shim of it is left.
    fn assert_ended(&self) {
        assert!(!self.runs());
        assert_eq!(self.shims(), [] as [i32; 0]);
        assert_eq!(mounts(&self.data()), [] as [String; 0]);
        assert_eq!(cgroups(&self.uid), [] as [PathBuf; 0]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(kennel) = &mut self.kennel {
            kennel.kill();
            let _best_effort = reset(kennel.data_dir(), &["--force"]);
        }
    }
}

/// Waits until the daemon is ready; returns its pod's uid.
fn ready(kennel: &Kennel) -> String {
    let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
    eventually(Deadline::seconds(60), || {
        let pods = kubectl.run(&["get", "pods", "-o", "json"]);
        let pods: Value = serde_json::from_str(&pods.stdout).unwrap_or_default();
        let pod = &pods["items"][0];
        let conditions = pod["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten();
        let mut ready = ready.filter(|one| one["type"] == "Ready" && one["status"] == "True");
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        ready
            .next()
            .map(|_| uid.to_owned())
            .ok_or_else(|| format!("{pods:#}\n{}", kennel.log()))
    })
}

#[test]
fn ctrl_c_says_how_to_end_pods_and_the_command_does_it() {
    if !possible() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let other = Cluster::new("exit 0", &place.path().join("other"));
    let mut cluster = Cluster::new("exit 0", place.path());
    let data = cluster.data();
    assert!(!mounts(&data).is_empty() && !cgroups(&cluster.uid).is_empty());

    cluster.kennel().interrupt();
    cluster.wait_for_end();
    assert!(cluster.runs(), "pods keep running");
    let log = cluster.kennel().log();
    let line = log
        .lines()
        .find(|line| line.contains("1 pod keeps running"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    let (_, command) = line.split_once("to end it: kennel ").unwrap();
    let expected = format!("reset --keep-data --data-dir {}", data.display());
    assert_eq!(command, expected);

    // It keeps the cluster, and the next start runs the pod again.
    let words = command.split(' ');
    let output = run(Command::new(KENNEL).args(words).arg("--yes"));
    let text = check(&output, 0);
    assert!(
        text.contains("ends 1 pod in the process runtime: default/daemon-"),
        "{text}"
    );
    cluster.assert_ended();
    let again = check(&reset(&data, &["--keep-data"]), 0);
    assert!(again.contains("Nothing to do"), "{again}");
    cluster.restart();
    until("the daemon runs again", || cluster.runs());
    assert_eq!(ready(cluster.kennel()), cluster.uid);

    // Everything.
    let refused = check(&reset(&data, &[]), 2);
    assert!(refused.contains("stop it first"), "{refused}");
    assert!(cluster.runs());
    cluster.kennel().terminate();
    cluster.wait_for_end();
    assert!(cluster.logs.join("pods").exists() && cluster.logs.join("containers").exists());
    check(&reset(&data, &[]), 0);
    cluster.assert_ended();
    assert!(!data.exists());
    let logs: Vec<_> = std::fs::read_dir(&cluster.logs)
        .unwrap()
        .flatten()
        .collect();
    assert!(logs.is_empty(), "{logs:?}");

    // The other cluster has not noticed.
    assert!(other.runs() && !other.shims().is_empty());
    assert!(!mounts(&other.data()).is_empty());
    assert_eq!(ready(other.kennel()), other.uid);
}

#[test]
fn a_killed_reset_is_repeated() {
    if !possible() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::new("", place.path());
    let data = cluster.data();
    cluster.kill();
    assert!(cluster.runs());
    let mut first = Command::new(KENNEL)
        .args(["reset", "--yes", "--data-dir"])
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It has printed its plan and waits for the daemon, which ignores SIGTERM.
    let mut stdout = first.stdout.take().unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(&mut stdout, &mut byte).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(data.join("kennel.db").exists());

    // A shim that was killed, too.
    for shim in cluster.shims() {
        let pid = rustix::process::Pid::from_raw(shim).unwrap();
        let _exited = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    check(&reset(&data, &[]), 0);
    cluster.assert_ended();
    assert!(!data.exists());
}

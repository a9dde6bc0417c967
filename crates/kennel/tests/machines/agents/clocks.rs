//! A machine whose clock is set, forward and back, while it runs pods. Time itself goes on as it did.
//!
//! libfaketime stands between the agent and the clock: what it adds is read from a file at each look.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kennel_testkit::{Deadline, eventually};
use serde_json::Value;

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready};

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
const HOUR: i64 = 3600;

/// The offset of the clock of processes that [`Self::program`] starts.
struct Clock {
    dir: tempfile::TempDir,
}

impl Clock {
    fn new() -> Self {
        let clock = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        clock.set(0);
        clock
    }

    fn set(&self, seconds: i64) {
        // Whole, or not yet: the agent may look at any time.
        let new = self.dir.path().join("new");
        fs::write(&new, format!("{seconds:+}\n")).unwrap();
        fs::rename(new, self.dir.path().join("clock")).unwrap();
    }

    /// `kennel`, by this clock.
    fn program(&self) -> PathBuf {
        let arch = std::env::consts::ARCH;
        let library = format!("/usr/lib/{arch}-linux-gnu/faketime/libfaketimeMT.so.1");
        let there = Path::new(&library).exists();
        assert!(there, "libfaketime is missing: run scripts/packages.sh");
        let file = self.dir.path().join("clock");
        let script = format!(
            "#!/bin/sh\n\
             export FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n\
             LD_PRELOAD={library} NO_FAKE_STAT=1 exec {KENNEL} \"$@\"\n",
            file.display()
        );
        let program = self.dir.path().join("kennel");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }
}

const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: steady}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  activeDeadlineSeconds: 3600
  volumes: [{name: shared, hostPath: {path: SHARED}}]
  containers:
  - name: c
    image: kennel/none
    command: [sleep, infinity]
    livenessProbe: {exec: {command: [sh, -c, "echo >> /s/asked"]}, periodSeconds: 1, failureThreshold: 1}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1, failureThreshold: 1}
    volumeMounts: [{name: shared, mountPath: /s}]
---
apiVersion: v1
kind: Pod
metadata: {name: crashes}
spec:
  hostNetwork: true
  containers: [{name: c, image: kennel/none, command: ["false"]}]
"#;

const LATER: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: kennel/none, command: [sh, -c, 'echo hello; sleep infinity']}]
";

#[test]
fn a_clock_that_is_set_disturbs_no_pod() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let clock = Clock::new();
    let mut fleet = Fleet::by(&clock.program(), Engine::Process, 1, &[], &[]);
    let shared = tempfile::tempdir().unwrap();
    fleet.apply(&PODS.replace("SHARED", shared.path().to_str().unwrap()));
    let before = fleet.pod("steady", is_ready);
    fleet.pod("crashes", |pod| restarts(pod) >= 1);

    for (name, hours) in [("forward", 2), ("back", -2)] {
        clock.set(hours * HOUR);
        the_lease_is_renewed(&fleet, hours);
        probes_go_on(&shared.path().join("asked"));
        pods_come_and_go(&fleet, name);
    }
    // An agent that starts by a clock behind that of the cluster takes up what runs.
    fleet.machines[0].agent.kill();
    fleet.machines[0].start_again();
    fleet.machines[0].agent.wait_for("all pod sources synced");
    probes_go_on(&shared.path().join("asked"));
    pods_come_and_go(&fleet, "again");

    let after = fleet.pod("steady", is_ready);
    let run = |pod: &Value| pod["status"]["containerStatuses"][0]["containerID"].clone();
    assert_eq!((run(&after), restarts(&after)), (run(&before), 0));
    // The restart backoff does not depend on the clock.
    let crashed = fleet.pod("crashes", |pod| restarts(pod) >= 2);
    assert!(restarts(&crashed) <= 5, "{crashed:#}");
    let node = fleet.get(&["node", "machine-1"]).unwrap();
    let ready = &node["status"]["conditions"][3];
    assert_eq!(
        (&ready["type"], &ready["status"]),
        (&"Ready".into(), &"True".into())
    );
}

fn restarts(pod: &Value) -> i64 {
    let count = &pod["status"]["containerStatuses"][0]["restartCount"];
    count.as_i64().unwrap_or_default()
}

/// It says when by its own clock.
fn the_lease_is_renewed(fleet: &Fleet, hours: i64) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let lease = fleet.get(&["lease", "-n", "kube-node-lease", "machine-1"])?;
        let renewed = lease["spec"]["renewTime"].as_str().unwrap_or_default();
        let renewed: Timestamp = renewed.parse().unwrap();
        let off = renewed.as_second() - Timestamp::now().as_second() - hours * HOUR;
        (off.abs() < 60).then_some(()).ok_or(lease.to_string())
    });
}

fn probes_go_on(asked: &Path) {
    let count = || fs::metadata(asked).map_or(0, |file| file.len());
    let before = count();
    eventually(Deadline::seconds(TIMEOUT), || {
        let now = count();
        (now >= before + 2).then_some(()).ok_or(now)
    });
}

/// They start, can be looked into (which takes certificates), and end.
fn pods_come_and_go(fleet: &Fleet, name: &str) {
    fleet.apply(&LATER.replace("NAME", name));
    fleet.pod(name, is_ready);
    assert_eq!(fleet.kubectl.run(&["logs", name]).ok(), "hello\n");
    fleet.kubectl.run(&["delete", "pod", name]).ok();
}

//! Logs that grow: files of 10 MiB, at most five of them, and readers lose nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Child;

use kennel_testkit::machine::Image;
use kennel_testkit::{Deadline, eventually};

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready};

/// So many lines of a hundred bytes are more than a log may have.
const LINES: usize = 110_000;

#[test]
fn logs_of_containers_rotate() {
    if kennel_testkit::machine::possible() {
        rotate(Engine::Containerd);
    }
}

#[test]
fn logs_of_processes_rotate() {
    if kennel_testkit::machine::possible() {
        rotate(Engine::Process);
    }
}

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  volumes: [{name: shared, hostPath: {path: SHARED}}]
  containers:
  - name: c
    image: kennel.test/app:1
    command:
    - sh
    - -c
    - |
      echo begin
      while ! test -e /s/go; do sleep 0.1; done
      busybox awk 'BEGIN { for (i = 1; i <= LINES; i++) printf "%099d\n", i }'
      while :; do n=$((n + 1)); echo after $n; sleep 0.1; done
    volumeMounts: [{name: shared, mountPath: /s}]
"#;

fn rotate(engine: Engine) {
    let fleet = Fleet::new(engine, 1, &[Image::new("kennel.test/app:1")]);
    let shared = tempfile::tempdir().unwrap();
    let place = shared.path().to_str().unwrap();
    let lines = LINES.to_string();
    fleet.apply(&POD.replace("SHARED", place).replace("LINES", &lines));
    fleet.pod("writer", is_ready);
    let logs = logs_of(&fleet);
    for number in 1..=4 {
        // Cut off long ago.
        fs::write(logs.join(format!("0.log.20200101-00000{number}")), "").unwrap();
    }
    let follower = Follower::start(&fleet, &shared.path().join("followed"));
    follower.wait_for("begin\n");
    fs::write(shared.path().join("go"), "").unwrap();

    let cut = eventually(Deadline::seconds(TIMEOUT), || {
        let files = files(&logs);
        let cut = files.iter().rev().find(|name| !name.contains(".2020"));
        let cut = cut.filter(|name| *name != "0.log").cloned();
        cut.ok_or(format!("{files:?}"))
    });
    assert!(fs::metadata(logs.join(&cut)).unwrap().len() >= 10 << 20);
    reads_what_comes_after(&fleet);
    let all = files(&logs);
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(!all.iter().any(|name| name.ends_with("000001")), "{all:?}");
    let newest = fs::metadata(logs.join("0.log")).unwrap().len();
    assert!(newest < 10 << 20, "{newest}");

    // `kubectl logs -f` has printed every line once and in order.
    let last = tail(&fleet);
    follower.wait_for(&last);
    let followed = fs::read_to_string(&follower.file).unwrap();
    let mut lines = followed.lines();
    assert_eq!(lines.next(), Some("begin"));
    for number in 1..=LINES {
        assert_eq!(lines.next().unwrap().parse(), Ok(number));
    }
    for (number, line) in (1..).zip(lines) {
        assert_eq!(line, format!("after {number}"));
    }
}

/// `kubectl logs` goes on, with what is in the newest file.
fn reads_what_comes_after(fleet: &Fleet) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let last = tail(fleet);
        last.starts_with("after ").then_some(()).ok_or(last)
    });
    let whole = fleet.kubectl.run(&["logs", "writer"]).ok();
    assert!(
        !whole.contains("begin"),
        "the file that was cut off is read"
    );
}

fn tail(fleet: &Fleet) -> String {
    fleet.kubectl.run(&["logs", "writer", "--tail=1"]).ok()
}

fn logs_of(fleet: &Fleet) -> PathBuf {
    let pods = fleet.machines[0].agent.log_dir().join("pods");
    let mut all = fs::read_dir(pods).unwrap();
    let own = all.find_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        name.starts_with("default_writer_").then_some(path)
    });
    own.unwrap().join("c")
}

/// The names of files, in order.
fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// `kubectl logs -f`, into a file.
struct Follower {
    child: Child,
    file: PathBuf,
}

impl Follower {
    fn start(fleet: &Fleet, file: &Path) -> Self {
        let output = File::create(file).unwrap();
        let mut command = fleet.kubectl.command();
        let command = command.args(["logs", "-f", "writer"]).stdout(output);
        Self {
            child: command.spawn().unwrap(),
            file: file.to_owned(),
        }
    }

    fn wait_for(&self, words: &str) {
        eventually(Deadline::seconds(TIMEOUT), || {
            let text = fs::read_to_string(&self.file).unwrap();
            let end = text.len().saturating_sub(200);
            let found = text.contains(words);
            found
                .then_some(())
                .ok_or(format!("no {words:?} before {:?}", &text[end..]))
        });
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

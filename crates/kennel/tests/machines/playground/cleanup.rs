//! The cleanup of a playground: after signals, and after a `kill -9` by the next playground.

use std::process::Command;

use kennel_testkit::machine::possible;
use rustix::process::Signal;

use crate::playground::fixture::{Playground, processes, unique_seconds};

/// A DaemonSet that ignores SIGTERM, with a secret and a memory volume.
const IGNORES_SIGTERM: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: stubborn}
spec:
  selector: {matchLabels: {app: stubborn}}
  template:
    metadata: {labels: {app: stubborn}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers:
      - name: stubborn
        image: none
        command: [sh, -c, "trap '' TERM; while true; do sleep MARK; done"]
        volumeMounts: [{name: memory, mountPath: /memory}]
      volumes: [{name: memory, emptyDir: {medium: Memory}}]
"#;

#[test]
fn the_next_playground_cleans_up_after_a_killed_one() {
    if !possible() {
        return;
    }
    let arguments = ["--nodes=2", "--no-tour"];
    let mut playground = Playground::start(&arguments);
    let kubectl = playground.kubectl();
    let seconds = unique_seconds();
    let manifest = IGNORES_SIGTERM.replace("MARK", &seconds);
    kubectl.run_with_input(&["apply", "-f-"], &manifest).ok();
    let status = ["rollout", "status", "ds/stubborn", "--timeout=60s"];
    kubectl.run(&status).ok();

    let second = playground.run_second(&arguments);
    let refused = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        refused.contains("a playground is running already, process"),
        "{refused}"
    );

    let bridge = playground.bridge();
    playground.kill();
    assert!(!processes(&seconds).is_empty() && bridge.exists());
    playground.restart(&arguments);
    assert!(
        playground
            .output()
            .contains("An earlier playground was killed"),
        "{}",
        playground.output()
    );
    assert_eq!(processes(&seconds), [] as [String; 0]);
    assert!(!bridge.exists());
    // A new cluster, not the old one.
    let found = playground
        .kubectl()
        .run(&["get", "daemonsets", "-oname"])
        .ok();
    assert_eq!(found, "");

    let bridge = playground.bridge();
    assert!(
        playground.stop(Signal::HUP).success(),
        "{}",
        playground.output()
    );
    assert!(!bridge.exists());
    playground.assert_gone();
}

#[test]
fn kennel_reset_cleans_up_after_a_killed_one() {
    if !possible() {
        return;
    }
    let mut playground = Playground::start(&["--nodes=1", "--no-tour"]);
    let kubectl = playground.kubectl();
    let seconds = unique_seconds();
    let manifest = IGNORES_SIGTERM.replace("MARK", &seconds);
    kubectl.run_with_input(&["apply", "-f-"], &manifest).ok();
    let status = ["rollout", "status", "ds/stubborn", "--timeout=60s"];
    kubectl.run(&status).ok();
    let data = playground.data();
    let reset = |code: i32| {
        let output = Command::new(env!("CARGO_BIN_EXE_kennel"))
            .args(["reset", "--yes", "--data-dir"])
            .arg(&data)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    };
    let bridge = playground.bridge();
    reset(2);
    assert!(bridge.exists() && !processes(&seconds).is_empty());
    playground.kill();
    reset(0);
    assert!(!bridge.exists());
    playground.assert_gone();
    assert_eq!(processes(&seconds), [] as [String; 0]);
}

#[test]
fn a_directory_with_other_files_is_not_touched() {
    let mut playground = Playground::start(&["--simulate=1", "--listen=127.0.0.1:0"]);
    assert!(
        playground.stop(Signal::TERM).success(),
        "{}",
        playground.output()
    );
    std::fs::create_dir(playground.data()).unwrap();
    let thesis = playground.data().join("thesis.txt");
    std::fs::write(&thesis, "mine").unwrap();
    let refused = playground.run_second(&["--simulate=1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a playground's"));
    assert!(thesis.exists());
    std::fs::remove_dir_all(playground.data()).unwrap();
}

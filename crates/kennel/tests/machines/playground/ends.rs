//! How playgrounds end: by signals, and by a `kill -9` that the next one sees to.

use kennel_testkit::machine::possible;
use rustix::process::Signal;

use crate::playground::ground::{Ground, nap, processes};

/// A daemon that does not end when it is asked to, with a secret and a volume of its own.
const STUBBORN: &str = r#"
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
fn what_a_killed_playground_left_is_taken_away_by_the_next() {
    if !possible() {
        return;
    }
    let words = ["--nodes=2", "--no-tour"];
    let mut ground = Ground::start(&words);
    let kubectl = ground.kubectl();
    let nap = nap();
    let stubborn = STUBBORN.replace("MARK", &nap);
    kubectl.run_with_input(&["apply", "-f-"], &stubborn).ok();
    let status = ["rollout", "status", "ds/stubborn", "--timeout=60s"];
    kubectl.run(&status).ok();

    let second = ground.again(&words);
    let refused = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        refused.contains("a playground is running already, process"),
        "{refused}"
    );

    let bridge = ground.bridge();
    ground.kill();
    assert!(!processes(&nap).is_empty() && bridge.exists());
    ground.start_again(&words);
    assert!(
        ground.said().contains("An earlier playground was killed"),
        "{}",
        ground.said()
    );
    assert_eq!(processes(&nap), [] as [String; 0]);
    assert!(!bridge.exists());
    // A new cluster, not the old one.
    let found = ground.kubectl().run(&["get", "daemonsets", "-oname"]).ok();
    assert_eq!(found, "");

    let bridge = ground.bridge();
    assert!(ground.end(Signal::HUP).success(), "{}", ground.said());
    assert!(!bridge.exists());
    ground.assert_gone();
}

#[test]
fn a_directory_that_is_somebody_elses_is_not_touched() {
    let mut ground = Ground::start(&["--simulate=1", "--listen=127.0.0.1:0"]);
    assert!(ground.end(Signal::TERM).success(), "{}", ground.said());
    std::fs::create_dir(ground.data()).unwrap();
    let thesis = ground.data().join("thesis.txt");
    std::fs::write(&thesis, "mine").unwrap();
    let refused = ground.again(&["--simulate=1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a playground's"));
    assert!(thesis.exists());
    std::fs::remove_dir_all(ground.data()).unwrap();
}

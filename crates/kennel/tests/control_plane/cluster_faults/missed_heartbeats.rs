//! Half of all nodes miss heartbeats at once, come back, and flap: their daemon pods survive.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use kennel_testkit::{Deadline, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cluster_faults::fixture::{BINARY, Fixture, SETS, daemon_set};

/// Nodes in the cluster's own process, and as many beside it.
const HALF: usize = 4;
/// Silence is told after this. Simulated nodes speak every ten seconds.
const GRACE_SECONDS: &str = "15";

/// Nodes in a process of their own, which can be made silent.
struct Nodes(Child);

impl Nodes {
    fn start(fixture: &Fixture) -> Self {
        let first = (HALF + 1).to_string();
        let child = Command::new(BINARY)
            .args(["agent", "--runtime=simulated", "--first", &first])
            .args(["--count", &HALF.to_string(), "--kubeconfig"])
            .arg(fixture.kennel.kubeconfig())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// How many nodes are ready, and how many are unknown.
fn readiness(fixture: &mut Fixture) -> (usize, usize) {
    let nodes = fixture.list("/api/v1/nodes");
    let ready = |node: &Value, wanted: &str| {
        let mut conditions = node["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        conditions.any(|one| one["type"] == "Ready" && one["status"] == wanted)
    };
    let count = |wanted: &str| nodes.iter().filter(|node| ready(node, wanted)).count();
    (count("True"), count("Unknown"))
}

fn wait_for(fixture: &mut Fixture, wanted: (usize, usize)) {
    eventually(Deadline::seconds(60), || {
        let found = readiness(fixture);
        (found == wanted)
            .then_some(())
            .ok_or_else(|| format!("{found:?}"))
    });
}

#[test]
fn half_of_all_nodes_fall_silent_and_come_back() {
    let own = HALF.to_string();
    let grace = ["--node-monitor-grace-period", GRACE_SECONDS];
    let mut fixture = Fixture::start(&["up", "--simulate", &own, grace[0], grace[1]]);
    let nodes = Nodes::start(&fixture);
    wait_for(&mut fixture, (2 * HALF, 0));
    fixture.create(SETS, &daemon_set("agent", "image"));
    fixture.converged(2 * HALF);
    let before = fixture.daemons("agent");
    // They flap: too short for anybody to notice.
    for _ in 0..5 {
        nodes.signal(Signal::STOP);
        thread::sleep(Duration::from_millis(100));
        nodes.signal(Signal::CONT);
        thread::sleep(Duration::from_millis(100));
    }
    nodes.signal(Signal::STOP);
    wait_for(&mut fixture, (HALF, HALF));
    eventually(Deadline::seconds(30), || {
        let set = fixture.ask("GET", &format!("{SETS}/agent"), &Value::Null).1;
        let available = set["status"]["numberAvailable"] == HALF;
        available.then_some(()).ok_or(set["status"].clone())
    });
    assert_eq!(
        fixture.daemons("agent"),
        before,
        "daemons stay on silent nodes"
    );
    nodes.signal(Signal::CONT);
    wait_for(&mut fixture, (2 * HALF, 0));
    fixture.converged(2 * HALF);
    assert_eq!(
        fixture.daemons("agent"),
        before,
        "and are there when they come back"
    );
    let tainted = |node: &Value| !node["spec"]["taints"].is_null();
    let left = fixture.list("/api/v1/nodes").into_iter().find(tainted);
    assert_eq!(left, None, "no taint is left");
    fixture.tidy();
}

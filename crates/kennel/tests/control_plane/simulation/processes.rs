//! `kennel agent` as its users meet it: a process beside a cluster that runs elsewhere.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

/// A `kennel agent` process; it is killed when it is forgotten.
pub(crate) struct Agent(Child);

impl Agent {
    pub(crate) fn start(cluster: &Kennel, arguments: &[&str]) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(cluster.data_dir().join("agent.log"));
        let child = Command::new(BINARY)
            .args(["agent", "--runtime=simulated", "--kubeconfig"])
            .arg(cluster.kubeconfig())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.unwrap())
            .spawn();
        Self(child.unwrap())
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        let ended = eventually(Deadline::seconds(30), || {
            self.0.try_wait().unwrap().ok_or("still running")
        });
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

fn ready(admin: &Access, wanted: u32) {
    eventually(Deadline::seconds(60), || {
        let set = admin.ask("GET", &format!("{DAEMON_SETS}/agent"), b"");
        let status = set.json()["status"].clone();
        if status["numberReady"] == wanted {
            return Ok(());
        }
        Err(status.to_string())
    });
}

/// What users of the pods would notice if it changed, by pod.
fn running(admin: &Access) -> Vec<Value> {
    let pods = admin
        .ask("GET", "/api/v1/namespaces/default/pods", b"")
        .json();
    let of = |pod: &Value| {
        let status = &pod["status"];
        json!([
            pod["metadata"]["uid"],
            status["podIP"],
            status["startTime"],
            status["containerStatuses"],
            status["conditions"]
        ])
    };
    pods["items"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn pods_run_on_the_agents_nodes_and_go_on_when_it_is_restarted() {
    let cluster = Kennel::up(BINARY, 0);
    let admin = Access::admin(cluster.address(), &cluster.data_dir());
    let agent = Agent::start(&cluster, &["--count=5", "--node-prefix=n"]);
    let labels = json!({"app": "agent"});
    let set = json!({"metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let made = admin.ask("POST", DAEMON_SETS, set.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
    ready(&admin, 5);
    let before = running(&admin);
    agent.stop();
    // More nodes, so that we know when it has looked around.
    let agent = Agent::start(&cluster, &["--count=7", "--node-prefix=n"]);
    ready(&admin, 7);
    let after = running(&admin);
    assert!(
        before.iter().all(|pod| after.contains(pod)),
        "{before:#?}\n{after:#?}"
    );
    agent.stop();
}

#[test]
fn the_example_in_the_docs_can_be_used() {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/simulation.yaml");
    let text = std::fs::read_to_string(example).unwrap();
    let scenario = kennel_simulation::scenario::Scenario::parse(&text).unwrap();
    assert!(!scenario.nodes.is_empty() && !scenario.pods.is_empty());
}

#[test]
fn what_cannot_be_used_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.yaml");
    std::fs::write(&file, "pods:\n- image: x\n  pull: soon\n").unwrap();
    let file = file.to_str().unwrap();
    let check = |arguments: &[&str], expected: &[&str]| {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        for words in expected {
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    };
    let agent = ["agent", "--runtime=simulated", "--scenario"];
    check(&[&agent[..], &[file]].concat(), &[file, "line 3", "soon"]);
    let unknown = [&agent[..], &["bad-day"]].concat();
    check(&unknown, &["bad-day", "built-in scenarios: bad-release"]);
    check(&["agent", "--runtime=podman"], &["podman", "simulated"]);
    check(&["agent", "--runtime=simulated", "--count=0"], &["0"]);
    check(&["up", "--scenario", file], &[file, "line 3"]);
}

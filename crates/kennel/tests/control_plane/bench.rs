//! `kennel bench` end to end.

use std::process::{Child, Command, Output, Stdio};

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

fn bench(kennel: &Kennel, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(["bench", "--kubeconfig"])
        .arg(kennel.kubeconfig())
        .args(arguments)
        .stdin(Stdio::null());
    command
}

fn cluster() -> (Kennel, Access) {
    let kennel = Kennel::up(BINARY, 2);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    (kennel, admin)
}

#[expect(clippy::unwrap_used, reason = "a test's own answers")]
fn names(admin: &Access, path: &str) -> Vec<String> {
    let answer = admin.ask("GET", path, b"");
    let list: Value = serde_json::from_slice(&answer.body).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    items
        .map(name)
        .filter(|name| name.starts_with("bench-"))
        .collect()
}

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const NAMESPACE: &str = "/api/v1/namespaces/kennel-bench";

fn nothing_is_left(admin: &Access) {
    assert!(names(admin, NODES).is_empty());
    assert!(names(admin, LEASES).is_empty());
    assert_eq!(admin.ask("GET", NAMESPACE, b"").code, 404);
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn twenty_nodes_are_measured_and_removed() {
    let (kennel, admin) = cluster();
    let pid = kennel.pid().to_string();
    let arguments = ["--nodes", "20", "--idle", "1", "--pid", &pid, "-o", "json"];
    let output = bench(&kennel, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["nodes"], 20);
    for step in ["apply", "update", "delete"] {
        let seconds = figures["steps"][step]["seconds"].as_f64().unwrap();
        assert!(seconds > 0.0, "{step}: {seconds}");
    }
    for step in ["apply", "update"] {
        let latency = &figures["steps"][step]["latency"];
        assert_eq!(latency["createdToReady"]["count"], 20, "{step}: {latency}");
    }
    let server = &figures["processes"][0];
    assert_eq!(server["pid"], json!(kennel.pid()));
    assert!(server["peakBytes"].as_u64().unwrap() > 1 << 20, "{server}");
    assert!(server["idleCores"].is_number());
    nothing_is_left(&admin);
}

#[test]
fn a_process_that_is_not_there_is_named_before_anything_is_done() {
    let (kennel, admin) = cluster();
    let output = bench(&kennel, &["--nodes", "3", "--pid", "4194305"]).output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains("--pid 4194305: there is no such process"),
        "{said}"
    );
    nothing_is_left(&admin);
}

fn wait_for_nodes(admin: &Access, count: usize) {
    eventually(Deadline::seconds(60), || {
        let there = names(admin, NODES).len();
        (there == count)
            .then_some(())
            .ok_or(format!("{there} nodes"))
    });
}

#[expect(clippy::unwrap_used, reason = "a child that was started just now")]
fn begin_long(kennel: &Kennel) -> Child {
    let mut command = bench(kennel, &["--nodes", "5", "--idle", "600"]);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn told_to_stop_it_removes_everything_first() {
    let (kennel, admin) = cluster();
    let child = begin_long(&kennel);
    wait_for_nodes(&admin, 5);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("stopped"), "{}", stderr(&output));
    nothing_is_left(&admin);
}

#[test]
fn what_a_killed_run_left_is_removed_when_asked_for() {
    let (kennel, admin) = cluster();
    let mut child = begin_long(&kennel);
    wait_for_nodes(&admin, 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = bench(&kennel, &["--nodes", "2"]).output().unwrap();
    assert!(!refused.status.success());
    let said = stderr(&refused);
    assert!(said.contains("--clean removes them"), "{said}");
    assert_eq!(names(&admin, NODES).len(), 5);
    let output = bench(&kennel, &["--nodes", "2", "--clean"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("2 nodes, at most 10% unavailable"),
        "{table}"
    );
    nothing_is_left(&admin);
}

//! The official Python and JavaScript libraries: objects with a server alone, commands and logs with a real node.

use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Library, Version, eventually};

use super::{BINARY, file};

/// Runs a program with its library; it fails with what it printed.
fn check(library: Library, program: &str, kennel: &Kennel) {
    let answer = library.run(&file(program), &kennel.kubeconfig());
    assert_eq!(
        answer.code,
        0,
        "{program} failed:\n{}{}\nthe server's log:\n{}",
        answer.stdout,
        answer.stderr,
        kennel.log()
    );
    assert!(answer.stdout.contains("ok "), "{program} checks nothing");
}

/// It writes three lines and stays.
const TALKER: &str = r#"{
  "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talker"},
  "spec": {
    "hostNetwork": true, "hostPID": true, "automountServiceAccountToken": false,
    "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
    "containers": [{
      "name": "main", "image": "kennel/none",
      "command": ["/bin/sh", "-c", "for i in 1 2 3; do echo line $i; done; exec sleep 1000"]
    }]
  }
}"#;

/// A control plane and an agent that runs processes, whose pod `talker` has written its lines.
fn node() -> (Kennel, Agent) {
    let kennel = Kennel::start(BINARY, &["up", "--nodes", "0"]);
    let plan = AgentPlan {
        binary: BINARY.into(),
        node: "real".to_owned(),
        arguments: vec![
            "--runtime=process".to_owned(),
            // Avoids disk pressure on a machine with a full disk.
            "--eviction-hard=memory.available<1Mi".to_owned(),
            format!("--kubeconfig={}", kennel.kubeconfig().display()),
        ],
    };
    let agent = Agent::start(plan, None);
    let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
    kubectl.run_with_input(&["create", "-f", "-"], TALKER).ok();
    eventually(Deadline::seconds(60), || {
        // The agent has no serving certificate before somebody approves it.
        let requests = kubectl.run(&["get", "csr", "-o", "name"]).ok();
        for request in requests.lines() {
            let name = request.rsplit('/').next().unwrap();
            kubectl.run(&["certificate", "approve", name]).ok();
        }
        let log = kubectl.run(&["logs", "talker"]);
        let written = log.stdout.ends_with("line 3\n");
        written
            .then_some(())
            .ok_or(format!("{}{}{}", log.stdout, log.stderr, agent.log()))
    });
    (kennel, agent)
}

#[test]
fn the_python_client_handles_objects() {
    let kennel = Kennel::server(BINARY);
    check(Library::Python, "python/objects.py", &kennel);
}

#[test]
fn a_validator_of_json_schemas_judges_manifests_by_our_documents() {
    let kennel = Kennel::server(BINARY);
    check(Library::Python, "python/schemas.py", &kennel);
}

#[test]
fn the_javascript_client_handles_objects() {
    let kennel = Kennel::server(BINARY);
    check(Library::JavaScript, "javascript/objects.mjs", &kennel);
}

#[test]
fn the_python_client_runs_commands_and_reads_logs() {
    let (kennel, _agent) = node();
    check(Library::Python, "python/pods.py", &kennel);
}

#[test]
fn the_javascript_client_runs_commands_and_reads_logs() {
    let (kennel, _agent) = node();
    check(Library::JavaScript, "javascript/pods.mjs", &kennel);
}

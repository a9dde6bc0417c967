//! Pods with real processes: crashes with their messages, and probes.

use kennel_testkit::{Agent, AgentPlan, Deadline, eventually};
use serde_json::{Value, json};

use super::fixture::{Fixture, KENNEL};

/// Avoids disk pressure on a machine with a full disk.
const NO_DISK_EVICTION: &str = "--eviction-hard=memory.available<1Mi";

fn shell(script: &str, more: &Value) -> Value {
    let mut container = json!({"name": "main", "image": "kennel/none",
        "command": ["/bin/sh", "-c", script]});
    container
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"hostNetwork": true, "hostPID": true, "automountServiceAccountToken": false, "containers": [container]})
}

/// The log cannot be read before the agent has a serving certificate, and is shown afterwards.
fn check_log(fixture: &Fixture) {
    let answer = fixture.why(&["ds/agent"]);
    let error = "\n      its log cannot be read: tls: ";
    assert!(answer.stdout.contains(error), "{}", answer.stdout);
    assert_eq!(answer.stderr, "");
    let requests = ["get", "csr", "-o", "name"];
    let requests = fixture.kubectl.run(&requests).ok();
    for request in requests.lines() {
        let name = request.rsplit('/').next().unwrap();
        fixture.kubectl.run(&["certificate", "approve", name]).ok();
    }
    let log =
        "\n      its last log lines:\n      | no licence\n      kubectl logs -n default agent-";
    eventually(Deadline::seconds(60), || {
        let text = fixture.why(&["ds/agent"]).stdout;
        text.contains(log).then_some(()).ok_or(text)
    });
    let found = fixture.verdict("real", "missing", "crash-loop");
    assert_eq!(found["log"]["lines"], json!(["no licence"]));
}

#[test]
fn real_processes_fail_probes_crash_and_lack_configuration() {
    let fixture = Fixture::with("", &["--nodes", "0"]);
    let kubeconfig = fixture.kennel.kubeconfig();
    let plan = AgentPlan {
        binary: KENNEL.into(),
        node: "real".to_owned(),
        arguments: vec![
            "--runtime=process".to_owned(),
            NO_DISK_EVICTION.to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ],
    };
    let _agent = Agent::start(plan, None);
    let probe = json!({"readinessProbe": {"exec": {"command": ["/bin/sh", "-c", "echo no disk; exit 1"]},
        "periodSeconds": 1, "failureThreshold": 1}});
    fixture.apply(json!({}), shell("exec sleep 1000", &probe));
    let found = fixture.verdict_with("real", "missing", "probe", "no disk");
    assert_eq!(
        found["message"],
        "container main runs and its readiness probe fails: no disk"
    );
    let message_from_log = json!({"terminationMessagePolicy": "FallbackToLogsOnError"});
    fixture.apply(
        json!({}),
        shell("echo no licence; exit 7", &message_from_log),
    );
    let found = fixture.verdict_with("real", "missing", "crash-loop", "no licence");
    let message = "container main does not stay up: exited with code 7: no licence";
    assert_eq!(found["message"], message);
    check_log(&fixture);
    let settings = json!({"envFrom": [{"configMapRef": {"name": "settings"}}]});
    fixture.apply(json!({}), shell("exec sleep 1000", &settings));
    let found = fixture.verdict_with("real", "missing", "container-config", "settings");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.contains("configmap \"settings\" not found"),
        "{message}"
    );
    fixture
        .kubectl
        .run(&["create", "configmap", "settings", "--from-literal=a=b"])
        .ok();
    fixture.verdict("real", "runs", "up-to-date");
    assert_eq!(fixture.why(&["ds/agent", "--node", "real"]).code, 0);
}

//! A node's log about containers that fail: one line for each, with the cause.

use kennel_testkit::{Agent, AgentPlan, Deadline, eventually};
use serde_json::{Value, json};

use crate::why::fixture::{Fixture, KENNEL};

/// Avoids disk pressure on a machine with a full disk.
const NO_DISK_EVICTION: &str = "--eviction-hard=memory.available<1Mi";

fn pod(name: &str, command: &[&str], more: &Value) -> Value {
    let mut container = json!({"name": "main", "image": "kennel/none", "command": command});
    let env = more["env"].clone();
    if !env.is_null() {
        container["env"] = env;
    }
    let mut spec = json!({"nodeName": "real", "hostNetwork": true, "hostPID": true,
        "automountServiceAccountToken": false, "containers": [container]});
    if !more["volumes"].is_null() {
        spec["volumes"] = more["volumes"].clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

#[test]
fn each_failing_container_has_one_line_with_the_cause() {
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
    let agent = Agent::start(plan, None);
    agent.wait_for("registered node real");
    let key = json!({"configMapKeyRef": {"name": "settings", "key": "a"}});
    let volume = json!({"name": "files", "configMap": {"name": "absent"}});
    let shell = |script| ["/bin/sh", "-c", script];
    for pod in [
        pod("crash", &shell("exit 7"), &json!({})),
        pod("typo", &["/usr/bin/no-such-command"], &json!({})),
        pod(
            "config",
            &shell("exec sleep 1000"),
            &json!({"env": [{"name": "A", "valueFrom": key}]}),
        ),
        pod(
            "volume",
            &shell("exec sleep 1000"),
            &json!({"volumes": [volume]}),
        ),
        pod("healthy", &shell("exec sleep 1000"), &json!({})),
    ] {
        let created = fixture
            .kubectl
            .run_with_input(&["create", "-f", "-"], &pod.to_string());
        created.ok();
    }
    for words in [
        "container failed: exited with code 7 (Error) pod=default/crash container=\"main\" reason=\"Error\" restarts=0",
        "container failed: CreateContainerConfigError: configmap \"settings\" not found pod=default/config",
        "pod cannot start: FailedMount: MountVolume.SetUp failed for volume \"files\"",
        "no-such-command",
    ] {
        agent.wait_for(words);
    }
    // The crash is repeated, and the line is not.
    eventually(Deadline::seconds(60), || {
        let count = "jsonpath={.status.containerStatuses[0].restartCount}";
        let count = fixture.kubectl.run(&["get", "pod", "crash", "-o", count]);
        let count = count.ok();
        let often = count.parse().is_ok_and(|count: u32| count >= 2);
        often.then_some(()).ok_or(count)
    });
    let log = agent.log();
    for pod in ["crash", "typo", "config", "volume"] {
        let about = log.lines().filter(|line| {
            line.contains("WARN kennel::container") && line.contains(&format!("default/{pod}"))
        });
        let about: Vec<&str> = about.collect();
        assert_eq!(about.len(), 1, "{pod}: {about:#?}");
    }
    assert!(!log.contains("default/healthy"), "{log}");
    // A pod that is deleted has not failed.
    let deleted = fixture.kubectl.run(&["delete", "pod", "healthy"]);
    deleted.ok();
    assert!(!agent.log().contains("default/healthy"));
}

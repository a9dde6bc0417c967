//! Pods that are missing, on simulated nodes.

use serde_json::{Value, json};

use super::fixture::Fixture;

fn image(name: &str) -> Value {
    json!({"containers": [{"name": "main", "image": name}]})
}

#[test]
fn an_image_cannot_be_pulled() {
    let fixture = Fixture::with(
        "pods:\n- image: \"*:gone\"\n  unpullable: true\n",
        &["--simulate", "2"],
    );
    fixture.apply(json!({}), image("example.com/agent:gone"));
    let found = fixture.verdict("sim-1", "missing", "image");
    let message = found["message"].as_str().unwrap();
    assert!(message.starts_with("container main cannot pull its image example.com/agent:gone: "));
    assert_eq!(fixture.why(&["ds/agent"]).code, 1);
}

#[test]
fn a_container_crashes_repeatedly() {
    let scenario = "pods:\n- exits: {after: 100ms, code: 3}\n";
    let fixture = Fixture::with(scenario, &["--simulate", "1"]);
    fixture.apply(json!({}), json!({}));
    let found = fixture.verdict("sim-1", "missing", "crash-loop");
    assert_eq!(
        found["message"],
        "container main does not stay up: exited with code 3"
    );
    let pod = found["pod"].as_str().unwrap();
    let remedy = format!("kubectl logs -n default {pod} -c main --previous");
    assert_eq!(found["remedy"], remedy.as_str());
    let error = found["log"]["error"].as_str();
    assert!(error.is_some(), "simulated nodes have no logs: {found}");
    let first = found["since"].clone();
    // Another exit later, the loop is as old as before.
    let again = kennel_testkit::eventually(kennel_testkit::Deadline::seconds(60), || {
        let found = fixture.verdict("sim-1", "missing", "crash-loop");
        let restarts = found["pods"][0]["containers"][0]["restarts"].as_i64();
        restarts
            .filter(|restarts| *restarts >= 2)
            .map(|_| found.clone())
            .ok_or(found.to_string())
    });
    // Times of containers are whole seconds.
    let second = |since: &Value| since.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let apart = second(&again["since"]).duration_since(second(&first));
    assert!(apart.abs() <= jiff::SignedDuration::from_secs(1), "{apart}");
}

#[test]
fn a_broken_release_stops_the_rollout() {
    let scenario = "pods:\n- image: \"*:broken\"\n  unpullable: true\n";
    let fixture = Fixture::with(scenario, &["--simulate", "3"]);
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    fixture.apply(json!({}), image("example.com/agent:broken"));
    let answer = kennel_testkit::eventually(kennel_testkit::Deadline::seconds(60), || {
        let answer = fixture.why(&["ds/agent", "-o", "json"]).stdout;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let nodes = answer["nodes"].as_array().unwrap();
        let with = |cause: &str| nodes.iter().filter(|n| n["cause"] == cause).count();
        let right = (with("image"), with("waits-for-budget")) == (1, 2);
        right.then(|| answer.clone()).ok_or(answer.to_string())
    });
    let nodes = answer["nodes"].as_array().unwrap();
    let broken = nodes.iter().find(|n| n["cause"] == "image").unwrap()["node"].clone();
    let waits = nodes
        .iter()
        .find(|n| n["cause"] == "waits-for-budget")
        .unwrap();
    let message = format!(
        "runs the old template and waits for its turn: maxUnavailable allows 1 node without an \
         available pod, and that is {}",
        broken.as_str().unwrap()
    );
    assert_eq!(waits["message"], message.as_str());
    assert_eq!(waits["verdict"], "runs");
    assert_eq!(answer["notes"][0]["code"], "rollout");
    assert_eq!(answer["ok"], false);
}

/// As an agent, or a network plugin, writes it.
#[test]
fn n1_6_a_node_whose_network_is_missing_is_explained() {
    let fixture = Fixture::with("", &["--simulate", "2"]);
    let condition = json!({"status": {"conditions": [{
        "type": "NetworkUnavailable", "status": "True", "reason": "NoPodCIDR",
        "message": "the node has no range for pods yet"}]}});
    let condition = condition.to_string();
    let patch = [
        "patch",
        "node",
        "sim-2",
        "--subresource=status",
        "-p",
        &condition,
    ];
    kennel_testkit::eventually(kennel_testkit::Deadline::seconds(60), || {
        let patched = fixture.kubectl.run(&patch);
        (patched.code == 0).then_some(()).ok_or(patched.stderr)
    });
    let taint = [
        "get",
        "node",
        "sim-2",
        "-o",
        "jsonpath={.spec.taints[*].key}",
    ];
    kennel_testkit::eventually(kennel_testkit::Deadline::seconds(60), || {
        let taints = fixture.kubectl.run(&taint).stdout;
        let found = taints.contains("node.kubernetes.io/network-unavailable");
        found.then_some(()).ok_or(taints)
    });
    fixture.apply(json!({}), json!({}));
    let found = fixture.verdict("sim-2", "missing", "network-unavailable");
    assert_eq!(
        found["message"],
        "the node has no pod network (NoPodCIDR: the node has no range for pods yet): its pod is created when it has one"
    );
    let remedy = found["remedy"].as_str().unwrap();
    assert!(remedy.contains("kennel doctor network"), "{remedy}");
    let described = fixture.kubectl.run(&["describe", "node", "sim-2"]).ok();
    let line = described
        .lines()
        .find(|line| line.contains("NetworkUnavailable"));
    let line = line.unwrap_or(&described);
    assert!(
        line.contains("the node has no range for pods yet"),
        "{line}"
    );
}

#[test]
fn a_node_without_heartbeats_is_not_ready() {
    let scenario = "nodes:\n- name: sim-2\n  silent: {at: [2s], for: 10m}\n";
    let flags = ["--simulate", "2", "--node-monitor-grace-period", "4"];
    let fixture = Fixture::with(scenario, &flags);
    fixture.apply(json!({}), json!({}));
    let found = fixture.verdict("sim-2", "unknown", "node-not-ready");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.starts_with("the node is not ready (NodeStatusUnknown: "),
        "{message}"
    );
    assert!(found["since"].is_string());
    let expected = "\
DaemonSet default/agent: of 2 nodes that should run it, 1 does and 1 may (not ready).

Node not ready, may still run it: 1 node
  sim-2, for [..]
    the node is not ready (NodeStatusUnknown: [..]): its pod may still run
      kubectl describe node sim-2

Runs: 1 node
  sim-1
";
    fixture.wait_for_output(&["ds/agent"], expected, 1);
}

#[test]
fn a_node_is_gone_and_its_pod_is_not() {
    let flags = [
        "--simulate",
        "2",
        "--controllers",
        "*,-pod-garbage-collector-controller",
    ];
    let fixture = Fixture::with("", &flags);
    fixture.apply(json!({}), json!({}));
    fixture.wait_until_ok();
    fixture.kubectl.run(&["delete", "node", "sim-2"]).ok();
    let found = fixture.verdict("sim-2", "missing", "node-gone");
    let pod = found["pod"].as_str().unwrap();
    assert!(pod.starts_with("agent-"), "{found}");
}

#[test]
fn no_controller_runs() {
    let flags = [
        "--simulate",
        "1",
        "--controllers",
        "*,-daemonset-controller",
    ];
    let fixture = Fixture::with("", &flags);
    fixture.apply(json!({}), json!({}));
    let found = fixture.verdict("sim-1", "missing", "not-observed");
    let message = "no controller has observed this DaemonSet yet: is one running?";
    assert_eq!(found["message"], message);
    check_quota(&fixture);
}

/// No controller runs here, so this creates the event that one would.
fn check_quota(fixture: &Fixture) {
    let uid = ["get", "ds", "agent", "-o", "jsonpath={.metadata.uid}"];
    let uid = fixture.kubectl.run(&uid).ok();
    let now = fixture.kubectl.run(&[
        "get",
        "ds",
        "agent",
        "-o",
        "jsonpath={.metadata.creationTimestamp}",
    ]);
    let text = "Error creating: pods \"agent-x\" is forbidden: exceeded quota: small, requested: \
                pods=1, used: pods=2, limited: pods=2";
    let event = json!({"apiVersion": "v1", "kind": "Event", "type": "Warning",
        "metadata": {"name": "agent.1"}, "reason": "FailedCreate", "message": text,
        "lastTimestamp": now.ok(), "count": 4, "source": {"component": "daemonset-controller"},
        "involvedObject": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent",
                           "namespace": "default", "uid": uid}});
    fixture
        .kubectl
        .run_with_input(&["create", "-f", "-"], &event.to_string())
        .ok();
    let found = fixture.verdict("sim-1", "missing", "quota");
    assert_eq!(found["remedy"], "kubectl describe resourcequota -n default");
}

#[test]
fn no_scheduler_runs() {
    let fixture = Fixture::with(
        "",
        &["--simulate", "1", "--controllers", "*,-kube-scheduler"],
    );
    fixture.apply(json!({}), json!({}));
    let found = fixture.verdict("sim-1", "missing", "not-scheduled");
    let message = "no scheduler has considered its pod yet: is default-scheduler running?";
    assert_eq!(found["message"], message);
}

#[test]
fn the_api_server_rejects_the_pods() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({}), json!({"serviceAccountName": "nobody"}));
    let found = fixture.verdict("sim-1", "missing", "admission");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.contains("serviceaccount \"nobody\" not found"),
        "{message}"
    );
}

#[test]
fn old_pods_stay_until_they_are_deleted() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    fixture.apply(on_delete.clone(), json!({}));
    fixture.wait_until_ok();
    fixture.apply(on_delete, image("example.com/agent:2"));
    let found = fixture.verdict("sim-1", "runs", "old-template");
    let remedy = found["remedy"].as_str().unwrap().to_owned();
    let arguments: Vec<&str> = remedy.split(' ').skip(1).collect();
    fixture.kubectl.run(&arguments).ok();
    fixture.verdict("sim-1", "runs", "up-to-date");
}

#[test]
fn a_pod_must_be_ready_for_a_while() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({"minReadySeconds": 600}), json!({}));
    fixture.verdict("sim-1", "missing", "min-ready-seconds");
}

#[test]
fn a_pod_with_a_finalizer_stays() {
    let fixture = Fixture::with("", &["--simulate", "1"]);
    fixture.apply(json!({}), json!({}));
    let found = fixture.verdict("sim-1", "runs", "up-to-date");
    let pod = found["pod"].as_str().unwrap();
    let hold = |list: &str| {
        let patch = format!("{{\"metadata\":{{\"finalizers\":{list}}}}}");
        fixture
            .kubectl
            .run(&["patch", "pod", pod, "--type=merge", "-p", &patch])
            .ok();
    };
    hold("[\"example.com/hold\"]");
    fixture
        .kubectl
        .run(&["delete", "pod", pod, "--wait=false"])
        .ok();
    let found = fixture.verdict("sim-1", "missing", "terminating");
    assert_eq!(found["pods"][0]["terminating"], true);
    hold("null");
    fixture.wait_until_ok();
}

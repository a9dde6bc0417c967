//! Admission: resources, node selectors, preemption, pressure and static pods.

use serde_json::{Value, json};

use super::fixture::{TestNode, one, runtime_pods};
use crate::pods::Command;

fn requesting(cpu: &str, command: &str) -> Value {
    let mut spec = one(command);
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    spec
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_fit_fail_with_a_reason() {
    let node = TestNode::new().await;
    node.create("a", requesting("1500m", "serve"));
    node.create("bb", requesting("600m", "serve"));
    let mut spec = one("serve");
    spec["nodeSelector"] = json!({"zone": "b"});
    node.create("ccc", spec);
    node.until_ready("a").await;
    let failed = |name: &'static str| move |node: &TestNode| node.status(name)["phase"] == "Failed";
    node.until("no room", failed("bb")).await;
    node.until("wrong zone", failed("ccc")).await;
    let status = node.status("bb");
    assert_eq!(status["reason"], "OutOfcpu");
    let message =
        "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000";
    assert_eq!(status["message"], format!("Pod was rejected: {message}"));
    assert!(status["containerStatuses"].is_null());
    assert!(node.has_event(&format!("OutOfcpu: {message}")));
    assert_eq!(node.status("ccc")["reason"], "NodeAffinity");
    node.delete("bb", 30);
    node.until_gone("bb").await;
    assert_eq!(node.starts("app").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn released_resources_can_be_used_again() {
    let node = TestNode::new().await;
    node.create("a", requesting("2", "linger 3"));
    node.until_ready("a").await;
    node.delete("a", 30);
    node.until_gone("a").await;
    node.create("b", requesting("2", "serve"));
    node.until_ready("b").await;
}

#[tokio::test(start_paused = true)]
async fn running_pods_are_not_rejected_after_a_restart() {
    let mut node = TestNode::new().await;
    node.create("a", requesting("2", "serve"));
    node.until_ready("a").await;
    node.kill().await;
    // The list may name the new pod first; the running pod keeps its resources.
    node.create("0", requesting("1", "serve"));
    node.start().await;
    node.until("refused", |node| node.status("0")["phase"] == "Failed")
        .await;
    node.pass(10).await;
    assert!(node.is_ready("a"));
    assert_eq!(node.starts("app").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn critical_pods_preempt_others() {
    let node = TestNode::new().await;
    node.create("plain", requesting("1500m", "linger 5"));
    node.until_ready("plain").await;
    let mut critical = requesting("1", "serve");
    critical["priority"] = json!(2_000_001_000);
    node.create("critical", critical);
    node.until_ready("critical").await;
    assert_eq!(node.seconds(), 5, "not before the other has ended");
    let plain = node.status("plain");
    assert_eq!(
        (&plain["phase"], &plain["reason"]),
        (&json!("Failed"), &json!("Preempting"))
    );
    assert!(node.has_event("Preempting: Preempted in order to admit critical pod"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_missing_configuration_waits_with_the_reason() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["env"] = json!([]);
    node.create("web", spec);
    let waits =
        |node: &TestNode| node.state("web")["waiting"]["reason"] == "CreateContainerConfigError";
    node.until("waits", waits).await;
    let message = "configmap \"settings\" not found";
    assert_eq!(node.state("web")["waiting"]["message"], message);
    assert!(node.has_event(&format!("Failed: Error: {message}")));
}

#[tokio::test(start_paused = true)]
async fn a_node_under_memory_pressure_rejects_best_effort_pods() {
    let node = TestNode::new().await;
    node.pressures
        .send_modify(|pressures| pressures.memory = true);
    node.create("besteffort", one("serve"));
    node.create("burstable", requesting("100m", "serve"));
    node.until_ready("burstable").await;
    let refused = |node: &TestNode| node.status("besteffort")["phase"] == "Failed";
    node.until("refused", refused).await;
    let status = node.status("besteffort");
    assert_eq!(status["reason"], "Evicted");
    let message = "Pod was rejected: The node had condition: [MemoryPressure]. ";
    assert_eq!(status["message"], message);
}

#[tokio::test(start_paused = true)]
async fn a_changed_static_pod_starts_when_its_predecessor_has_ended() {
    let node = TestNode::new().await;
    node.file("one", one("linger 4"));
    node.until("runs", |node| node.starts("app").len() == 1)
        .await;
    node.file_removed("one");
    node.file("two", one("serve"));
    node.until("follows", |node| node.starts("app").len() == 2)
        .await;
    assert_eq!(node.history(), ["+app", "-app", "+app"]);
    assert_eq!(runtime_pods(&node)[0].uid, "two");
    node.file_removed("two");
    node.file("two", one("serve"));
    node.until("again", |node| node.starts("app").len() == 3)
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_static_pod_goes_to_its_mirror_pod() {
    let node = TestNode::new().await;
    node.file("one", one("serve"));
    node.until("runs", |node| node.starts("app").len() == 1)
        .await;
    node.pass(60).await;
    let mirror = json!({"metadata": {"namespace": "ns", "name": "static", "uid": "mirror",
        "annotations": {"kubernetes.io/config.mirror": "hash"}}, "spec": {}});
    node.api
        .lock()
        .unwrap()
        .pods
        .insert("static".to_owned(), mirror);
    let (uid, mirror) = ("one".to_owned(), Some("mirror".to_owned()));
    node.commands.send(Command::SetMirror { uid, mirror }).await;
    node.until_ready("static").await;
    node.force_delete("static");
    node.pass(60).await;
    assert_eq!(node.starts("app").len(), 1, "its mirror cannot stop it");
    assert_eq!(runtime_pods(&node).len(), 1);
}

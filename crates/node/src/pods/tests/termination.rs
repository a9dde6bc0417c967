//! Termination: deletion, force deletion, eviction, deadlines, and containers that cannot be killed.

use std::time::Duration;

use kennel_core::pod::status::PodFailure;
use serde_json::json;

use super::fixture::{TestNode, container, one, runtime_pods};
use crate::pods::Command;

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_leaves_the_api_when_nothing_of_it_is_left() {
    let node = TestNode::new().await;
    node.create("web", one("linger 5"));
    node.until_ready("web").await;
    node.delete("web", 30);
    node.pass(4).await;
    assert!(node.pod("web").is_some(), "it still runs");
    node.until_gone("web").await;
    assert_eq!(node.seconds(), 5);
    assert!(runtime_pods(&node).is_empty());
    assert!(node.inputs.0.lock().unwrap().is_empty());
    node.until("forgotten", |node| node.cache.all().is_empty())
        .await;
    assert!(node.has_event("Killing: Stopping container app"));
}

#[tokio::test(start_paused = true)]
async fn containers_that_exceed_the_grace_period_are_killed() {
    let node = TestNode::new().await;
    node.create("web", one("deaf"));
    node.until_ready("web").await;
    node.delete("web", 30);
    node.until_gone("web").await;
    assert_eq!(node.seconds(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_grace_period_applies_to_kills_under_way() {
    let node = TestNode::new().await;
    node.create("web", one("deaf"));
    node.until_ready("web").await;
    node.delete("web", 3000);
    node.pass(10).await;
    node.delete("web", 5);
    node.until_gone("web").await;
    assert_eq!(node.seconds(), 15);
}

#[tokio::test(start_paused = true)]
async fn the_pre_stop_hook_counts_towards_the_grace_period() {
    let node = TestNode::new().await;
    let mut spec = one("deaf");
    spec["containers"][0]["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "6"]}}});
    node.create("web", spec);
    node.until_ready("web").await;
    node.delete("web", 10);
    node.pass(3).await;
    node.change("web", |pod| pod["metadata"]["labels"] = json!({"a": "b"}));
    node.until_gone("web").await;
    assert_eq!(node.seconds(), 10);
    assert_eq!(
        node.history(),
        ["+app", "ran sleep 6", "-app"],
        "it ran once"
    );
}

#[tokio::test(start_paused = true)]
async fn sidecars_stop_after_main_containers_in_reverse_order() {
    let node = TestNode::new().await;
    let sidecar = |name: &str| {
        let mut sidecar = container(name, "linger 1");
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let spec = json!({"initContainers": [sidecar("one"), sidecar("two")],
        "containers": [container("app", "linger 2"), container("more", "linger 3")]});
    node.create("web", spec);
    node.until_ready("web").await;
    node.delete("web", 30);
    node.until_gone("web").await;
    let ends: Vec<String> = node
        .history()
        .into_iter()
        .filter(|what| what.starts_with('-'))
        .collect();
    assert_eq!(ends, ["-app", "-more", "-two", "-one"]);
}

#[tokio::test(start_paused = true)]
async fn a_force_deleted_pod_terminates_too() {
    let node = TestNode::new().await;
    node.create("web", one("deaf"));
    node.until_ready("web").await;
    node.force_delete("web");
    node.until("nothing left", |node| runtime_pods(node).is_empty())
        .await;
    assert_eq!(node.seconds(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_that_never_started_is_removed_at_once() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["image"] = json!("nowhere.invalid/app");
    node.create("web", spec);
    node.pass(100).await;
    node.delete("web", 30);
    node.until_gone("web").await;
    assert_eq!(node.seconds(), 100);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_fails_and_stays_in_the_api() {
    let node = TestNode::new().await;
    node.create("web", one("linger 3"));
    node.until_ready("web").await;
    let failure = PodFailure {
        reason: "Evicted".to_owned(),
        message: "The node was low on resource: memory.".to_owned(),
        disruption: Some("The node was low on resource: memory.".to_owned()),
    };
    let (uid, grace) = ("uid-web".to_owned(), Duration::from_secs(10));
    node.commands
        .send(Command::Evict {
            uid,
            failure,
            grace,
        })
        .await;
    node.pass(2).await;
    assert_eq!(node.status("web")["phase"], "Running", "it still runs");
    node.until("failed", |node| node.status("web")["phase"] == "Failed")
        .await;
    let status = node.status("web");
    assert_eq!(status["reason"], "Evicted");
    assert_eq!(status["message"], "The node was low on resource: memory.");
    assert!(node.has_event("Evicted: The node was low on resource: memory."));
    let conditions = status["conditions"].as_array().unwrap();
    let target = conditions.iter().find(|c| c["type"] == "DisruptionTarget");
    assert_eq!(target.unwrap()["reason"], "TerminationByKubelet");
    node.pass(600).await;
    assert_eq!(node.starts("app").len(), 1);
    node.delete("web", 30);
    node.until_gone("web").await;
    assert!(runtime_pods(&node).is_empty());
}

#[tokio::test(start_paused = true)]
async fn active_deadline_seconds_is_enforced() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    spec["activeDeadlineSeconds"] = json!(50);
    node.create("web", spec);
    node.until("failed", |node| node.status("web")["phase"] == "Failed")
        .await;
    assert_eq!(node.seconds(), 50);
    assert_eq!(node.status("web")["reason"], "DeadlineExceeded");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_killed_is_retried_and_its_pod_not_deleted() {
    let node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    node.runtime
        .set_stuck(Some("it is in uninterruptible sleep"));
    node.delete("web", 1);
    node.pass(3000).await;
    assert!(node.pod("web").is_some());
    assert!(node.has_event("FailedKillPod: error killing pod: it is in uninterruptible sleep"));
    node.runtime.set_stuck(None);
    node.until_gone("web").await;
    assert!(runtime_pods(&node).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pods_status_says_how_its_containers_ended() {
    let node = TestNode::new().await;
    node.create("web", one("linger 1"));
    node.until_ready("web").await;
    node.change("web", |pod| {
        pod["metadata"]["finalizers"] = json!(["example.com/wait"]);
    });
    node.api.lock().unwrap().keeps_finalized = true;
    node.delete("web", 30);
    node.until("failed", |node| node.status("web")["phase"] == "Failed")
        .await;
    assert_eq!(node.state("web")["terminated"]["exitCode"], 143);
    assert!(runtime_pods(&node).is_empty() || node.seconds() <= 1);
}

//! Ephemeral containers, which are added to a running pod.

use serde_json::{Value, json};

use super::fixture::{TestNode, container, one};

fn add(node: &TestNode, pod: &str, container: &Value) {
    node.change(pod, |pod| {
        let list = &mut pod["spec"]["ephemeralContainers"];
        match list.as_array_mut() {
            Some(list) => list.push(container.clone()),
            None => *list = json!([container]),
        }
    });
}

fn state(node: &TestNode, pod: &str, number: usize) -> Value {
    node.status(pod)["ephemeralContainerStatuses"][number]["state"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_added_container_starts_in_the_running_pod_and_is_never_restarted() {
    let node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    add(&node, "web", &container("shell", "sleep 5 exit 3"));
    node.until("runs", |node| state(node, "web", 0)["running"].is_object())
        .await;
    assert!(node.is_ready("web"), "it does not count for readiness");
    node.until("exits", |node| {
        state(node, "web", 0)["terminated"]["exitCode"] == 3
    })
    .await;
    node.pass(3600).await;
    assert!(node.is_ready("web"));
    assert_eq!(node.status("web")["phase"], "Running");
    assert_eq!(node.history(), ["+app", "+shell", "-shell"]);
    node.until("said", |node| {
        let events = node.events();
        events
            .iter()
            .filter(|event| event.starts_with("Started"))
            .count()
            == 2
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_agent_finds_it_and_the_end_of_the_pod_ends_it() {
    let mut node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    add(&node, "web", &container("done", "true"));
    add(&node, "web", &container("shell", "sh"));
    node.until("both", |node| {
        state(node, "web", 0)["terminated"].is_object()
            && state(node, "web", 1)["running"].is_object()
    })
    .await;
    let before = node.history();
    node.start().await;
    node.pass(600).await;
    assert_eq!(node.history(), before);
    assert!(state(&node, "web", 1)["running"].is_object());
    node.delete("web", 30);
    node.until_gone("web").await;
    assert_eq!(node.history()[before.len()..].len(), 2, "both have ended");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_does_not_run_is_waited_for() {
    let node = TestNode::new().await;
    node.create("web", one("sleep 1 exit 1"));
    node.until("backing off", |node| {
        node.state("web")["waiting"]["reason"] == "CrashLoopBackOff"
    })
    .await;
    let mut shell = container("shell", "sh");
    shell["targetContainerName"] = json!("app");
    add(&node, "web", &shell);
    node.until("waits", |node| {
        state(node, "web", 0)["waiting"]["reason"] == "CreateContainerConfigError"
    })
    .await;
    let message = &state(&node, "web", 0)["waiting"]["message"];
    assert_eq!(message, "unable to find target container app");
    assert!(node.has_event("Failed: Error: unable to find target container app"));
    assert!(node.starts("shell").is_empty());
    node.change("web", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("image:2");
        pod["spec"]["containers"][0]["command"] = json!(["serve"]);
    });
    node.until("starts", |node| node.starts("shell").len() == 1)
        .await;
}

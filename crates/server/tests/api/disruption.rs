//! Disruption budgets, and evictions that they refuse. The words are upstream's.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{MERGE, PODS, TestServer, pod};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn running(server: &TestServer, name: &str, ready: bool) {
    let mut body = pod(name);
    body["metadata"]["labels"] = json!({"app": "a"});
    server.post(PODS, &body).await.is(201);
    let status = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": if ready { "True" } else { "False" }}]}});
    server
        .patch(MERGE, &format!("{PODS}/{name}/status"), &status)
        .await
        .ok();
}

/// A budget as the controller would have it.
async fn budget(server: &TestServer, name: &str, status: Value) {
    let body = json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    server.post(BUDGETS, &body).await.is(201);
    let status = json!({"status": status});
    server
        .patch(MERGE, &format!("{BUDGETS}/{name}/status"), &status)
        .await
        .ok();
}

async fn evict(server: &TestServer, name: &str) -> crate::fixture::Answer {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    server.post(&format!("{PODS}/{name}/eviction"), &body).await
}

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

#[tokio::test]
async fn evictions_are_charged_to_the_budget() {
    let server = TestServer::new().await;
    for name in ["p", "q", "r"] {
        running(&server, name, true).await;
    }
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3});
    budget(&server, "b", status).await;
    let mut dry = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    dry["deleteOptions"] = json!({"dryRun": ["All"]});
    server
        .post(&format!("{PODS}/p/eviction"), &dry)
        .await
        .is(201);
    let answers = join_all(["p", "q", "r"].map(|name| evict(&server, name))).await;
    let evicted = answers.iter().filter(|answer| answer.code == 201).count();
    assert_eq!(evicted, 1);
    let refused = answers.iter().find(|answer| answer.code != 201).unwrap();
    let status = refused.says(429, "TooManyRequests", VIOLATED);
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(
        cause["message"],
        "The disruption budget b does not allow evicting pods currently"
    );
    let left = server.get(&format!("{BUDGETS}/b")).await.ok();
    assert_eq!(left["status"]["disruptionsAllowed"], 0);
    assert_eq!(
        left["status"]["disruptedPods"].as_object().unwrap().len(),
        1
    );
    // A deletion is not an eviction.
    let pods = server.get(PODS).await.ok();
    let name = pods["items"][0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    server.delete(&format!("{PODS}/{name}")).await.ok();
}

#[tokio::test]
async fn a_new_budget_refuses_until_the_controller_has_seen_it() {
    let server = TestServer::new().await;
    running(&server, "p", true).await;
    budget(&server, "b", json!({})).await;
    let refused = evict(&server, "p").await;
    let status = refused.says(429, "TooManyRequests", VIOLATED);
    assert_eq!(status["details"]["retryAfterSeconds"], 10);
    assert_eq!(refused.header(http::header::RETRY_AFTER), "10");
    let words = "The disruption budget b is still being processed by the server.";
    assert_eq!(status["details"]["causes"][0]["message"], words);
    budget(&server, "c", json!({})).await;
    let words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!(evict(&server, "p").await.is(500)["message"], words);
}

#[tokio::test]
async fn pods_that_are_not_ready_or_not_running_are_evicted() {
    let server = TestServer::new().await;
    running(&server, "unready", false).await;
    let mut pending = pod("pending");
    pending["metadata"]["labels"] = json!({"app": "a"});
    server.post(PODS, &pending).await.is(201);
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 4});
    budget(&server, "b", status).await;
    evict(&server, "unready").await.is(201);
    evict(&server, "pending").await.is(201);
}

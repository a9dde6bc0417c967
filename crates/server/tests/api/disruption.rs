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

#[tokio::test]
async fn an_evicted_pod_says_why_it_goes() {
    let server = TestServer::new().await;
    let mut body = pod("p");
    body["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let created = server.post(PODS, &body).await.is(201);
    let evict = async |version: &Value, options: Value| {
        let mut body =
            json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}});
        body["deleteOptions"] = options;
        body["deleteOptions"]["preconditions"] = json!({"resourceVersion": version});
        server.post(&format!("{PODS}/p/eviction"), &body).await
    };
    let version = &created["metadata"]["resourceVersion"];
    evict(version, json!({"dryRun": ["All"]})).await.is(201);
    let unmarked = server.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(unmarked["metadata"]["resourceVersion"], *version);
    evict(&json!("1"), json!({})).await.is(409);
    evict(version, json!({})).await.is(201);
    let pod = server.get(&format!("{PODS}/p")).await.ok();
    assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let target = conditions.iter().find(|c| c["type"] == "DisruptionTarget");
    let target = target.unwrap();
    assert_eq!(target["status"], "True");
    assert_eq!(target["reason"], "EvictionByEvictionAPI");
    assert_eq!(target["message"], "Eviction API: evicting");
}

/// What kubectl 1.20 creates and reads: the same object, with a selector that means the same.
#[tokio::test]
async fn the_old_version_of_a_budget_is_another_view_of_the_same_object() {
    let server = TestServer::new().await;
    let old = BUDGETS.replace("/v1/", "/v1beta1/");
    let budget = |version: &str, name: &str| {
        json!({"apiVersion": version, "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {}}})
    };
    let created = server.post(&old, &budget("policy/v1beta1", "none")).await;
    let created = created.is(201);
    assert_eq!(created["apiVersion"], "policy/v1beta1");
    assert_eq!(created["spec"]["selector"], json!({}));
    let all = server.post(BUDGETS, &budget("policy/v1", "all")).await;
    all.is(201);
    let label = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
    let term = |operator: &str| json!({"matchExpressions": [{"key": label, "operator": operator}]});
    let selectors = async |path: &str| {
        let list = server.get(path).await.ok();
        let items = list["items"].as_array().unwrap().clone();
        let selectors = items.iter().map(|item| item["spec"]["selector"].clone());
        selectors.collect::<Vec<_>>()
    };
    assert_eq!(selectors(BUDGETS).await, [json!({}), term("Exists")]);
    assert_eq!(selectors(&old).await, [term("DoesNotExist"), json!({})]);
    // A change through one version keeps the fields of the other.
    let more = json!({"spec": {"minAvailable": 2}});
    let changed = server
        .patch(MERGE, &format!("{old}/none"), &more)
        .await
        .ok();
    assert_eq!(changed["spec"]["selector"], json!({}));
    assert_eq!(selectors(BUDGETS).await, [json!({}), term("Exists")]);
    let group = server.get("/apis/policy").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    // A pod that the empty selector of the old version does not guard.
    running(&server, "p", true).await;
    server.delete(&format!("{BUDGETS}/all")).await.ok();
    self::evict(&server, "p").await.is(201);
}

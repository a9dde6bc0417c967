//! Restarts of the agent at any moment, and outages of the API server and the runtime.

use std::time::Duration;

use fastrand::Rng;
use serde_json::json;

use super::fixture::{TestNode, container, one, runtime_pods};
use crate::runtime::fake::{FakeRuntime, RuntimeEvent};

#[tokio::test(start_paused = true)]
async fn a_restarted_agent_restarts_no_containers() {
    let mut node = TestNode::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["readinessProbe"] =
        json!({"exec": {"command": ["useful"]}, "initialDelaySeconds": 1000});
    spec["containers"][0]["lifecycle"] = json!({"postStart": {"exec": {"command": ["true"]}}});
    node.create("slow", spec);
    node.create("web", one("serve"));
    node.until_ready("slow").await;
    let writes = node.api.lock().unwrap().writes;
    for _ in 0..3 {
        node.start().await;
        node.pass(5).await;
        assert!(node.is_ready("slow") && node.is_ready("web"));
    }
    assert_eq!(node.starts("app").len(), 2);
    let written = node.api.lock().unwrap().writes - writes;
    assert!(written <= 6, "{written} statuses were written");
}

#[tokio::test(start_paused = true)]
async fn orphans_are_terminated_once_all_sources_have_synced() {
    let mut node = TestNode::new().await;
    node.create("web", one("serve"));
    node.create("stays", one("serve"));
    node.until_ready("web").await;
    node.until_ready("stays").await;
    node.kill().await;
    node.force_delete("web");
    node.api.lock().unwrap().unavailable = true;
    node.start().await;
    node.pass(100).await;
    assert_eq!(runtime_pods(&node).len(), 2, "nothing is known yet");
    node.api.lock().unwrap().unavailable = false;
    node.start().await;
    node.until("one left", |node| runtime_pods(node).len() == 1)
        .await;
    assert_eq!(runtime_pods(&node)[0].name, "stays");
    assert_eq!(node.inputs.0.lock().unwrap().len(), 1);
    assert_eq!(node.starts("app").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pods_keep_running_during_an_api_outage_and_statuses_catch_up() {
    let node = TestNode::new().await;
    let mut spec = one("sleep 600 exit 1");
    spec["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["useful"]}});
    node.create("web", spec);
    node.until_ready("web").await;
    node.api.lock().unwrap().unavailable = true;
    node.pass(3600).await;
    let starts = node.starts("app").len();
    assert!(starts >= 5, "{starts}");
    let writes = node.api.lock().unwrap().writes;
    node.api.lock().unwrap().unavailable = false;
    let counts =
        |node: &TestNode| node.status("web")["containerStatuses"][0]["restartCount"] == starts - 1;
    let before = node.seconds();
    node.until("caught up", counts).await;
    assert!(node.seconds() - before <= 30);
    let written = node.api.lock().unwrap().writes - writes;
    assert!(written <= 2, "only the newest is sent: {written}");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_outage_restarts_no_containers() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["livenessProbe"] =
        json!({"exec": {"command": ["alive"]}, "periodSeconds": 1});
    node.create("web", spec);
    node.until_ready("web").await;
    node.runtime.set_unavailable(Some("connection refused"));
    node.create("late", one("serve"));
    node.pass(300).await;
    node.runtime.set_unavailable(None);
    let back = node.seconds();
    node.until_ready("late").await;
    assert!(
        node.seconds() - back <= 10,
        "it starts soon after the runtime is back"
    );
    node.pass(60).await;
    assert!(node.is_ready("web"));
    assert_eq!(node.starts("app").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn restart_counts_go_on_after_a_reboot() {
    let mut node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    node.kill().await;
    node.runtime = FakeRuntime::new();
    node.start().await;
    let again = |node: &TestNode| node.status("web")["containerStatuses"][0]["restartCount"] == 1;
    node.until("again", again).await;
    node.until_ready("web").await;
    assert_eq!(node.runtime.all()[0].observed.runs[0].attempt, 1);
}

/// Creates and deletes pods while the agent is killed again and again, wherever it is.
async fn random_history(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let latency = Duration::from_millis(rng.u64(1..40));
    let mut node = TestNode::with(FakeRuntime::with_latency(latency)).await;
    let mut alive: Vec<String> = Vec::new();
    for number in 0..30 {
        match rng.u8(0..10) {
            0..=3 => {
                let name = format!("p{number}");
                let mut spec = one(["serve", "linger 1", "deaf"][rng.usize(0..3)]);
                if rng.bool() {
                    spec["initContainers"] = json!([container("first", "sleep 0.1")]);
                }
                node.create(&name, spec);
                alive.push(name);
            }
            4..=5 if !alive.is_empty() => {
                let name = alive.swap_remove(rng.usize(0..alive.len()));
                if rng.bool() {
                    node.delete(&name, rng.u64(0..5));
                } else {
                    node.force_delete(&name);
                }
            }
            _ => node.start().await,
        }
        let pause = Duration::from_millis(rng.u64(0..200));
        tokio::time::sleep(pause).await;
    }
    node.start().await;
    for name in &alive {
        node.until_ready(name).await;
    }
    check_history(&node, &alive, seed).await;
}

async fn check_history(node: &TestNode, alive: &[String], seed: u64) {
    let settled = |node: &TestNode| {
        let (pods, files) = (
            runtime_pods(node).len(),
            node.inputs.0.lock().unwrap().len(),
        );
        pods == alive.len()
            && files == alive.len()
            && node.api.lock().unwrap().pods.len() == alive.len()
    };
    node.until("nothing leaks", settled).await;
    let happened = node.runtime.history();
    for (_, what) in &happened {
        match what {
            RuntimeEvent::StartedTwice(..) => {
                panic!("seed {seed}: two runs at once: {:#?}", node.history())
            }
            RuntimeEvent::Started(uid, name, attempt) => {
                assert_eq!(
                    *attempt, 0,
                    "seed {seed}: {uid} {name} was restarted needlessly"
                );
            }
            RuntimeEvent::Exited(..) | RuntimeEvent::Executed(_) => {}
        }
    }
}

#[test]
fn an_agent_killed_at_any_moment_leaks_doubles_and_restarts_nothing() {
    kennel_test_support::with_seeds(0..20, |seed| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(random_history(seed));
    });
}

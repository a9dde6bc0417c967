//! Nodes that fall silent, come back, fail together: with the real controllers and the real API, and a
//! clock that the test moves.

mod fixture;

use fixture::Fixture;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

const BOTH: [&str; 2] = ["unreachable:NoSchedule", "unreachable:NoExecute"];

#[tokio::test(start_paused = true)]
async fn s3_12_3_a_silent_node_is_unknown_after_its_grace_and_loses_its_pods_after_theirs() {
    let mut fixture = Fixture::new(&["n1", "n2"]).await;
    fixture.pod("usual", "n1", Value::Null).await;
    let tolerant = json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]);
    fixture.pod("daemon", "n1", tolerant).await;
    fixture.pod("elsewhere", "n2", Value::Null).await;
    fixture.pass(49, &["n2"]).await;
    assert!(fixture.taints("n1").await.is_empty());
    let ready = fixture.condition("nodes", "n1", "Ready").await;
    assert_eq!(ready["status"], "True");

    fixture.pass(50, &["n2"]).await;
    fixture.tainted("n1", &BOTH).await;
    for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        let condition = fixture.condition("nodes", "n1", kind).await;
        assert_eq!(condition["status"], "Unknown", "{condition}");
        assert_eq!(condition["reason"], "NodeStatusUnknown");
        let message = "Kubelet stopped posting node status.";
        assert_eq!(condition["message"], message);
        assert_eq!(condition["lastHeartbeatTime"], "2026-01-02T03:04:05Z");
        assert_ne!(condition["lastTransitionTime"], "2026-01-02T03:04:05Z");
    }
    let node = fixture.get("nodes", "n1").await.unwrap();
    assert!(node["spec"]["taints"][1]["timeAdded"].is_string(), "{node}");
    for (pod, status) in [
        ("usual", "False"),
        ("daemon", "False"),
        ("elsewhere", "True"),
    ] {
        fixture
            .until(async || {
                let ready = fixture.condition("pods", pod, "Ready").await;
                (ready["status"] == status).then_some(()).ok_or(ready)
            })
            .await;
    }
    let not_ready = "Node n1 status is now: NodeNotReady";
    fixture.told("n1", "NodeNotReady", not_ready).await;
    fixture
        .told("usual", "NodeNotReady", "Node is not ready")
        .await;

    fixture.pass(349, &["n2"]).await;
    assert!(!fixture.is_leaving("usual").await);
    fixture.pass(351, &["n2"]).await;
    fixture
        .until(async || {
            fixture
                .is_leaving("usual")
                .await
                .then_some(())
                .ok_or("stays")
        })
        .await;
    let target = fixture.condition("pods", "usual", "DisruptionTarget").await;
    assert_eq!(target["reason"], "DeletionByTaintManager", "{target}");
    let marking = "Marking for deletion Pod default/usual";
    fixture.told("usual", "TaintManagerEviction", marking).await;
    fixture.pass(1_000, &["n2"]).await;
    assert!(!fixture.is_leaving("daemon").await);
    assert!(!fixture.is_leaving("elsewhere").await);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_keeps_its_pods() {
    let mut fixture = Fixture::new(&["n1", "n2"]).await;
    fixture.pod("p", "n1", Value::Null).await;
    let uid = fixture.get("pods", "p").await.unwrap()["metadata"]["uid"].clone();
    for round in 0..3 {
        let begin = round * 400;
        fixture.pass(begin + 300, &["n2"]).await;
        fixture.tainted("n1", &BOTH).await;
        fixture.renew("n1").await;
        fixture.report("n1", "True").await;
        fixture.tainted("n1", &[]).await;
        fixture.pass(begin + 400, &["n1", "n2"]).await;
        assert!(!fixture.is_leaving("p").await);
    }
    let cancelling = "Cancelling deletion of Pod default/p";
    fixture.told("p", "TaintManagerEviction", cancelling).await;
    fixture.pass(2_000, &["n1", "n2"]).await;
    let pod = fixture.get("pods", "p").await.unwrap();
    assert_eq!(pod["metadata"]["uid"], uid);
    assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
}

/// `n1` to `n10`.
fn ten() -> Vec<String> {
    (1..=10).map(|number| format!("n{number}")).collect()
}

async fn evicting(fixture: &Fixture, nodes: &[&str]) -> usize {
    let mut count = 0;
    for node in nodes {
        let taints = fixture.taints(node).await;
        count += usize::from(taints.iter().any(|taint| taint.ends_with("NoExecute")));
    }
    count
}

#[tokio::test(start_paused = true)]
async fn when_half_of_all_nodes_fall_silent_they_lose_their_pods_one_by_one() {
    let names = ten();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut fixture = Fixture::new(&names).await;
    fixture.pass(50, &names[5..]).await;
    for (seconds, count) in [(50, 1), (59, 1), (60, 2), (70, 3), (80, 4), (90, 5)] {
        fixture.pass(seconds, &names[5..]).await;
        fixture
            .until(async || {
                let found = evicting(&fixture, &names).await;
                (found == count).then_some(()).ok_or(found)
            })
            .await;
    }
    for name in &names[..5] {
        assert!(fixture.taints(name).await.contains(&BOTH[0].to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn when_most_or_all_nodes_fall_silent_no_pod_is_driven_off() {
    let names = ten();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut fixture = Fixture::new(&names).await;
    fixture.pass(500, &names[6..]).await;
    for name in &names[..6] {
        fixture.tainted(name, &BOTH[..1]).await;
    }
    fixture.pass(1_000, &[]).await;
    for name in &names {
        fixture.tainted(name, &BOTH[..1]).await;
    }
    // One comes back, and one of its neighbours: the others get their time, and then go one by one.
    for name in &names[3..] {
        fixture.report(name, "True").await;
    }
    fixture.pass(1_009, &names[3..]).await;
    assert_eq!(evicting(&fixture, &names).await, 0);
    fixture.pass(1_031, &names[3..]).await;
    fixture
        .until(async || {
            let found = evicting(&fixture, &names).await;
            (found == 3).then_some(()).ok_or(found)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_starts_gives_everybody_the_full_grace() {
    let mut fixture = Fixture::new(&["n1", "n2"]).await;
    fixture.pass(40, &["n2"]).await;
    fixture.stop().await;
    tokio::time::advance(std::time::Duration::from_hours(1)).await;
    fixture.start();
    fixture.barrier().await;
    fixture.now = 0;
    fixture.pass(49, &["n2"]).await;
    assert!(fixture.taints("n1").await.is_empty());
    fixture.pass(50, &["n2"]).await;
    fixture.tainted("n1", &BOTH).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_clock_is_wrong_lives_as_long_as_its_lease_changes() {
    let mut fixture = Fixture::new(&["n1", "n2"]).await;
    let times = [
        "2099-01-01T00:00:00.000000Z",
        "1999-01-01T00:00:00.000000Z",
        "1970-01-01T00:00:00.000001Z",
    ];
    for (seconds, time) in [(40, times[0]), (80, times[1]), (120, times[2])] {
        fixture.pass(seconds, &["n2"]).await;
        fixture.renew_at("n1", time).await;
    }
    fixture.pass(169, &["n2"]).await;
    assert!(fixture.taints("n1").await.is_empty());
    fixture.pass(170, &["n2"]).await;
    fixture.tainted("n1", &BOTH).await;
}

#[tokio::test(start_paused = true)]
async fn taints_that_others_write_at_the_same_time_are_not_lost() {
    let mut fixture = Fixture::new(&["n1", "n2"]).await;
    let patch = json!({"spec": {"taints": [{"key": "mine0", "effect": "NoSchedule"}]}});
    fixture.patch("nodes", "n1", patch).await;
    for round in 1..=15 {
        fixture
            .report("n1", if round % 2 == 0 { "True" } else { "False" })
            .await;
        fixture
            .until(async || {
                // As kubectl does: with the version that was read.
                let node = fixture.get("nodes", "n1").await.unwrap();
                let mut taints = node["spec"]["taints"].as_array().unwrap().clone();
                taints.push(json!({"key": format!("mine{round}"), "effect": "NoSchedule"}));
                let patch = json!({"spec": {"taints": taints}, "metadata":
                    {"resourceVersion": node["metadata"]["resourceVersion"]}});
                let patch = Patch::Merge(patch);
                let nodes = fixture.api("nodes");
                nodes.patch("n1", &PatchParams::default(), &patch).await
            })
            .await;
    }
    fixture.report("n1", "True").await;
    let mine: Vec<String> = (0..=15).map(|n| format!("mine{n}:NoSchedule")).collect();
    let mine: Vec<&str> = mine.iter().map(String::as_str).collect();
    fixture.tainted("n1", &mine).await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_out_of_service_are_not_waited_for() {
    let mut fixture = Fixture::new(&["n1", "n2"]).await;
    fixture.pod("usual", "n1", Value::Null).await;
    let tolerant = json!([{"operator": "Exists"}]);
    fixture.pod("tolerant", "n1", tolerant).await;
    fixture.pass(50, &["n2"]).await;
    fixture.tainted("n1", &BOTH).await;
    let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
                       "effect": "NoExecute"});
    let node = fixture.get("nodes", "n1").await.unwrap();
    let mut taints = node["spec"]["taints"].as_array().unwrap().clone();
    taints.push(taint);
    fixture
        .patch("nodes", "n1", json!({"spec": {"taints": taints}}))
        .await;
    fixture
        .until(async || {
            let pod = fixture.get("pods", "usual").await;
            pod.map_or(Ok(()), Err)
        })
        .await;
    assert!(!fixture.is_leaving("tolerant").await);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_deleted_takes_its_lease_along() {
    let fixture = Fixture::new(&["n1", "n2"]).await;
    fixture
        .told(
            "n1",
            "RegisteredNode",
            "Node n1 event: Registered Node n1 in Controller",
        )
        .await;
    fixture
        .api("nodes")
        .delete("n1", &DeleteParams::default())
        .await
        .unwrap();
    fixture
        .told(
            "n1",
            "RemovingNode",
            "Node n1 event: Removing Node n1 from Controller",
        )
        .await;
    fixture
        .until(async || {
            let lease = fixture.get("leases", "n1").await;
            lease.map_or(Ok(()), Err)
        })
        .await;
    assert!(fixture.get("leases", "n2").await.is_some());
}

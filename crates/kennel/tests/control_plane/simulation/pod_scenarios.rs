//! What scenarios do to pods.

use kennel_client::write::Call;
use serde_json::{Value, json};

use crate::simulation::fixture::{Fixture, PODS, condition, container, is_ready, waits_for};

#[tokio::test(start_paused = true)]
async fn a_pod_is_ready_at_once_if_nothing_is_said() {
    let fixture = Fixture::new(2, "", 0).await;
    fixture.pod("p", "sim-2", json!({})).await;
    let pod = fixture.pod_until("p", is_ready).await;
    let status = &pod["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["podIP"], "10.0.2.2");
    assert_eq!(status["hostIP"], "172.16.0.2");
    assert_eq!(status["observedGeneration"], pod["metadata"]["generation"]);
    assert_eq!(container(&pod)["restartCount"], 0);
    for kind in [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
    ] {
        assert_eq!(condition(&pod, kind), "True", "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_pod_is_shown_being_made_before_it_is_ready() {
    let fixture = Fixture::new(1, "pods: [{pull: 20s, start: 5s, ready: 20s}]", 0).await;
    fixture.pod("p", "sim-1", json!({})).await;
    let pod = fixture
        .pod_until("p", |pod| waits_for(pod, "ContainerCreating"))
        .await;
    assert_eq!(pod["status"]["phase"], "Pending");
    assert!(pod["status"]["podIP"].is_null(), "{}", pod["status"]);
    assert_eq!(condition(&pod, "Ready"), "False");
    let pod = fixture
        .pod_until("p", |pod| container(pod)["state"]["running"].is_object())
        .await;
    assert_eq!(
        (condition(&pod, "Ready"), condition(&pod, "Initialized")),
        ("False", "True")
    );
    fixture.pod_until("p", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn what_crashes_again_and_again_is_in_a_crash_loop() {
    let fixture = Fixture::new(1, "pods: [{exits: {after: 5s, code: 3, times: 3}}]", 0).await;
    fixture.pod("p", "sim-1", json!({})).await;
    let crashed = |pod: &Value| waits_for(pod, "CrashLoopBackOff");
    let pod = fixture.pod_until("p", crashed).await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(condition(&pod, "Ready"), "False");
    assert!(container(&pod)["restartCount"].as_u64() >= Some(1));
    assert_eq!(container(&pod)["lastState"]["terminated"]["exitCode"], 3);
    let settled = |pod: &Value| container(pod)["restartCount"] == 3 && is_ready(pod);
    let pod = fixture.pod_until("p", settled).await;
    assert_eq!(container(&pod)["lastState"]["terminated"]["exitCode"], 3);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_is_tried_again() {
    let fixture = Fixture::new(1, "pods: [{image: 'bad*', unpullable: true}]", 0).await;
    let bad = json!({"containers": [{"name": "c", "image": "bad:1"}]});
    fixture.pod("bad", "sim-1", bad).await;
    fixture.pod("good", "sim-1", json!({})).await;
    fixture
        .pod_until("bad", |pod| waits_for(pod, "ImagePullBackOff"))
        .await;
    let pod = fixture
        .pod_until("bad", |pod| waits_for(pod, "ErrImagePull"))
        .await;
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(condition(&pod, "Ready"), "False");
    fixture.pod_until("good", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn pods_end_as_their_restart_policy_says() {
    let scenario = "pods:\n- {image: fails, exits: {after: 1s, code: 2}}\n\
                    - {exits: {after: 1s, code: 0}}\n";
    let fixture = Fixture::new(1, scenario, 0).await;
    let fails = json!([{"name": "c", "image": "fails"}]);
    fixture
        .pod("done", "sim-1", json!({"restartPolicy": "OnFailure"}))
        .await;
    let never = json!({"restartPolicy": "Never", "containers": fails});
    fixture.pod("failed", "sim-1", never).await;
    let again = json!({"restartPolicy": "OnFailure", "containers": fails});
    fixture.pod("again", "sim-1", again).await;
    let done = |pod: &Value| pod["status"]["phase"] == "Succeeded";
    fixture.pod_until("done", done).await;
    let failed = |pod: &Value| pod["status"]["phase"] == "Failed";
    let pod = fixture.pod_until("failed", failed).await;
    assert_eq!(container(&pod)["state"]["terminated"]["exitCode"], 2);
    fixture
        .pod_until("again", |pod| container(pod)["restartCount"] == 2)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_stops_in_its_own_time_and_gives_its_address_back() {
    let fixture = Fixture::new(1, "pods: [{image: 'slow*', stop: 2m}]", 0).await;
    let slow = json!({"terminationGracePeriodSeconds": 600,
        "containers": [{"name": "c", "image": "slow"}]});
    fixture.pod("slow", "sim-1", slow).await;
    fixture.pod_until("slow", is_ready).await;
    fixture.pod("quick", "sim-1", json!({})).await;
    let pod = fixture.pod_until("quick", is_ready).await;
    for name in ["slow", "quick"] {
        let path = format!("{PODS}/{name}");
        let uid = fixture.get(&path).await.unwrap()["metadata"]["uid"].clone();
        fixture
            .send(Call::delete(path, uid.as_str().unwrap()))
            .await
            .unwrap();
    }
    fixture.gone(&format!("{PODS}/quick")).await;
    let slow = fixture.get(&format!("{PODS}/slow")).await.unwrap();
    assert!(is_ready(&slow), "stopped too early");
    fixture.pod("next", "sim-1", json!({})).await;
    let next = fixture.pod_until("next", is_ready).await;
    assert_eq!(next["status"]["podIP"], pod["status"]["podIP"]);
    fixture.gone(&format!("{PODS}/slow")).await;
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_somebody_else_changes_is_put_back() {
    let fixture = Fixture::new(1, "", 0).await;
    fixture.pod("p", "sim-1", json!({})).await;
    let before = fixture.pod_until("p", is_ready).await;
    let flip = json!({"status": {"conditions": [{"type": "Ready", "status": "False",
                                                 "reason": "NodeNotReady"}]}});
    let flipped = fixture.patch(&format!("{PODS}/p/status"), &flip).await;
    assert!(!is_ready(&flipped));
    let after = fixture.pod_until("p", is_ready).await;
    assert_eq!(container(&after), container(&before));
    let ready = after["status"]["conditions"].as_array().unwrap().iter();
    let ready: Vec<_> = ready.filter(|c| c["type"] == "Ready").collect();
    assert!(ready[0].get("reason").is_none(), "{ready:?}");
}

/// Which of twenty pods become ready where a third cannot be pulled.
async fn fates(seed: u64) -> Vec<bool> {
    let fixture = Fixture::new(4, "pods: [{percent: 35, unpullable: true}]", seed).await;
    for number in 0..20 {
        let (name, node) = (format!("p{number}"), format!("sim-{}", number % 4 + 1));
        fixture.pod(&name, &node, json!({})).await;
    }
    let mut fates = Vec::new();
    for number in 0..20 {
        let known = |pod: &Value| is_ready(pod) || waits_for(pod, "ImagePullBackOff");
        let pod = fixture.pod_until(&format!("p{number}"), known).await;
        fates.push(is_ready(&pod));
    }
    fates
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_what_chance_does() {
    let first = fates(1).await;
    assert!(first.contains(&true) && first.contains(&false), "{first:?}");
    assert_eq!(first, fates(1).await);
    assert_ne!(first, fates(2).await);
}

#[tokio::test(start_paused = true)]
async fn those_who_play_the_nodes_after_others_change_nothing_that_runs() {
    let scenario = "pods: [{image: 'good*'}, {image: bad, exits: {after: 1s, code: 4}}]";
    let fixture = Fixture::new(2, scenario, 0).await;
    fixture.pod("p", "sim-1", json!({})).await;
    let bad = json!({"containers": [{"name": "c", "image": "bad"}]});
    fixture.pod("bad", "sim-1", bad).await;
    let before = fixture.pod_until("p", is_ready).await;
    fixture
        .pod_until("bad", |pod| waits_for(pod, "CrashLoopBackOff"))
        .await;
    let fixture = fixture.restart(2, scenario, 0).await;
    fixture.pod("q", "sim-1", json!({})).await;
    let new = fixture.pod_until("q", is_ready).await;
    let after = fixture.get(&format!("{PODS}/p")).await.unwrap();
    assert_eq!(after, before, "written for nothing");
    assert_ne!(new["status"]["podIP"], after["status"]["podIP"]);
    let grown = |pod: &Value| container(pod)["restartCount"].as_u64() >= Some(3);
    fixture.pod_until("bad", grown).await;
}

//! What scenarios do to nodes.

use std::time::Duration;

use kennel_client::write::Call;
use serde_json::{Value, json};

use crate::simulation::fixture::{Fixture, NODES, PODS, condition, container, is_ready};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn boot_id(node: &Value) -> String {
    let id = node["status"]["nodeInfo"]["bootID"].as_str();
    id.unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_silent_catches_up_when_it_is_back() {
    // Silent soon after the pods run, for so long that what follows happens meanwhile.
    let scenario = "nodes: [{name: sim-1, silent: {at: [1m], for: 3m}}]";
    let fixture = Fixture::new(2, scenario, 0).await;
    fixture.pod("kept", "sim-1", json!({})).await;
    fixture.pod("ended", "sim-1", json!({})).await;
    let kept = fixture.pod_until("kept", is_ready).await;
    let ended = fixture.pod_until("ended", is_ready).await;
    fixture.pass(Duration::from_secs(70)).await;
    let lease = fixture.get(&format!("{LEASES}/sim-1")).await.unwrap();
    let unknown =
        |kind: &str| json!({"type": kind, "status": "Unknown", "reason": "NodeStatusUnknown"});
    let unheard = json!({"status": {"conditions": [unknown("Ready"), unknown("DiskPressure")]}});
    fixture
        .patch(&format!("{NODES}/sim-1/status"), &unheard)
        .await;
    let flip = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    fixture.patch(&format!("{PODS}/kept/status"), &flip).await;
    let uid = ended["metadata"]["uid"].as_str().unwrap();
    fixture
        .send(Call::delete(format!("{PODS}/ended"), uid))
        .await
        .unwrap();
    fixture.pod("new", "sim-1", json!({})).await;
    fixture.pod("elsewhere", "sim-2", json!({})).await;
    fixture.pod_until("elsewhere", is_ready).await;
    for name in ["kept", "new"] {
        let pod = fixture.get(&format!("{PODS}/{name}")).await.unwrap();
        assert!(!is_ready(&pod), "{name}: a silent node spoke");
    }
    assert_eq!(
        fixture.get(&format!("{LEASES}/sim-1")).await.unwrap(),
        lease
    );
    let node = fixture.until(&format!("{NODES}/sim-1"), is_ready).await;
    assert_eq!(condition(&node, "DiskPressure"), "False");
    let back = fixture.pod_until("kept", is_ready).await;
    assert_eq!(container(&back), container(&kept), "restarted for nothing");
    fixture.pod_until("new", is_ready).await;
    fixture.gone(&format!("{PODS}/ended")).await;
    fixture
        .until(&format!("{LEASES}/sim-1"), |now| *now != lease)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_reboots_starts_its_pods_again() {
    let scenario = "nodes: [{name: sim-1, reboot: {at: [1m], for: 30s}}]";
    let fixture = Fixture::new(2, scenario, 0).await;
    fixture.pod("p", "sim-1", json!({})).await;
    fixture.pod("q", "sim-2", json!({})).await;
    let before = fixture.pod_until("p", is_ready).await;
    let other = fixture.pod_until("q", is_ready).await;
    let node = fixture.get(&format!("{NODES}/sim-1")).await.unwrap();
    let restarted = |pod: &Value| container(pod)["restartCount"] == 1 && is_ready(pod);
    let after = fixture.pod_until("p", restarted).await;
    assert_eq!(after["status"]["podIP"], before["status"]["podIP"]);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(container(&after)["lastState"]["terminated"].is_object());
    let booted = |now: &Value| boot_id(now) != boot_id(&node);
    fixture.until(&format!("{NODES}/sim-1"), booted).await;
    let told = |list: &Value| {
        let events = list["items"].as_array().into_iter().flatten();
        let about = |event: &&Value| event["involvedObject"]["name"] == "sim-1";
        events
            .filter(about)
            .any(|event| event["reason"] == "Rebooted")
    };
    fixture
        .until("/api/v1/namespaces/default/events", told)
        .await;
    assert_eq!(fixture.get(&format!("{PODS}/q")).await.unwrap(), other);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_others_take_for_dead_says_that_it_lives() {
    let fixture = Fixture::new(1, "", 0).await;
    let dead = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let node = fixture.patch(&format!("{NODES}/sim-1/status"), &dead).await;
    assert!(!is_ready(&node));
    fixture.until(&format!("{NODES}/sim-1"), is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_stays_away_until_it_is_started_again() {
    let fixture = Fixture::new(2, "", 0).await;
    let node = fixture.get(&format!("{NODES}/sim-1")).await.unwrap();
    let uid = node["metadata"]["uid"].as_str().unwrap();
    fixture
        .send(Call::delete(format!("{NODES}/sim-1"), uid))
        .await
        .unwrap();
    fixture.pass(Duration::from_secs(70)).await;
    assert!(fixture.get(&format!("{NODES}/sim-1")).await.is_none());
    let fixture = fixture.restart(2, "", 0).await;
    let again = fixture.until(&format!("{NODES}/sim-1"), is_ready).await;
    assert_ne!(again["metadata"]["uid"], uid);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_simulation_is_no_reboot() {
    let fixture = Fixture::new(1, "", 0).await;
    let before = fixture.get(&format!("{NODES}/sim-1")).await.unwrap();
    let fixture = fixture.restart(1, "", 9).await;
    let after = fixture.get(&format!("{NODES}/sim-1")).await.unwrap();
    assert_eq!(boot_id(&after), boot_id(&before));
    let since = |node: &Value| node["status"]["conditions"][3]["lastTransitionTime"].clone();
    assert_eq!(since(&after), since(&before));
}

//! What scenarios do to nodes.

use std::time::Duration;

use kennel_client::write::Call;
use serde_json::{Value, json};

use crate::world::{NODES, PODS, World, condition, container, is_ready};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn boot_id(node: &Value) -> String {
    let id = node["status"]["nodeInfo"]["bootID"].as_str();
    id.unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_silent_catches_up_when_it_is_back() {
    // Silent soon after the pods run, for so long that what follows happens meanwhile.
    let scenario = "nodes: [{name: sim-1, silent: {at: [1m], for: 3m}}]";
    let world = World::new(2, scenario, 0).await;
    world.pod("kept", "sim-1", json!({})).await;
    world.pod("ended", "sim-1", json!({})).await;
    let kept = world.pod_until("kept", is_ready).await;
    let ended = world.pod_until("ended", is_ready).await;
    world.pass(Duration::from_secs(70)).await;
    let lease = world.get(&format!("{LEASES}/sim-1")).await.unwrap();
    let unknown =
        |kind: &str| json!({"type": kind, "status": "Unknown", "reason": "NodeStatusUnknown"});
    let unheard = json!({"status": {"conditions": [unknown("Ready"), unknown("DiskPressure")]}});
    world
        .patch(&format!("{NODES}/sim-1/status"), &unheard)
        .await;
    let flip = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    world.patch(&format!("{PODS}/kept/status"), &flip).await;
    let uid = ended["metadata"]["uid"].as_str().unwrap();
    world
        .send(Call::delete(format!("{PODS}/ended"), uid))
        .await
        .unwrap();
    world.pod("new", "sim-1", json!({})).await;
    world.pod("elsewhere", "sim-2", json!({})).await;
    world.pod_until("elsewhere", is_ready).await;
    for name in ["kept", "new"] {
        let pod = world.get(&format!("{PODS}/{name}")).await.unwrap();
        assert!(!is_ready(&pod), "{name}: a silent node spoke");
    }
    assert_eq!(world.get(&format!("{LEASES}/sim-1")).await.unwrap(), lease);
    let node = world.until(&format!("{NODES}/sim-1"), is_ready).await;
    assert_eq!(condition(&node, "DiskPressure"), "False");
    let back = world.pod_until("kept", is_ready).await;
    assert_eq!(container(&back), container(&kept), "restarted for nothing");
    world.pod_until("new", is_ready).await;
    world.gone(&format!("{PODS}/ended")).await;
    world
        .until(&format!("{LEASES}/sim-1"), |now| *now != lease)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_reboots_starts_its_pods_again() {
    let scenario = "nodes: [{name: sim-1, reboot: {at: [1m], for: 30s}}]";
    let world = World::new(2, scenario, 0).await;
    world.pod("p", "sim-1", json!({})).await;
    world.pod("q", "sim-2", json!({})).await;
    let before = world.pod_until("p", is_ready).await;
    let other = world.pod_until("q", is_ready).await;
    let node = world.get(&format!("{NODES}/sim-1")).await.unwrap();
    let restarted = |pod: &Value| container(pod)["restartCount"] == 1 && is_ready(pod);
    let after = world.pod_until("p", restarted).await;
    assert_eq!(after["status"]["podIP"], before["status"]["podIP"]);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(container(&after)["lastState"]["terminated"].is_object());
    let booted = |now: &Value| boot_id(now) != boot_id(&node);
    world.until(&format!("{NODES}/sim-1"), booted).await;
    let told = |list: &Value| {
        let events = list["items"].as_array().into_iter().flatten();
        let about = |event: &&Value| event["involvedObject"]["name"] == "sim-1";
        events
            .filter(about)
            .any(|event| event["reason"] == "Rebooted")
    };
    world.until("/api/v1/namespaces/default/events", told).await;
    assert_eq!(world.get(&format!("{PODS}/q")).await.unwrap(), other);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_others_take_for_dead_says_that_it_lives() {
    let world = World::new(1, "", 0).await;
    let dead = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let node = world.patch(&format!("{NODES}/sim-1/status"), &dead).await;
    assert!(!is_ready(&node));
    world.until(&format!("{NODES}/sim-1"), is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_stays_away_until_it_is_started_again() {
    let world = World::new(2, "", 0).await;
    let node = world.get(&format!("{NODES}/sim-1")).await.unwrap();
    let uid = node["metadata"]["uid"].as_str().unwrap();
    world
        .send(Call::delete(format!("{NODES}/sim-1"), uid))
        .await
        .unwrap();
    world.pass(Duration::from_secs(70)).await;
    assert!(world.get(&format!("{NODES}/sim-1")).await.is_none());
    let world = world.restart(2, "", 0).await;
    let again = world.until(&format!("{NODES}/sim-1"), is_ready).await;
    assert_ne!(again["metadata"]["uid"], uid);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_simulation_is_no_reboot() {
    let world = World::new(1, "", 0).await;
    let before = world.get(&format!("{NODES}/sim-1")).await.unwrap();
    let world = world.restart(1, "", 9).await;
    let after = world.get(&format!("{NODES}/sim-1")).await.unwrap();
    assert_eq!(boot_id(&after), boot_id(&before));
    let since = |node: &Value| node["status"]["conditions"][3]["lastTransitionTime"].clone();
    assert_eq!(since(&after), since(&before));
}

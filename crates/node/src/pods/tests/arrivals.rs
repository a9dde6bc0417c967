//! Pods that arrive: those that fit, those that do not, and those that must be made room for.

use serde_json::{Value, json};

use super::world::{World, left, one};
use crate::pods::Order;

fn wants(cpu: &str, command: &str) -> Value {
    let mut spec = one(command);
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    spec
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_fails_with_a_reason() {
    let world = World::new().await;
    world.create("a", wants("1500m", "serve"));
    world.create("bb", wants("600m", "serve"));
    let mut spec = one("serve");
    spec["nodeSelector"] = json!({"zone": "b"});
    world.create("ccc", spec);
    world.until_ready("a").await;
    let failed = |name: &'static str| move |world: &World| world.status(name)["phase"] == "Failed";
    world.until("no room", failed("bb")).await;
    world.until("wrong zone", failed("ccc")).await;
    let status = world.status("bb");
    assert_eq!(status["reason"], "OutOfcpu");
    let message =
        "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000";
    assert_eq!(status["message"], format!("Pod was rejected: {message}"));
    assert!(status["containerStatuses"].is_null());
    assert!(world.has_event(&format!("OutOfcpu: {message}")));
    assert_eq!(world.status("ccc")["reason"], "NodeAffinity");
    world.delete("bb", 30);
    world.until_gone("bb").await;
    assert_eq!(world.starts("app").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn room_that_is_given_back_can_be_had_again() {
    let world = World::new().await;
    world.create("a", wants("2", "linger 3"));
    world.until_ready("a").await;
    world.delete("a", 30);
    world.until_gone("a").await;
    world.create("b", wants("2", "serve"));
    world.until_ready("b").await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_ran_are_not_refused_after_a_restart() {
    let mut world = World::new().await;
    world.create("a", wants("2", "serve"));
    world.until_ready("a").await;
    world.kill().await;
    // The listing may name the new one first; what runs keeps its room.
    world.create("0", wants("1", "serve"));
    world.start().await;
    world
        .until("refused", |world| world.status("0")["phase"] == "Failed")
        .await;
    world.pass(10).await;
    assert!(world.is_ready("a"));
    assert_eq!(world.starts("app").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn critical_pods_are_made_room_for() {
    let world = World::new().await;
    world.create("plain", wants("1500m", "linger 5"));
    world.until_ready("plain").await;
    let mut critical = wants("1", "serve");
    critical["priority"] = json!(2_000_001_000);
    world.create("critical", critical);
    world.until_ready("critical").await;
    assert_eq!(world.seconds(), 5, "not before the other has ended");
    let plain = world.status("plain");
    assert_eq!(
        (&plain["phase"], &plain["reason"]),
        (&json!("Failed"), &json!("Preempting"))
    );
    assert!(world.has_event("Preempting: Preempted in order to admit critical pod"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_configuration_lacks_something_waits_with_the_reason() {
    let world = World::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["env"] = json!([]);
    world.create("web", spec);
    let waits =
        |world: &World| world.state("web")["waiting"]["reason"] == "CreateContainerConfigError";
    world.until("waits", waits).await;
    let message = "configmap \"settings\" not found";
    assert_eq!(world.state("web")["waiting"]["message"], message);
    assert!(world.has_event(&format!("Failed: Error: {message}")));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_runs_short_takes_less() {
    let world = World::new().await;
    world
        .pressures
        .send_modify(|pressures| pressures.memory = true);
    world.create("careless", one("serve"));
    world.create("modest", wants("100m", "serve"));
    world.until_ready("modest").await;
    let refused = |world: &World| world.status("careless")["phase"] == "Failed";
    world.until("refused", refused).await;
    let status = world.status("careless");
    assert_eq!(status["reason"], "Evicted");
    let message = "Pod was rejected: The node had condition: [MemoryPressure]. ";
    assert_eq!(status["message"], message);
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_s_pod_begins_when_the_one_before_has_ended() {
    let world = World::new().await;
    world.file("one", one("linger 4"));
    world
        .until("runs", |world| world.starts("app").len() == 1)
        .await;
    world.file_gone("one");
    world.file("two", one("serve"));
    world
        .until("follows", |world| world.starts("app").len() == 2)
        .await;
    assert_eq!(world.story(), ["+app", "-app", "+app"]);
    assert_eq!(left(&world)[0].uid, "two");
    world.file_gone("two");
    world.file("two", one("serve"));
    world
        .until("again", |world| world.starts("app").len() == 3)
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_file_s_pod_goes_to_its_mirror() {
    let world = World::new().await;
    world.file("one", one("serve"));
    world
        .until("runs", |world| world.starts("app").len() == 1)
        .await;
    world.pass(60).await;
    let mirror = json!({"metadata": {"namespace": "ns", "name": "static", "uid": "mirror",
        "annotations": {"kubernetes.io/config.mirror": "hash"}}, "spec": {}});
    world
        .api
        .lock()
        .unwrap()
        .pods
        .insert("static".to_owned(), mirror);
    let (uid, mirror) = ("one".to_owned(), Some("mirror".to_owned()));
    world.orders.give(Order::Mirrored { uid, mirror }).await;
    world.until_ready("static").await;
    world.delete_by_force("static");
    world.pass(60).await;
    assert_eq!(world.starts("app").len(), 1, "its mirror cannot stop it");
    assert_eq!(left(&world).len(), 1);
}

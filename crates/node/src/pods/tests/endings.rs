//! Pods that end: deleted, by force, evicted, late, and those that will not end.

use std::time::Duration;

use kennel_core::pod::status::Verdict;
use serde_json::json;

use super::world::{World, container, left, one};
use crate::pods::Order;

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_gone_when_nothing_of_it_is_left() {
    let world = World::new().await;
    world.create("web", one("linger 5"));
    world.until_ready("web").await;
    world.delete("web", 30);
    world.pass(4).await;
    assert!(world.pod("web").is_some(), "it still runs");
    world.until_gone("web").await;
    assert_eq!(world.seconds(), 5);
    assert!(left(&world).is_empty());
    assert!(world.supplies.0.lock().unwrap().is_empty());
    world
        .until("forgotten", |world| world.directory.all().is_empty())
        .await;
    assert!(world.has_event("Killing: Stopping container app"));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_end_in_time_is_killed() {
    let world = World::new().await;
    world.create("web", one("deaf"));
    world.until_ready("web").await;
    world.delete("web", 30);
    world.until_gone("web").await;
    assert_eq!(world.seconds(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_grace_shortens_what_is_going_on() {
    let world = World::new().await;
    world.create("web", one("deaf"));
    world.until_ready("web").await;
    world.delete("web", 3000);
    world.pass(10).await;
    world.delete("web", 5);
    world.until_gone("web").await;
    assert_eq!(world.seconds(), 15);
}

#[tokio::test(start_paused = true)]
async fn the_hook_before_the_end_counts_into_the_grace() {
    let world = World::new().await;
    let mut spec = one("deaf");
    spec["containers"][0]["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "6"]}}});
    world.create("web", spec);
    world.until_ready("web").await;
    world.delete("web", 10);
    world.pass(3).await;
    world.change("web", |pod| pod["metadata"]["labels"] = json!({"a": "b"}));
    world.until_gone("web").await;
    assert_eq!(world.seconds(), 10);
    assert_eq!(
        world.story(),
        ["+app", "ran sleep 6", "-app"],
        "it ran once"
    );
}

#[tokio::test(start_paused = true)]
async fn sidecars_end_after_those_they_serve_the_last_first() {
    let world = World::new().await;
    let sidecar = |name: &str| {
        let mut sidecar = container(name, "linger 1");
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let spec = json!({"initContainers": [sidecar("one"), sidecar("two")],
        "containers": [container("app", "linger 2"), container("more", "linger 3")]});
    world.create("web", spec);
    world.until_ready("web").await;
    world.delete("web", 30);
    world.until_gone("web").await;
    let ends: Vec<String> = world
        .story()
        .into_iter()
        .filter(|what| what.starts_with('-'))
        .collect();
    assert_eq!(ends, ["-app", "-more", "-two", "-one"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_taken_out_by_force_ends_too() {
    let world = World::new().await;
    world.create("web", one("deaf"));
    world.until_ready("web").await;
    world.delete_by_force("web");
    world
        .until("nothing left", |world| left(world).is_empty())
        .await;
    assert_eq!(world.seconds(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_that_never_started_goes_at_once() {
    let world = World::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["image"] = json!("nowhere.invalid/app");
    world.create("web", spec);
    world.pass(100).await;
    world.delete("web", 30);
    world.until_gone("web").await;
    assert_eq!(world.seconds(), 100);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_fails_and_stays_to_be_looked_at() {
    let world = World::new().await;
    world.create("web", one("linger 3"));
    world.until_ready("web").await;
    let verdict = Verdict {
        reason: "Evicted".to_owned(),
        message: "The node was low on resource: memory.".to_owned(),
    };
    let (uid, grace) = ("uid-web".to_owned(), Duration::from_secs(10));
    world
        .orders
        .give(Order::Evict {
            uid,
            verdict,
            grace,
        })
        .await;
    world.pass(2).await;
    assert_eq!(world.status("web")["phase"], "Running", "it still runs");
    world
        .until("failed", |world| world.status("web")["phase"] == "Failed")
        .await;
    let status = world.status("web");
    assert_eq!(status["reason"], "Evicted");
    assert_eq!(status["message"], "The node was low on resource: memory.");
    assert!(world.has_event("Evicted: The node was low on resource: memory."));
    world.pass(600).await;
    assert_eq!(world.starts("app").len(), 1);
    world.delete("web", 30);
    world.until_gone("web").await;
    assert!(left(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_only_so_much_time() {
    let world = World::new().await;
    let mut spec = one("serve");
    spec["activeDeadlineSeconds"] = json!(50);
    world.create("web", spec);
    world
        .until("failed", |world| world.status("web")["phase"] == "Failed")
        .await;
    assert_eq!(world.seconds(), 50);
    assert_eq!(world.status("web")["reason"], "DeadlineExceeded");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_killed_is_tried_again_and_never_said_to_be_gone() {
    let world = World::new().await;
    world.create("web", one("serve"));
    world.until_ready("web").await;
    world
        .runtime
        .set_stuck(Some("it is in uninterruptible sleep"));
    world.delete("web", 1);
    world.pass(3000).await;
    assert!(world.pod("web").is_some());
    assert!(world.has_event("FailedKillPod: error killing pod: it is in uninterruptible sleep"));
    world.runtime.set_stuck(None);
    world.until_gone("web").await;
    assert!(left(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_says_how_its_containers_ended() {
    let world = World::new().await;
    world.create("web", one("linger 1"));
    world.until_ready("web").await;
    world.change("web", |pod| {
        pod["metadata"]["finalizers"] = json!(["example.com/wait"]);
    });
    world.api.lock().unwrap().keeps_finalized = true;
    world.delete("web", 30);
    world
        .until("failed", |world| world.status("web")["phase"] == "Failed")
        .await;
    assert_eq!(world.state("web")["terminated"]["exitCode"], 143);
    assert!(left(&world).is_empty() || world.seconds() <= 1);
}

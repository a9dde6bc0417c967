//! The agent dies and comes back, at any moment; the server is away; the runtime is.

use std::time::Duration;

use fastrand::Rng;
use serde_json::json;

use super::world::{World, container, left, one};
use crate::runtime::simulated::{Happening, Simulated};

#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_back_restarts_nothing() {
    let mut world = World::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["readinessProbe"] =
        json!({"exec": {"command": ["useful"]}, "initialDelaySeconds": 1000});
    spec["containers"][0]["lifecycle"] = json!({"postStart": {"exec": {"command": ["true"]}}});
    world.create("slow", spec);
    world.create("web", one("serve"));
    world.until_ready("slow").await;
    let writes = world.api.lock().unwrap().writes;
    for _ in 0..3 {
        world.start().await;
        world.pass(5).await;
        assert!(world.is_ready("slow") && world.is_ready("web"));
    }
    assert_eq!(world.starts("app").len(), 2);
    let written = world.api.lock().unwrap().writes - writes;
    assert!(written <= 6, "{written} statuses were written");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_for_any_more_is_ended_once_that_is_certain() {
    let mut world = World::new().await;
    world.create("web", one("serve"));
    world.create("stays", one("serve"));
    world.until_ready("web").await;
    world.until_ready("stays").await;
    world.kill().await;
    world.delete_by_force("web");
    world.api.lock().unwrap().away = true;
    world.start().await;
    world.pass(100).await;
    assert_eq!(left(&world).len(), 2, "nothing is known yet");
    world.api.lock().unwrap().away = false;
    world.start().await;
    world
        .until("one left", |world| left(world).len() == 1)
        .await;
    assert_eq!(left(&world)[0].name, "stays");
    assert_eq!(world.supplies.0.lock().unwrap().len(), 1);
    assert_eq!(world.starts("app").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pods_live_on_while_the_server_is_away_and_statuses_catch_up() {
    let world = World::new().await;
    let mut spec = one("sleep 600 exit 1");
    spec["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["useful"]}});
    world.create("web", spec);
    world.until_ready("web").await;
    world.api.lock().unwrap().away = true;
    world.pass(3600).await;
    let starts = world.starts("app").len();
    assert!(starts >= 5, "{starts}");
    let writes = world.api.lock().unwrap().writes;
    world.api.lock().unwrap().away = false;
    let counts =
        |world: &World| world.status("web")["containerStatuses"][0]["restartCount"] == starts - 1;
    let before = world.seconds();
    world.until("caught up", counts).await;
    assert!(world.seconds() - before <= 30);
    let written = world.api.lock().unwrap().writes - writes;
    assert!(written <= 2, "only the newest is sent: {written}");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_is_away_costs_no_container_its_life() {
    let world = World::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["livenessProbe"] =
        json!({"exec": {"command": ["alive"]}, "periodSeconds": 1});
    world.create("web", spec);
    world.until_ready("web").await;
    world.runtime.set_unavailable(Some("connection refused"));
    world.create("late", one("serve"));
    world.pass(300).await;
    world.runtime.set_unavailable(None);
    let back = world.seconds();
    world.until_ready("late").await;
    assert!(
        world.seconds() - back <= 10,
        "it is not waited for longer than need be"
    );
    world.pass(60).await;
    assert!(world.is_ready("web"));
    assert_eq!(world.starts("app").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_restarts_goes_on_counting() {
    let mut world = World::new().await;
    world.create("web", one("serve"));
    world.until_ready("web").await;
    world.kill().await;
    world.runtime = Simulated::new();
    world.start().await;
    let again = |world: &World| world.status("web")["containerStatuses"][0]["restartCount"] == 1;
    world.until("again", again).await;
    world.until_ready("web").await;
    assert_eq!(world.runtime.all()[0].observed.runs[0].attempt, 1);
}

/// Pods come, change and go while the agent is killed again and again, wherever it is.
async fn history(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let latency = Duration::from_millis(rng.u64(1..40));
    let mut world = World::with(Simulated::with_latency(latency)).await;
    let mut alive: Vec<String> = Vec::new();
    for number in 0..30 {
        match rng.u8(0..10) {
            0..=3 => {
                let name = format!("p{number}");
                let mut spec = one(["serve", "linger 1", "deaf"][rng.usize(0..3)]);
                if rng.bool() {
                    spec["initContainers"] = json!([container("first", "sleep 0.1")]);
                }
                world.create(&name, spec);
                alive.push(name);
            }
            4..=5 if !alive.is_empty() => {
                let name = alive.swap_remove(rng.usize(0..alive.len()));
                if rng.bool() {
                    world.delete(&name, rng.u64(0..5));
                } else {
                    world.delete_by_force(&name);
                }
            }
            _ => world.start().await,
        }
        let pause = Duration::from_millis(rng.u64(0..200));
        tokio::time::sleep(pause).await;
    }
    world.start().await;
    for name in &alive {
        world.until_ready(name).await;
    }
    check_history(&world, &alive, seed).await;
}

async fn check_history(world: &World, alive: &[String], seed: u64) {
    let settled = |world: &World| {
        let (left, given) = (left(world).len(), world.supplies.0.lock().unwrap().len());
        left == alive.len()
            && given == alive.len()
            && world.api.lock().unwrap().pods.len() == alive.len()
    };
    world.until("nothing leaks", settled).await;
    let happened = world.runtime.happened();
    for (_, what) in &happened {
        match what {
            Happening::Doubled(..) => panic!("seed {seed}: runs twice: {:#?}", world.story()),
            Happening::Began(uid, name, attempt) => {
                assert_eq!(
                    *attempt, 0,
                    "seed {seed}: {uid} {name} was restarted needlessly"
                );
            }
            Happening::Ended(..) | Happening::Ran(_) => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_killed_at_any_moment_leaks_nothing_doubles_nothing_restarts_nothing() {
    for seed in 0..20 {
        history(seed).await;
    }
}

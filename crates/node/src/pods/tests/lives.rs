//! Pods that run: starts, crashes, probes, hooks, init containers and sidecars.

use serde_json::json;

use super::world::{World, container, one};

#[tokio::test(start_paused = true)]
async fn a_pod_runs_and_its_status_and_events_say_so() {
    let world = World::new().await;
    world.create("web", one("serve"));
    world.until_ready("web").await;
    let status = world.status("web");
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["hostIP"], "192.0.2.1");
    assert!(status["podIP"].as_str().unwrap().starts_with("10."));
    let container = &status["containerStatuses"][0];
    assert_eq!(container["restartCount"], 0);
    assert_eq!(container["containerID"], "simulated://container-2");
    world
        .until("events", |world| world.events().len() == 3)
        .await;
    assert_eq!(
        world.events(),
        [
            "Pulled: Container image \"image:1\" already present on machine and can be accessed by \
             the pod",
            "Created: Container created",
            "Started: Container started"
        ]
    );
    assert_eq!(world.seconds(), 0, "nothing waits without need");
}

#[tokio::test(start_paused = true)]
async fn a_pod_at_rest_costs_nothing() {
    let world = World::new().await;
    world.create("web", one("serve"));
    world.until_ready("web").await;
    let writes = world.api.lock().unwrap().writes;
    world.pass(3600).await;
    assert_eq!(world.api.lock().unwrap().writes, writes);
}

#[tokio::test(start_paused = true)]
async fn crashes_are_waited_out_longer_and_longer() {
    let world = World::new().await;
    world.create("web", one("sleep 1 exit 3"));
    world
        .until("seven", |world| world.starts("app").len() == 8)
        .await;
    let starts = world.starts("app");
    let waits: Vec<u64> = starts.windows(2).map(|two| two[1] - two[0] - 1).collect();
    assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300]);
    world
        .until("waiting", |world| world.state("web")["waiting"].is_object())
        .await;
    let waiting = &world.state("web")["waiting"];
    assert_eq!(waiting["reason"], "CrashLoopBackOff");
    let message = "back-off 5m0s restarting failed container=app pod=web_ns(uid-web)";
    assert_eq!(waiting["message"], message);
    let last = &world.status("web")["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["message"]),
        (&json!(3), &json!("alas"))
    );
    assert!(world.has_event("BackOff: Back-off restarting failed container app in pod web_ns"));
}

#[tokio::test(start_paused = true)]
async fn old_runs_are_taken_away_but_for_the_last_two() {
    let world = World::new().await;
    world.create("web", one("sleep 1 exit 3"));
    world
        .until("five", |world| world.starts("app").len() == 5)
        .await;
    let runs = |world: &World| world.runtime.all()[0].observed.runs.len();
    world.until("two left", |world| runs(world) == 2).await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_done_stay_done() {
    let world = World::new().await;
    let mut spec = one("sleep 5");
    spec["restartPolicy"] = json!("OnFailure");
    world.create("job", spec.clone());
    spec["restartPolicy"] = json!("Never");
    spec["containers"][0]["command"] = json!(["sleep", "5", "exit", "2"]);
    world.create("bad", spec);
    let phase = |name: &'static str, phase: &'static str| {
        move |world: &World| world.status(name)["phase"] == phase
    };
    world.until("job", phase("job", "Succeeded")).await;
    world.until("bad", phase("bad", "Failed")).await;
    let state = &world.state("bad")["terminated"];
    assert_eq!(
        (&state["exitCode"], &state["reason"]),
        (&json!(2), &json!("Error"))
    );
    let all = world.runtime.all();
    assert!(
        all.iter()
            .all(|found| !found.observed.sandbox.as_ref().unwrap().ready)
    );
    world.pass(600).await;
    assert_eq!(world.starts("app").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn init_containers_go_first_in_order_and_sidecars_stay() {
    let world = World::new().await;
    let mut sidecar = container("side", "serve");
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({
        "initContainers": [container("first", "sleep 2"), sidecar, container("second", "sleep 2")],
        "containers": [container("app", "serve")]});
    world.create("web", spec);
    world
        .until("first", |world| world.story() == ["+first"])
        .await;
    let waits = |world: &World| world.state("web")["waiting"]["reason"] == "PodInitializing";
    world.until("waits", waits).await;
    world.until_ready("web").await;
    let order = ["+first", "-first", "+side", "+second", "-second", "+app"];
    assert_eq!(world.story(), order);
}

#[tokio::test(start_paused = true)]
async fn a_failing_liveness_probe_restarts_and_readiness_only_hides() {
    let world = World::new().await;
    let mut spec = one("serve");
    let probe = |command: &str| json!({"exec": {"command": [command]}, "periodSeconds": 10, "failureThreshold": 2});
    spec["containers"][0]["livenessProbe"] = probe("alive");
    spec["containers"][0]["readinessProbe"] = probe("useful");
    world.create("web", spec);
    world.until_ready("web").await;
    world.runtime.set_answer("useful", 1);
    world.until("unready", |world| !world.is_ready("web")).await;
    assert_eq!(world.starts("app").len(), 1);
    world.runtime.set_answer("useful", 0);
    world.until_ready("web").await;
    world.runtime.set_answer("alive", 1);
    world
        .until("restarted", |world| world.starts("app").len() == 2)
        .await;
    assert!(world.has_event("Unhealthy: Readiness probe failed: "));
    assert!(world.has_event("Unhealthy: Liveness probe failed: "));
    let killing = "Killing: Container app failed liveness probe, will be restarted";
    world.until("said", |world| world.has_event(killing)).await;
}

#[tokio::test(start_paused = true)]
async fn a_container_counts_as_started_after_its_hook_and_is_killed_if_that_fails() {
    let world = World::new().await;
    let mut spec = one("serve");
    let hook = |command: &[&str]| json!({"postStart": {"exec": {"command": command}}});
    spec["containers"][0]["lifecycle"] = hook(&["sleep", "7"]);
    world.create("slow", spec.clone());
    world.until_ready("slow").await;
    assert_eq!(world.seconds(), 7);
    spec["containers"][0]["lifecycle"] = hook(&["false"]);
    world.create("bad", spec);
    world
        .until("again", |world| world.starts("app").len() >= 3)
        .await;
    assert!(world.has_event("FailedPostStartHook: PostStartHook failed"));
    assert!(!world.is_ready("bad"));
}

#[tokio::test(start_paused = true)]
async fn images_that_cannot_be_had_are_named_and_tried_again() {
    let world = World::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["image"] = json!("nowhere.invalid/app:1");
    world.create("web", spec);
    let reason = |reason: &'static str| {
        move |world: &World| world.state("web")["waiting"]["reason"] == reason
    };
    world.until("backs off", reason("ImagePullBackOff")).await;
    world.pass(60).await;
    for event in [
        "Pulling: Pulling image \"nowhere.invalid/app:1\"",
        "Failed: Failed to pull image \"nowhere.invalid/app:1\": nowhere.invalid/app:1: no such host",
        "Failed: Error: ErrImagePull",
        "BackOff: Back-off pulling image \"nowhere.invalid/app:1\"",
        "Failed: Error: ImagePullBackOff",
    ] {
        assert!(world.has_event(event), "{event} in {:#?}", world.events());
    }
    world.change("web", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("image:2");
    });
    world.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_dies_is_made_anew() {
    let world = World::new().await;
    world.create("web", one("serve"));
    world.until_ready("web").await;
    world.runtime.crash_sandbox("sandbox-1");
    world
        .until("again", |world| world.starts("app").len() == 2)
        .await;
    world.until_ready("web").await;
    assert_eq!(
        world.status("web")["containerStatuses"][0]["restartCount"],
        1
    );
    let changed = "SandboxChanged: Pod sandbox changed, it will be killed and re-created.";
    assert!(world.has_event(changed));
}

#[tokio::test(start_paused = true)]
async fn another_image_means_another_run() {
    let world = World::new().await;
    world.create("web", one("serve"));
    world.until_ready("web").await;
    world.change("web", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("image:2");
    });
    world
        .until("again", |world| world.starts("app").len() == 2)
        .await;
    let changed = "Killing: Container app definition changed, will be restarted";
    world.until("said", |world| world.has_event(changed)).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_say_in_a_status_stays_and_what_is_ours_is_said_again() {
    let world = World::new().await;
    let mut spec = one("serve");
    spec["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    world.create("web", spec);
    world
        .until("runs", |world| world.status("web")["phase"] == "Running")
        .await;
    assert!(!world.is_ready("web"));
    world.change("web", |pod| {
        let gate = json!({"type": "example.com/gate", "status": "True"});
        pod["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(gate);
    });
    world.until_ready("web").await;
    world.change("web", |pod| {
        for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = json!("False");
            }
        }
    });
    assert!(!world.is_ready("web"));
    world.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn many_pods_start_a_bounded_number_at_once() {
    let latency = std::time::Duration::from_secs(1);
    let world = World::with(crate::runtime::simulated::Simulated::with_latency(latency)).await;
    for number in 0..40 {
        world.create(&format!("p{number:02}"), one("serve"));
    }
    let ready = |world: &World| (0..40).all(|number| world.is_ready(&format!("p{number:02}")));
    world.until("all ready", ready).await;
    let starts = world.starts("app");
    let most = starts
        .iter()
        .map(|at| starts.iter().filter(|other| *other == at).count())
        .max();
    assert!(most <= Some(8), "{starts:?}");
    assert!(world.seconds() < 60, "{}", world.seconds());
}

//! Running pods: starts, crashes, probes, hooks, init containers and sidecars.

use serde_json::json;

use super::fixture::{TestNode, container, one};

#[tokio::test(start_paused = true)]
async fn a_running_pods_status_and_events() {
    let node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    let status = node.status("web");
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["hostIP"], "192.0.2.1");
    assert!(status["podIP"].as_str().unwrap().starts_with("10."));
    let container = &status["containerStatuses"][0];
    assert_eq!(container["restartCount"], 0);
    assert_eq!(container["containerID"], "simulated://container-2");
    node.until("events", |node| node.events().len() == 3).await;
    assert_eq!(
        node.events(),
        [
            "Pulled: Container image \"image:1\" already present on machine and can be accessed by \
             the pod",
            "Created: Container created",
            "Started: Container started"
        ]
    );
    assert_eq!(node.seconds(), 0, "nothing waits without need");
}

#[tokio::test(start_paused = true)]
async fn an_idle_pod_causes_no_writes() {
    let node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    let writes = node.api.lock().unwrap().writes;
    node.pass(3600).await;
    assert_eq!(node.api.lock().unwrap().writes, writes);
}

#[tokio::test(start_paused = true)]
async fn restart_back_off_grows_with_each_crash() {
    let node = TestNode::new().await;
    node.create("web", one("sleep 1 exit 3"));
    node.until("seven", |node| node.starts("app").len() == 8)
        .await;
    let starts = node.starts("app");
    let waits: Vec<u64> = starts.windows(2).map(|two| two[1] - two[0] - 1).collect();
    assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300]);
    node.until("waiting", |node| node.state("web")["waiting"].is_object())
        .await;
    let waiting = &node.state("web")["waiting"];
    assert_eq!(waiting["reason"], "CrashLoopBackOff");
    let message = "back-off 5m0s restarting failed container=app pod=web_ns(uid-web)";
    assert_eq!(waiting["message"], message);
    let last = &node.status("web")["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(
        (&last["exitCode"], &last["message"]),
        (&json!(3), &json!("the container failed"))
    );
    assert!(node.has_event("BackOff: Back-off restarting failed container app in pod web_ns"));
}

#[tokio::test(start_paused = true)]
async fn all_but_the_last_two_runs_are_removed() {
    let node = TestNode::new().await;
    node.create("web", one("sleep 1 exit 3"));
    node.until("five", |node| node.starts("app").len() == 5)
        .await;
    let runs = |node: &TestNode| node.runtime.all()[0].observed.runs.len();
    node.until("two left", |node| runs(node) == 2).await;
}

#[tokio::test(start_paused = true)]
async fn finished_pods_are_not_restarted() {
    let node = TestNode::new().await;
    let mut spec = one("sleep 5");
    spec["restartPolicy"] = json!("OnFailure");
    node.create("job", spec.clone());
    spec["restartPolicy"] = json!("Never");
    spec["containers"][0]["command"] = json!(["sleep", "5", "exit", "2"]);
    node.create("bad", spec);
    let phase = |name: &'static str, phase: &'static str| {
        move |node: &TestNode| node.status(name)["phase"] == phase
    };
    node.until("job", phase("job", "Succeeded")).await;
    node.until("bad", phase("bad", "Failed")).await;
    let state = &node.state("bad")["terminated"];
    assert_eq!(
        (&state["exitCode"], &state["reason"]),
        (&json!(2), &json!("Error"))
    );
    let all = node.runtime.all();
    assert!(
        all.iter()
            .all(|found| !found.observed.sandbox.as_ref().unwrap().ready)
    );
    node.pass(600).await;
    assert_eq!(node.starts("app").len(), 2);
}

/// containerd says `Error` until it has handled the kernel's notice of a kill for memory.
#[tokio::test(start_paused = true)]
async fn a_reason_that_the_runtime_corrects_is_shown_of_pods_that_run_and_that_have_finished() {
    let node = TestNode::new().await;
    let mut spec = one("sleep 5 exit 137");
    node.create("again", spec.clone());
    spec["restartPolicy"] = json!("Never");
    node.create("once", spec);
    node.until("ended", |node| node.status("once")["phase"] == "Failed")
        .await;
    let last = |node: &TestNode| {
        let status = &node.status("again")["containerStatuses"][0];
        status["lastState"]["terminated"].clone()
    };
    node.until("restarted", |node| last(node).is_object()).await;
    assert_eq!(node.state("once")["terminated"]["reason"], "Error");
    assert_eq!(last(&node)["reason"], "Error");
    for found in node.runtime.all() {
        let mut runs = found.observed.runs.iter();
        let ended = runs.find(|run| run.exit().is_some()).unwrap();
        node.runtime.correct_exit(&ended.id, "OOMKilled");
    }
    let corrected = |node: &TestNode| {
        let once = &node.state("once")["terminated"];
        once["reason"] == "OOMKilled" && last(node)["reason"] == "OOMKilled"
    };
    node.until("corrected", corrected).await;
    assert_eq!(node.state("once")["terminated"]["exitCode"], 137);
    assert_eq!(node.status("once")["phase"], "Failed");
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_first_in_order_and_sidecars_keep_running() {
    let node = TestNode::new().await;
    let mut sidecar = container("side", "serve");
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({
        "initContainers": [container("first", "sleep 2"), sidecar, container("second", "sleep 2")],
        "containers": [container("app", "serve")]});
    node.create("web", spec);
    node.until("first", |node| node.history() == ["+first"])
        .await;
    let waits = |node: &TestNode| node.state("web")["waiting"]["reason"] == "PodInitializing";
    node.until("waits", waits).await;
    node.until_ready("web").await;
    let order = ["+first", "-first", "+side", "+second", "-second", "+app"];
    assert_eq!(node.history(), order);
}

#[tokio::test(start_paused = true)]
async fn a_failing_liveness_probe_restarts_and_a_readiness_probe_does_not() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    let probe = |command: &str| json!({"exec": {"command": [command]}, "periodSeconds": 10, "failureThreshold": 2});
    spec["containers"][0]["livenessProbe"] = probe("alive");
    spec["containers"][0]["readinessProbe"] = probe("useful");
    node.create("web", spec);
    node.until_ready("web").await;
    node.runtime.set_exec_exit_code("useful", 1);
    node.until("unready", |node| !node.is_ready("web")).await;
    assert_eq!(node.starts("app").len(), 1);
    node.runtime.set_exec_exit_code("useful", 0);
    node.until_ready("web").await;
    node.runtime.set_exec_exit_code("alive", 1);
    node.until("restarted", |node| node.starts("app").len() == 2)
        .await;
    assert!(node.has_event("Unhealthy: Readiness probe failed: "));
    assert!(node.has_event("Unhealthy: Liveness probe failed: "));
    let killing = "Killing: Container app failed liveness probe, will be restarted";
    node.until("said", |node| node.has_event(killing)).await;
}

#[tokio::test(start_paused = true)]
async fn a_container_is_started_after_its_hook_and_killed_if_that_fails() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    let hook = |command: &[&str]| json!({"postStart": {"exec": {"command": command}}});
    spec["containers"][0]["lifecycle"] = hook(&["sleep", "7"]);
    node.create("slow", spec.clone());
    node.until_ready("slow").await;
    assert_eq!(node.seconds(), 7);
    spec["containers"][0]["lifecycle"] = hook(&["false"]);
    node.create("bad", spec);
    node.until("again", |node| node.starts("app").len() >= 3)
        .await;
    assert!(node.has_event("FailedPostStartHook: PostStartHook failed"));
    assert!(!node.is_ready("bad"));
}

#[tokio::test(start_paused = true)]
async fn image_pull_failures_are_reported_and_retried() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    spec["containers"][0]["image"] = json!("nowhere.invalid/app:1");
    node.create("web", spec);
    let reason = |reason: &'static str| {
        move |node: &TestNode| node.state("web")["waiting"]["reason"] == reason
    };
    node.until("backs off", reason("ImagePullBackOff")).await;
    node.pass(60).await;
    for event in [
        "Pulling: Pulling image \"nowhere.invalid/app:1\"",
        "Failed: Failed to pull image \"nowhere.invalid/app:1\": nowhere.invalid/app:1: no such host",
        "Failed: Error: ErrImagePull",
        "BackOff: Back-off pulling image \"nowhere.invalid/app:1\"",
        "Failed: Error: ImagePullBackOff",
    ] {
        assert!(node.has_event(event), "{event} in {:#?}", node.events());
    }
    node.change("web", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("image:2");
    });
    node.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_dies_is_recreated() {
    let node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    node.runtime.crash_sandbox("sandbox-1");
    node.until("again", |node| node.starts("app").len() == 2)
        .await;
    node.until_ready("web").await;
    assert_eq!(
        node.status("web")["containerStatuses"][0]["restartCount"],
        1
    );
    let changed = "SandboxChanged: Pod sandbox changed, it will be killed and re-created.";
    assert!(node.has_event(changed));
}

#[tokio::test(start_paused = true)]
async fn a_changed_image_restarts_the_container() {
    let node = TestNode::new().await;
    node.create("web", one("serve"));
    node.until_ready("web").await;
    node.change("web", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("image:2");
    });
    node.until("again", |node| node.starts("app").len() == 2)
        .await;
    let changed = "Killing: Container app definition changed, will be restarted";
    node.until("said", |node| node.has_event(changed)).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_conditions_stay_and_overwritten_own_ones_are_restored() {
    let node = TestNode::new().await;
    let mut spec = one("serve");
    spec["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    node.create("web", spec);
    node.until("runs", |node| node.status("web")["phase"] == "Running")
        .await;
    assert!(!node.is_ready("web"));
    node.change("web", |pod| {
        let gate = json!({"type": "example.com/gate", "status": "True"});
        pod["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(gate);
    });
    node.until_ready("web").await;
    node.change("web", |pod| {
        for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = json!("False");
            }
        }
    });
    assert!(!node.is_ready("web"));
    node.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn the_number_of_concurrent_starts_is_bounded() {
    let latency = std::time::Duration::from_secs(1);
    let node = TestNode::with(crate::runtime::fake::FakeRuntime::with_latency(latency)).await;
    for number in 0..40 {
        node.create(&format!("p{number:02}"), one("serve"));
    }
    let ready = |node: &TestNode| (0..40).all(|number| node.is_ready(&format!("p{number:02}")));
    node.until("all ready", ready).await;
    let starts = node.starts("app");
    let most = starts
        .iter()
        .map(|at| starts.iter().filter(|other| *other == at).count())
        .max();
    assert!(most <= Some(8), "{starts:?}");
    assert!(node.seconds() < 60, "{}", node.seconds());
}

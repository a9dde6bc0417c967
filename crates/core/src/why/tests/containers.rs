//! Pods that are not available because of a container.

use serde_json::{Value, json};

use super::super::Cause;
use super::fixture::{Fixture, pod, pod_with_spec, with_container};

fn waiting(reason: &str, message: &str) -> Value {
    json!({"state": {"waiting": {"reason": reason, "message": message}}})
}

#[test]
fn an_image_cannot_be_pulled() {
    let reasons = [
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
    ];
    for reason in reasons {
        let fixture = Fixture::new().pod(with_container(waiting(reason, "not found")));
        let message = format!("container main cannot pull its image agent:1: {reason}: not found");
        fixture.missing(Cause::Image, &message);
    }
}

#[test]
fn a_config_map_is_missing() {
    let state = waiting(
        "CreateContainerConfigError",
        "configmap \"settings\" not found",
    );
    let message = "container main cannot be configured: CreateContainerConfigError: \
                   configmap \"settings\" not found";
    Fixture::new()
        .pod(with_container(state))
        .missing(Cause::ContainerConfig, message);
}

#[test]
fn a_command_cannot_be_started() {
    let state = waiting(
        "RunContainerError",
        "exec: \"/nothing\": no such file or directory",
    );
    let message = "container main cannot be started: RunContainerError: \
                   exec: \"/nothing\": no such file or directory";
    Fixture::new()
        .pod(with_container(state))
        .missing(Cause::ContainerStart, message);
}

#[test]
fn a_container_crashes_again_and_again() {
    let state = json!({"restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no licence\n"}}});
    let message = "container main does not stay up: exited with code 3: no licence";
    let answer = Fixture::new()
        .pod(with_container(state))
        .missing(Cause::CrashLoop, message);
    let remedy = "kubectl logs -n default p1 -c main --previous";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
    assert!(answer.log.unwrap().source.previous);
    assert_eq!(answer.pods[0].containers[0].restarts, 5);
}

#[test]
fn a_container_has_just_exited() {
    let state = json!({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}});
    let message = "container main does not stay up: exited with code 137 (OOMKilled)";
    let answer = Fixture::new()
        .pod(with_container(state))
        .missing(Cause::CrashLoop, message);
    let remedy = "kubectl logs -n default p1 -c main";
    assert_eq!(answer.remedy.as_deref(), Some(remedy));
    assert!(!answer.log.unwrap().source.previous);
}

#[test]
fn a_liveness_probe_kills_it_repeatedly() {
    let spec = json!({"containers": [{"name": "main", "livenessProbe": {"exec": {}}}]});
    let status = json!({"phase": "Running", "containerStatuses": [{"name": "main", "ready": false,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 143}}}]});
    let fixture = Fixture::new().pod(pod_with_spec("p1", "n1", spec, status));
    let fixture = fixture
        .event(
            "uid-p1",
            "Unhealthy",
            "Liveness probe failed: HTTP probe failed with statuscode: 500",
            20,
        )
        .event(
            "uid-p1",
            "Killing",
            "Container main failed liveness probe, will be restarted",
            10,
        );
    let message = "container main is killed repeatedly because its liveness probe fails: \
                   HTTP probe failed with statuscode: 500";
    fixture.missing(Cause::Probe, message);
}

fn probed(probe: &str, started: bool) -> Fixture {
    let spec = json!({"containers": [{"name": "main", probe: {"exec": {}}}]});
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "ready": false, "started": started, "state": {"running": {}}}]});
    Fixture::new().pod(pod_with_spec("p1", "n1", spec, status))
}

#[test]
fn a_readiness_probe_fails() {
    let text = "Readiness probe failed: dial tcp 10.0.0.1:80: connect: connection refused";
    let fixture = probed("readinessProbe", true).event("uid-p1", "Unhealthy", text, 5);
    let message = "container main runs and its readiness probe fails: \
                   dial tcp 10.0.0.1:80: connect: connection refused";
    fixture.missing(Cause::Probe, message);
}

#[test]
fn a_readiness_probe_has_not_succeeded_and_no_event_says_why() {
    let message = "container main runs and its readiness probe has not succeeded yet";
    probed("readinessProbe", true).missing(Cause::Probe, message);
}

#[test]
fn a_startup_probe_fails() {
    let text = "Startup probe failed: command timed out";
    let fixture = probed("startupProbe", false).event("uid-p1", "Unhealthy", text, 5);
    let message = "container main runs and its startup probe fails: command timed out";
    fixture.missing(Cause::Probe, message);
}

#[test]
fn it_runs_and_is_not_ready_yet() {
    let fixture = Fixture::new().pod(with_container(json!({"state": {"running": {}}})));
    fixture.missing(Cause::NotReady, "container main runs and is not ready yet");
}

#[test]
fn an_init_container_does_not_exit() {
    let spec = json!({"initContainers": [{"name": "first"}]});
    let status = json!({"phase": "Pending",
        "initContainerStatuses": [{"name": "first", "state": {"running": {}}}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}]});
    let message = "init container first is still running, and the other containers wait for it";
    Fixture::new()
        .pod(pod_with_spec("p1", "n1", spec, status))
        .missing(Cause::InitContainer, message);
}

#[test]
fn an_init_container_crashes() {
    let spec = json!({"initContainers": [{"name": "first"}, {"name": "second"}]});
    let status = json!({"phase": "Pending",
        "initContainerStatuses": [
            {"name": "first", "ready": true, "state": {"terminated": {"exitCode": 0}}},
            {"name": "second", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
             "lastState": {"terminated": {"exitCode": 1}}}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}]});
    let message = "init container second does not stay up: exited with code 1";
    Fixture::new()
        .pod(pod_with_spec("p1", "n1", spec, status))
        .missing(Cause::CrashLoop, message);
}

#[test]
fn a_ready_sidecar_is_not_the_cause() {
    let spec = json!({"initContainers": [{"name": "side", "restartPolicy": "Always"}]});
    let status = json!({"phase": "Running",
        "initContainerStatuses": [{"name": "side", "ready": true, "state": {"running": {}}}],
        "containerStatuses": [{"name": "main", "state": {"running": {}}}]});
    let message = "container main runs and is not ready yet";
    Fixture::new()
        .pod(pod_with_spec("p1", "n1", spec, status))
        .missing(Cause::NotReady, message);
}

#[test]
fn a_volume_cannot_be_mounted() {
    let text = "MountVolume.SetUp failed for volume \"config\" : configmap \"settings\" not found";
    for status in [
        json!({"phase": "Pending"}),
        json!({"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
    ] {
        let fixture = Fixture::new().pod(pod("p1", "n1", status));
        let fixture = fixture.event("uid-p1", "FailedMount", text, 5);
        fixture.missing(
            Cause::Volume,
            &format!("a volume cannot be mounted: {text}"),
        );
    }
}

#[test]
fn a_sandbox_cannot_be_created() {
    let text = "Failed to create pod sandbox: plugin type=\"bridge\" failed";
    let fixture = Fixture::new().pod(with_container(waiting("ContainerCreating", "")));
    let fixture = fixture.event("uid-p1", "FailedCreatePodSandBox", text, 5);
    fixture.missing(
        Cause::Sandbox,
        &format!("the node cannot create the pod sandbox: {text}"),
    );
}

#[test]
fn it_is_being_started() {
    let fixture = Fixture::new().pod(with_container(waiting("ContainerCreating", "")));
    fixture.missing(Cause::Starting, "container main has not been started yet");
}

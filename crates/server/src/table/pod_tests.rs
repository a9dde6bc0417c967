//! What pods print in every state that users meet.

#![expect(
    clippy::needless_pass_by_value,
    reason = "tables of cases read better without borrows"
)]

use kennel_types::Timestamp;
use serde_json::{Value, json};

use crate::table::testing::{check, check_cell};

/// A pod of two containers with the given status.
fn pod(status: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "status": status})
}

fn ready(name: &str) -> Value {
    json!({"name": name, "ready": true, "state": {"running": {}}})
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({"name": name, "ready": false, "state": {"waiting": {"reason": reason}}})
}

fn ended(name: &str, code: i64, reason: &str) -> Value {
    json!({"name": name, "ready": false, "state": {"terminated": {"exitCode": code, "reason": reason}}})
}

fn shows(pod: &Value, ready: &str, status: &str) {
    check_cell("pods", "Ready", pod, ready);
    check_cell("pods", "Status", pod, status);
}

#[test]
fn a_bare_pod_prints_fillers() {
    check(
        "pods",
        pod(json!({"phase": "Pending"})),
        json!([
            "p",
            "0/2",
            "Pending",
            "0",
            "<unknown>",
            "<none>",
            "<none>",
            "<none>",
            "<none>"
        ]),
    );
}

#[test]
fn a_running_pod_prints_everything() {
    check(
        "pods",
        json!({
            "metadata": {"name": "p", "creationTimestamp": "2025-12-30T01:00:00Z"},
            "spec": {"nodeName": "n1", "containers": [{"name": "a"}],
                     "readinessGates": [{"conditionType": "x/y"}, {"conditionType": "z"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}, {"ip": "fd00::9"}],
                       "nominatedNodeName": "n2", "conditions": [{"type": "x/y", "status": "True"}],
                       "containerStatuses": [{"name": "a", "ready": true, "restartCount": 3, "state": {"running": {}},
                            "lastState": {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}}}]},
        }),
        json!([
            "p",
            "1/1",
            "Running",
            "3 (5m ago)",
            "2d",
            "10.0.0.9",
            "n1",
            "n2",
            "1/2"
        ]),
    );
}

#[test]
fn containers_tell_more_than_the_phase() {
    let table = [
        (json!([ready("a"), ready("b")]), "2/2", "Running"),
        (
            json!([waiting("a", "ContainerCreating"), ready("b")]),
            "1/2",
            "ContainerCreating",
        ),
        // The first container with a reason wins.
        (
            json!([
                waiting("a", "ImagePullBackOff"),
                waiting("b", "CrashLoopBackOff")
            ]),
            "0/2",
            "ImagePullBackOff",
        ),
        (json!([ready("a"), ended("b", 1, "Error")]), "1/2", "Error"),
        (
            json!([ended("a", 3, ""), ended("b", 1, "Error")]),
            "0/2",
            "ExitCode:3",
        ),
        (json!([waiting("a", ""), ready("b")]), "1/2", "Running"),
        (
            json!([{"name": "a", "ready": false, "state": {"running": {}}}, ready("b")]),
            "1/2",
            "Running",
        ),
        (
            json!([{"name": "a", "state": {"terminated": {"exitCode": 137, "signal": 9}}}]),
            "0/2",
            "Signal:9",
        ),
    ];
    for (statuses, ready, status) in table {
        let pod = pod(json!({"phase": "Running", "containerStatuses": statuses}));
        shows(&pod, ready, status);
    }
}

#[test]
fn completed_beside_running_is_running_only_when_the_pod_is_ready() {
    let statuses = json!([ended("a", 0, "Completed"), ready("b")]);
    let with = |status: &str| {
        pod(json!({"phase": "Running", "containerStatuses": statuses,
                   "conditions": [{"type": "Ready", "status": status}]}))
    };
    shows(&with("True"), "1/2", "Running");
    shows(&with("False"), "1/2", "NotReady");
    let all_done = json!([ended("a", 0, "Completed"), ended("b", 0, "Completed")]);
    shows(
        &pod(json!({"phase": "Succeeded", "containerStatuses": all_done})),
        "0/2",
        "Completed",
    );
}

#[test]
fn reasons_of_the_pod_itself() {
    shows(
        &pod(json!({"phase": "Failed", "reason": "Evicted"})),
        "0/2",
        "Evicted",
    );
    let gated = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
    shows(
        &pod(json!({"phase": "Pending", "conditions": gated})),
        "0/2",
        "SchedulingGated",
    );
    let waits = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    shows(
        &pod(json!({"phase": "Pending", "conditions": waits})),
        "0/2",
        "Pending",
    );
}

#[test]
fn deletion_shows_until_the_pod_is_done() {
    let deleted = |status: Value| {
        let mut pod = pod(status);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod
    };
    let running = json!([ready("a"), ready("b")]);
    shows(
        &deleted(json!({"phase": "Running", "containerStatuses": running})),
        "2/2",
        "Terminating",
    );
    shows(&deleted(json!({"phase": "Pending"})), "0/2", "Terminating");
    shows(
        &deleted(json!({"phase": "Running", "reason": "NodeLost"})),
        "0/2",
        "Unknown",
    );
    shows(&deleted(json!({"phase": "Failed"})), "0/2", "Failed");
    shows(&deleted(json!({"phase": "Succeeded"})), "0/2", "Succeeded");
}

/// A pod with two init containers (`i`, `j`) and one container.
fn with_init(init: Value, status: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "p"},
        "spec": {"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "a"}]},
        "status": status,
    });
    pod["status"]["initContainerStatuses"] = init;
    pod
}

#[test]
fn init_containers_show_how_far_they_are() {
    let table = [
        (
            json!([
                waiting("i", "PodInitializing"),
                waiting("j", "PodInitializing")
            ]),
            "Init:0/2",
        ),
        (
            json!([ended("i", 0, "Completed"), {"name": "j", "state": {"running": {}}}]),
            "Init:1/2",
        ),
        (
            json!([waiting("i", "CrashLoopBackOff")]),
            "Init:CrashLoopBackOff",
        ),
        (json!([ended("i", 1, "Error")]), "Init:Error"),
        (json!([ended("i", 4, "")]), "Init:ExitCode:4"),
        (
            json!([{"name": "i", "state": {"terminated": {"exitCode": 137, "signal": 9}}}]),
            "Init:Signal:9",
        ),
        (json!([{"name": "i", "state": {}}]), "Init:0/2"),
    ];
    for (init, status) in table {
        let containers = json!([waiting("a", "PodInitializing")]);
        let pod = with_init(
            init,
            json!({"phase": "Pending", "containerStatuses": containers}),
        );
        shows(&pod, "0/1", status);
    }
    let done = json!([ended("i", 0, "Completed"), ended("j", 0, "Completed")]);
    let pod = with_init(
        done,
        json!({"phase": "Running", "containerStatuses": [ready("a")]}),
    );
    shows(&pod, "1/1", "Running");
}

#[test]
fn an_initialized_pod_shows_its_containers_whatever_its_init_containers_say() {
    let init = json!([{"name": "i", "restartCount": 5, "state": {"running": {}}}]);
    let status = json!({"phase": "Running", "containerStatuses": [ready("a")],
                        "conditions": [{"type": "Initialized", "status": "True"}]});
    let pod = with_init(init, status);
    // The reason found while reading the init containers stays unless a container has one.
    shows(&pod, "1/1", "Init:0/2");
    check_cell("pods", "Restarts", &pod, "0");
}

/// A pod with a sidecar (`s`) and one container.
fn with_sidecar(sidecar: Value, containers: Value) -> Value {
    json!({
        "metadata": {"name": "p"},
        "spec": {"initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "a"}]},
        "status": {"phase": "Running", "initContainerStatuses": [sidecar], "containerStatuses": containers},
    })
}

#[test]
fn sidecars_count_as_containers() {
    let started = json!({"name": "s", "started": true, "ready": true, "state": {"running": {}}});
    shows(
        &with_sidecar(started, json!([ready("a")])),
        "2/2",
        "Running",
    );
    let unready = json!({"name": "s", "started": true, "ready": false, "state": {"running": {}}});
    shows(
        &with_sidecar(unready, json!([ready("a")])),
        "1/2",
        "Running",
    );
    let starting = json!({"name": "s", "started": false, "ready": false, "state": {"running": {}}});
    shows(&with_sidecar(starting, json!([])), "0/2", "Init:0/1");
}

#[test]
fn restarts_count_init_containers_only_while_they_run() {
    let restarted = |name: &str, count: i64, state: Value, ended_at: &str| {
        json!({"name": name, "ready": true, "started": true, "restartCount": count, "state": state,
               "lastState": {"terminated": {"finishedAt": ended_at}}})
    };
    let running = json!({"running": {}});
    let init = restarted("i", 4, running.clone(), "2026-01-01T00:59:30Z");
    let pod = with_init(json!([init]), json!({"phase": "Pending"}));
    check_cell("pods", "Restarts", &pod, "4 (30s ago)");

    let through = restarted(
        "i",
        4,
        json!({"terminated": {"exitCode": 0}}),
        "2026-01-01T00:59:30Z",
    );
    let container = restarted("a", 2, running.clone(), "2026-01-01T00:00:00Z");
    let status = json!({"phase": "Running", "containerStatuses": [container]});
    let pod = with_init(json!([through]), status);
    check_cell("pods", "Restarts", &pod, "2 (60m ago)");

    let sidecar = restarted("s", 3, running.clone(), "2026-01-01T00:58:00Z");
    let container = restarted("a", 2, running, "2026-01-01T00:00:00Z");
    check_cell(
        "pods",
        "Restarts",
        &with_sidecar(sidecar, json!([container])),
        "5 (2m ago)",
    );

    let unknown_end = json!({"name": "a", "restartCount": 7, "state": {"running": {}}});
    let pod = pod_with(&unknown_end);
    check_cell("pods", "Restarts", &pod, "7");
}

fn pod_with(container: &Value) -> Value {
    pod(json!({"phase": "Running", "containerStatuses": [container]}))
}

#[test]
fn the_old_single_address_is_enough() {
    check_cell("pods", "IP", &pod(json!({"podIP": "10.1.1.1"})), "10.1.1.1");
}

#[test]
fn finished_pods_are_completed_rows() {
    let row = crate::registry::find("", "v1", "pods").expect("pods are served");
    let of = |phase: &str| crate::table::row_conditions(row, &pod(json!({"phase": phase})));
    assert_eq!(of("Running"), None);
    assert_eq!(
        of("Succeeded").expect("conditions")[0]["reason"],
        "Succeeded"
    );
    assert_eq!(
        of("Failed"),
        Some(
            json!([{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}])
        )
    );
    // An odd object prints without conditions and without a panic.
    assert_eq!(crate::table::row_conditions(row, &Value::Null), None);
    assert_eq!(
        crate::table::cells(row, &Value::Null, Timestamp::EPOCH).len(),
        9
    );
}

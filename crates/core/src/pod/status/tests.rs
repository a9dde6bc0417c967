//! Statuses as kubectl shows them.

use std::time::Duration;

use kennel_types::pod::WaitingReason;
use kennel_types::{Monotonic, PodSpec, Timestamp};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::*;
use crate::pod::tracker::StartFailure;
use crate::pod::{Exit, Run, Sandbox, State};

struct Fixture {
    pod: Value,
    observed: Observed,
    tracker: Tracker,
    failure: Option<PodFailure>,
    now: Monotonic,
}

fn fixture(spec: &Value) -> Fixture {
    Fixture {
        pod: json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 2},
            "spec": spec}),
        observed: Observed {
            sandbox: Some(Sandbox {
                id: "s0".to_owned(),
                ready: true,
                addresses: vec!["10.0.0.7".parse().unwrap()],
                attempt: 0,
            }),
            runs: Vec::new(),
        },
        tracker: Tracker::default(),
        failure: None,
        now: Monotonic::since_start(Duration::from_secs(100)),
    }
}

impl Fixture {
    fn run(&mut self, name: &str, attempt: u32, state: State) -> &mut Self {
        self.observed.runs.push(Run {
            name: name.to_owned(),
            id: format!("{name}{attempt}"),
            attempt,
            sandbox: "s0".to_owned(),
            image: String::new(),
            image_id: "sha256:x".to_owned(),
            state,
        });
        let spec = PodSpec::deserialize(&self.pod["spec"]).unwrap();
        self.tracker.observe(&spec, &self.observed, self.now);
        self
    }

    fn status(&self) -> Value {
        let spec = PodSpec::deserialize(&self.pod["spec"]).unwrap();
        status(&StatusInput {
            pod: &self.pod,
            spec: &spec,
            observed: &self.observed,
            tracker: &self.tracker,
            host_ips: &["192.168.0.1".parse().unwrap()],
            runtime: "process",
            failure: self.failure.as_ref(),
            now: self.now,
            wall_time: Timestamp::from_secs(1_767_225_600),
        })
    }

    fn condition(&self, kind: &str) -> Value {
        let status = self.status();
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|found| found["type"] == kind);
        found.unwrap().clone()
    }
}

const RUNNING: State = State::Running {
    started_at: Timestamp::from_secs(1_000),
};

fn exited(code: i32) -> State {
    State::Exited(Exit {
        started_at: Timestamp::from_secs(1_000),
        finished_at: Timestamp::from_secs(1_005),
        code,
        ..Exit::default()
    })
}

#[test]
fn a_running_pod() {
    let mut fixture = fixture(&json!({"containers": [{"name": "a", "image": "i:1"}]}));
    fixture.run("a", 0, RUNNING);
    let status = fixture.status();
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["podIP"], "10.0.0.7");
    assert_eq!(status["hostIPs"], json!([{"ip": "192.168.0.1"}]));
    assert_eq!(status["observedGeneration"], 2);
    assert_eq!(fixture.condition("Ready")["status"], "True");
    let container = &status["containerStatuses"][0];
    assert_eq!(container["containerID"], "process://a0");
    assert_eq!(container["ready"], true);
    let since = &container["state"]["running"]["startedAt"];
    assert_eq!(since, "1970-01-01T00:16:40Z");
}

#[test]
fn pods_on_the_host_s_network_have_its_address() {
    let mut fixture = fixture(&json!({"hostNetwork": true, "containers": [{"name": "a"}]}));
    fixture.run("a", 0, RUNNING);
    assert_eq!(fixture.status()["podIPs"], json!([{"ip": "192.168.0.1"}]));
}

#[test]
fn a_crash_loop() {
    let mut fixture = fixture(&json!({"containers": [{"name": "a"}]}));
    fixture.run("a", 0, exited(1)).run("a", 1, exited(1));
    let status = fixture.status();
    let container = &status["containerStatuses"][0];
    assert_eq!(status["phase"], "Running");
    assert_eq!(container["restartCount"], 1);
    assert_eq!(
        container["state"]["waiting"],
        json!({"reason": "CrashLoopBackOff",
            "message": "back-off 10s restarting failed container=a pod=p_n(u)"})
    );
    let last = &container["lastState"]["terminated"];
    assert_eq!(
        (&last["reason"], &last["exitCode"]),
        (&json!("Error"), &json!(1))
    );
    let ready = fixture.condition("Ready");
    assert_eq!(ready["reason"], "ContainersNotReady");
    assert_eq!(ready["message"], "containers with unready status: [a]");
}

#[test]
fn a_failed_image_pull() {
    let mut fixture = fixture(&json!({"containers": [{"name": "a", "image": "i:1"}]}));
    let error = StartFailure {
        reason: WaitingReason::ErrImagePull,
        backoff_reason: WaitingReason::ImagePullBackOff,
        message: "no such image".to_owned(),
    };
    fixture.tracker.start_failed("a", error, fixture.now);
    let waiting =
        |fixture: &Fixture| fixture.status()["containerStatuses"][0]["state"]["waiting"].clone();
    let message = "Back-off pulling image \"i:1\": ErrImagePull: no such image";
    let expected = json!({"reason": "ImagePullBackOff", "message": message});
    assert_eq!(waiting(&fixture), expected);
    fixture.now = fixture.now + Duration::from_secs(10);
    let expected = json!({"reason": "ErrImagePull", "message": "no such image"});
    assert_eq!(waiting(&fixture), expected);
    assert_eq!(fixture.status()["phase"], "Pending");
}

#[test]
fn waiting_for_init_containers() {
    let mut fixture = fixture(&json!({"initContainers": [{"name": "i"}, {"name": "j"}],
        "containers": [{"name": "a"}]}));
    fixture.run("i", 0, RUNNING);
    let status = fixture.status();
    let reason =
        |list: &str, index: usize| status[list][index]["state"]["waiting"]["reason"].clone();
    assert_eq!(reason("initContainerStatuses", 1), "PodInitializing");
    assert_eq!(reason("containerStatuses", 0), "PodInitializing");
    assert_eq!(status["phase"], "Pending");
    let condition = fixture.condition("Initialized");
    assert_eq!(condition["reason"], "ContainersNotInitialized");
    assert_eq!(
        condition["message"],
        "containers with incomplete status: [i j]"
    );
}

#[test]
fn phases_of_finished_pods() {
    let check = |policy: &str, codes: [i32; 2], expected: &str| {
        let mut fixture = fixture(&json!({"restartPolicy": policy,
            "containers": [{"name": "a"}, {"name": "b"}]}));
        fixture
            .run("a", 0, exited(codes[0]))
            .run("b", 0, exited(codes[1]));
        assert_eq!(fixture.status()["phase"], expected, "{policy} {codes:?}");
    };
    check("Never", [0, 0], "Succeeded");
    check("Never", [0, 1], "Failed");
    check("OnFailure", [0, 0], "Succeeded");
    check("OnFailure", [0, 1], "Running");
    check("Always", [0, 0], "Running");
}

#[test]
fn a_terminal_phase_is_kept() {
    let mut fixture = fixture(&json!({"containers": [{"name": "a"}]}));
    fixture.run("a", 0, RUNNING);
    fixture.pod["status"] = json!({"phase": "Failed"});
    assert_eq!(fixture.status()["phase"], "Failed");
}

#[test]
fn an_evicted_pod_has_a_reason() {
    let mut fixture = fixture(&json!({"containers": [{"name": "a"}]}));
    fixture.failure = Some(PodFailure {
        reason: "Evicted".to_owned(),
        message: "The node was low on resource: memory.".to_owned(),
        disruption: None,
    });
    let status = fixture.status();
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["reason"], "Evicted");
    assert_eq!(fixture.condition("Ready")["reason"], "PodFailed");
}

#[test]
fn a_pod_that_the_node_ends_in_favour_of_others_is_a_disruption_target() {
    let mut fixture = fixture(&json!({"containers": [{"name": "a"}]}));
    let theirs = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "lastTransitionTime": "2025-01-01T00:00:00Z"});
    fixture.pod["status"]["conditions"] = json!([theirs]);
    assert_eq!(fixture.condition("DisruptionTarget"), theirs);
    assert!(!is_kubelet_condition(&theirs));
    fixture.failure = Some(PodFailure {
        reason: "Preempting".to_owned(),
        message: "Preempted in order to admit critical pod".to_owned(),
        disruption: Some("Pod was preempted.".to_owned()),
    });
    let ours = fixture.condition("DisruptionTarget");
    assert_eq!(ours["reason"], "TerminationByKubelet");
    assert_eq!(ours["message"], "Pod was preempted.");
    assert_eq!(ours["lastTransitionTime"], "2025-01-01T00:00:00Z");
    assert!(is_kubelet_condition(&ours));
    let status = fixture.status();
    let all = status["conditions"].as_array().unwrap().iter();
    assert_eq!(all.filter(|c| c["type"] == "DisruptionTarget").count(), 1);
}

#[test]
fn conditions_keep_their_times_and_foreign_conditions_are_kept() {
    let mut fixture = fixture(&json!({"readinessGates": [{"conditionType": "up"}],
        "containers": [{"name": "a"}]}));
    fixture.run("a", 0, RUNNING);
    fixture.pod["status"]["conditions"] = json!([
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
        {"type": "up", "status": "False", "reason": "Mine"}]);
    let since = fixture.condition("ContainersReady")["lastTransitionTime"].clone();
    assert_eq!(since, "2025-01-01T00:00:00Z");
    assert_eq!(fixture.condition("up")["reason"], "Mine");
    let ready = fixture.condition("Ready");
    assert_eq!(ready["reason"], "ReadinessGatesNotReady");
    let message = "the status of pod readiness gate \"up\" is not \"True\", but False";
    assert_eq!(ready["message"], message);
    fixture.pod["status"]["conditions"][1]["status"] = json!("True");
    assert_eq!(fixture.condition("Ready")["status"], "True");
}

#[test]
fn ephemeral_containers_have_statuses_and_count_for_nothing_else() {
    let spec = json!({"containers": [{"name": "a"}],
        "ephemeralContainers": [{"name": "e", "image": "i:1"}, {"name": "f"}, {"name": "g"}]});
    let mut fixture = fixture(&spec);
    fixture.run("a", 0, RUNNING);
    fixture.run("e", 0, RUNNING).run("f", 0, exited(3));
    let status = fixture.status();
    assert_eq!(status["phase"], "Running");
    assert_eq!(fixture.condition("Ready")["status"], "True");
    assert_eq!(status["containerStatuses"].as_array().unwrap().len(), 1);
    assert_eq!(
        status["ephemeralContainerStatuses"][0],
        json!({"name": "e", "image": "i:1", "imageID": "sha256:x", "containerID": "process://e0",
            "ready": false, "restartCount": 0, "lastState": {},
            "state": {"running": {"startedAt": "1970-01-01T00:16:40Z"}}})
    );
    let ended = &status["ephemeralContainerStatuses"][1]["state"]["terminated"];
    assert_eq!(
        (&ended["exitCode"], &ended["reason"]),
        (&json!(3), &json!("Error"))
    );
    let waiting = &status["ephemeralContainerStatuses"][2]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ContainerCreating");
}

#[test]
fn an_ephemeral_container_that_is_lost_has_terminated() {
    let spec = json!({"containers": [{"name": "a"}], "ephemeralContainers": [{"name": "e"}, {"name": "f"}]});
    let mut fixture = fixture(&spec);
    fixture.run("e", 0, RUNNING).run("f", 0, exited(0));
    let last = fixture.status();
    fixture.observed.runs.clear();
    fixture.tracker = Tracker::from_status(&last);
    fixture.pod["status"] = last.clone();
    let status = fixture.status();
    let lost = &status["ephemeralContainerStatuses"][0];
    assert_eq!(lost["containerID"], "process://e0");
    let state = &lost["state"]["terminated"];
    assert_eq!(
        (&state["exitCode"], &state["reason"]),
        (&json!(137), &json!("ContainerStatusUnknown"))
    );
    let before = &last["ephemeralContainerStatuses"][1];
    assert_eq!(&status["ephemeralContainerStatuses"][1], before);
}

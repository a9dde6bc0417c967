//! Statuses as kubectl users know them.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::pod::memory::Trouble;
use crate::pod::{Exit, Run, Sandbox, State};

struct Told {
    pod: Value,
    observed: Observed,
    memory: Memory,
    verdict: Option<Verdict>,
    now: Instant,
}

fn told(spec: &Value) -> Told {
    Told {
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
        memory: Memory::default(),
        verdict: None,
        now: Duration::from_secs(100),
    }
}

impl Told {
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
        let spec = Spec::parse(&self.pod["spec"]).unwrap();
        self.memory.saw(&spec, &self.observed, self.now);
        self
    }

    fn status(&self) -> Value {
        let spec = Spec::parse(&self.pod["spec"]).unwrap();
        status(&Story {
            pod: &self.pod,
            spec: &spec,
            observed: &self.observed,
            memory: &self.memory,
            host: &["192.168.0.1".parse().unwrap()],
            runtime: "process",
            verdict: self.verdict.as_ref(),
            now: self.now,
            stamp: "2026-01-01T00:00:00Z",
        })
    }

    fn condition(&self, kind: &str) -> Value {
        let status = self.status();
        let conditions = status["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|found| found["type"] == kind);
        found.unwrap().clone()
    }
}

const RUNNING: State = State::Running { since: 1_000 };

fn exited(code: i32) -> State {
    State::Exited(Exit {
        since: 1_000,
        until: 1_005,
        code,
        ..Exit::default()
    })
}

#[test]
fn a_running_pod() {
    let mut told = told(&json!({"containers": [{"name": "a", "image": "i:1"}]}));
    told.run("a", 0, RUNNING);
    let status = told.status();
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["podIP"], "10.0.0.7");
    assert_eq!(status["hostIPs"], json!([{"ip": "192.168.0.1"}]));
    assert_eq!(status["observedGeneration"], 2);
    assert_eq!(told.condition("Ready")["status"], "True");
    let container = &status["containerStatuses"][0];
    assert_eq!(container["containerID"], "process://a0");
    assert_eq!(container["ready"], true);
    let since = &container["state"]["running"]["startedAt"];
    assert_eq!(since, "1970-01-01T00:16:40Z");
}

#[test]
fn pods_on_the_host_s_network_have_its_address() {
    let mut told = told(&json!({"hostNetwork": true, "containers": [{"name": "a"}]}));
    told.run("a", 0, RUNNING);
    assert_eq!(told.status()["podIPs"], json!([{"ip": "192.168.0.1"}]));
}

#[test]
fn a_crash_loop() {
    let mut told = told(&json!({"containers": [{"name": "a"}]}));
    told.run("a", 0, exited(1)).run("a", 1, exited(1));
    let status = told.status();
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
    let ready = told.condition("Ready");
    assert_eq!(ready["reason"], "ContainersNotReady");
    assert_eq!(ready["message"], "containers with unready status: [a]");
}

#[test]
fn an_image_that_cannot_be_had() {
    let mut told = told(&json!({"containers": [{"name": "a", "image": "i:1"}]}));
    let trouble = Trouble {
        reason: "ErrImagePull",
        waiting: "ImagePullBackOff",
        message: "no such image".to_owned(),
    };
    told.memory.could_not_start("a", trouble, told.now);
    let waiting = |told: &Told| told.status()["containerStatuses"][0]["state"]["waiting"].clone();
    let message = "Back-off pulling image \"i:1\": ErrImagePull: no such image";
    let expected = json!({"reason": "ImagePullBackOff", "message": message});
    assert_eq!(waiting(&told), expected);
    told.now += Duration::from_secs(10);
    let expected = json!({"reason": "ErrImagePull", "message": "no such image"});
    assert_eq!(waiting(&told), expected);
    assert_eq!(told.status()["phase"], "Pending");
}

#[test]
fn before_the_first_containers_are_through() {
    let mut told = told(&json!({"initContainers": [{"name": "i"}, {"name": "j"}],
        "containers": [{"name": "a"}]}));
    told.run("i", 0, RUNNING);
    let status = told.status();
    let reason =
        |list: &str, index: usize| status[list][index]["state"]["waiting"]["reason"].clone();
    assert_eq!(reason("initContainerStatuses", 1), "PodInitializing");
    assert_eq!(reason("containerStatuses", 0), "PodInitializing");
    assert_eq!(status["phase"], "Pending");
    let condition = told.condition("Initialized");
    assert_eq!(condition["reason"], "ContainersNotInitialized");
    assert_eq!(
        condition["message"],
        "containers with incomplete status: [i j]"
    );
}

#[test]
fn phases_of_pods_that_have_ended() {
    let check = |policy: &str, codes: [i32; 2], expected: &str| {
        let mut told = told(&json!({"restartPolicy": policy,
            "containers": [{"name": "a"}, {"name": "b"}]}));
        told.run("a", 0, exited(codes[0]))
            .run("b", 0, exited(codes[1]));
        assert_eq!(told.status()["phase"], expected, "{policy} {codes:?}");
    };
    check("Never", [0, 0], "Succeeded");
    check("Never", [0, 1], "Failed");
    check("OnFailure", [0, 0], "Succeeded");
    check("OnFailure", [0, 1], "Running");
    check("Always", [0, 0], "Running");
}

#[test]
fn a_final_phase_is_kept() {
    let mut told = told(&json!({"containers": [{"name": "a"}]}));
    told.run("a", 0, RUNNING);
    told.pod["status"] = json!({"phase": "Failed"});
    assert_eq!(told.status()["phase"], "Failed");
}

#[test]
fn a_pod_that_the_node_has_ended_says_why() {
    let mut told = told(&json!({"containers": [{"name": "a"}]}));
    told.verdict = Some(Verdict {
        reason: "Evicted".to_owned(),
        message: "The node was low on resource: memory.".to_owned(),
    });
    let status = told.status();
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["reason"], "Evicted");
    assert_eq!(told.condition("Ready")["reason"], "PodFailed");
}

#[test]
fn conditions_keep_their_times_and_those_of_others_are_carried_along() {
    let mut told = told(&json!({"readinessGates": [{"conditionType": "up"}],
        "containers": [{"name": "a"}]}));
    told.run("a", 0, RUNNING);
    told.pod["status"]["conditions"] = json!([
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
        {"type": "up", "status": "False", "reason": "Mine"}]);
    let since = told.condition("ContainersReady")["lastTransitionTime"].clone();
    assert_eq!(since, "2025-01-01T00:00:00Z");
    assert_eq!(told.condition("up")["reason"], "Mine");
    let ready = told.condition("Ready");
    assert_eq!(ready["reason"], "ReadinessGatesNotReady");
    let message = "the status of pod readiness gate \"up\" is not \"True\", but False";
    assert_eq!(ready["message"], message);
    told.pod["status"]["conditions"][1]["status"] = json!("True");
    assert_eq!(told.condition("Ready")["status"], "True");
}

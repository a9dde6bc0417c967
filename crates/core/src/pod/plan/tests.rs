//! A pod's life, step by step: what runs, and what is to be done next.

use serde_json::{Value, json};

use super::*;
use crate::pod::memory::{Answer, Trouble};
use crate::pod::{Exit, Run, Sandbox, State};

const SECOND: Duration = Duration::from_secs(1);

/// A pod on a node that does all it is told, at once.
struct Node {
    spec: Spec,
    observed: Observed,
    memory: Memory,
    busy: BTreeSet<String>,
    wanted: Wanted,
    now: Instant,
}

fn node(spec: &Value) -> Node {
    Node {
        spec: Spec::parse(spec).unwrap(),
        observed: Observed::default(),
        memory: Memory::default(),
        busy: BTreeSet::new(),
        wanted: Wanted::Run,
        now: 100 * SECOND,
    }
}

impl Node {
    fn plan(&mut self) -> Plan {
        self.memory.saw(&self.spec, &self.observed, self.now);
        plan(&Situation {
            spec: &self.spec,
            observed: &self.observed,
            memory: &self.memory,
            wanted: self.wanted,
            busy: &self.busy,
            now: self.now,
        })
    }

    /// What is to be done, in few words; then does it.
    fn step(&mut self) -> String {
        let plan = self.plan();
        let words: Vec<String> = plan.actions.iter().map(words).collect();
        for action in plan.actions {
            self.carry_out(action);
        }
        match (words.is_empty(), plan.over, plan.wake) {
            (true, true, _) => "over".to_owned(),
            (true, _, Some(wake)) => format!("wait {}s", wake.saturating_sub(self.now).as_secs()),
            (true, _, None) => "rest".to_owned(),
            _ => words.join(", "),
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::StartSandbox { attempt } => {
                self.observed.sandbox = Some(Sandbox {
                    id: format!("s{attempt}"),
                    ready: true,
                    addresses: Vec::new(),
                    attempt,
                });
            }
            Action::StopSandbox { .. } => self.lose_sandbox(),
            Action::Start { name, attempt } => {
                let sandbox = self.observed.sandbox.as_ref().unwrap().id.clone();
                self.memory.started(&name);
                self.observed.runs.push(Run {
                    id: format!("{name}{attempt}"),
                    name,
                    attempt,
                    sandbox,
                    image: String::new(),
                    image_id: String::new(),
                    state: State::Running { since: 0 },
                });
            }
            Action::Kill { name, .. } => self.exit(&name, 137),
        }
    }

    fn lose_sandbox(&mut self) {
        self.observed.sandbox.as_mut().unwrap().ready = false;
    }

    /// The newest run of a container ends.
    fn exit(&mut self, name: &str, code: i32) {
        let runs = self.observed.runs.iter_mut();
        let newest = runs.filter(|run| run.name == name);
        newest.max_by_key(|run| run.attempt).unwrap().state = State::Exited(Exit {
            code,
            until: 1,
            ..Exit::default()
        });
    }

    fn answers(&mut self, name: &str, kind: Kind, success: bool, times: u32) {
        self.memory.saw(&self.spec, &self.observed, self.now);
        let container = self.spec.container(name).unwrap().clone();
        let id = self.observed.latest(name).unwrap().id.clone();
        for _ in 0..times {
            let answer = Answer { kind, success };
            self.memory.answered(&container, &id, answer, self.now);
        }
    }
}

fn words(action: &Action) -> String {
    match action {
        Action::StartSandbox { attempt } => format!("sandbox {attempt}"),
        Action::StopSandbox { id } => format!("stop {id}"),
        Action::Start { name, attempt } => format!("start {name}{attempt}"),
        Action::Kill { id, grace, why, .. } => {
            format!("kill {id} in {}s: {why:?}", grace.as_secs())
        }
    }
}

#[test]
fn a_sandbox_comes_first_and_all_containers_follow() {
    let mut node = node(&json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    assert_eq!(node.step(), "sandbox 0");
    assert_eq!(node.step(), "start a0, start b0");
    assert_eq!(node.step(), "rest");
}

#[test]
fn init_containers_run_in_order_and_until_they_succeed() {
    let mut node = node(&json!({"initContainers": [{"name": "i"}, {"name": "j"}],
        "containers": [{"name": "a"}]}));
    node.step();
    assert_eq!(node.step(), "start i0");
    assert_eq!(node.step(), "rest");
    node.exit("i", 1);
    assert_eq!(node.step(), "start i1");
    node.exit("i", 0);
    assert_eq!(node.step(), "start j0");
    node.exit("j", 0);
    assert_eq!(node.step(), "start a0");
}

#[test]
fn a_failed_init_container_of_a_pod_that_never_restarts_ends_it() {
    let mut node = node(
        &json!({"restartPolicy": "Never", "initContainers": [{"name": "i"}],
        "containers": [{"name": "a"}]}),
    );
    node.step();
    node.step();
    node.exit("i", 1);
    assert_eq!(node.step(), "stop s0");
    assert_eq!(node.step(), "over");
}

#[test]
fn a_sidecar_must_be_up_before_the_next_begins_and_outlives_the_rest() {
    let mut node = node(&json!({"restartPolicy": "Never", "initContainers": [
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}},
            {"name": "i"}],
        "containers": [{"name": "a"}]}));
    node.step();
    assert_eq!(node.step(), "start s0");
    assert_eq!(node.step(), "rest");
    node.answers("s", Kind::Startup, true, 1);
    assert_eq!(node.step(), "start i0");
    node.exit("s", 0);
    assert_eq!(node.step(), "start s1");
    node.answers("s", Kind::Startup, true, 1);
    node.exit("i", 0);
    assert_eq!(node.step(), "start a0");
    node.exit("a", 0);
    assert_eq!(node.step(), "kill s1 in 30s: PodEnds");
    assert_eq!(node.step(), "stop s0");
    assert_eq!(node.step(), "over");
}

#[test]
fn crashes_are_restarted_with_growing_waits() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    node.step();
    node.exit("a", 1);
    assert_eq!(node.step(), "start a1");
    node.exit("a", 1);
    assert_eq!(node.step(), "wait 10s");
    node.now += 10 * SECOND;
    assert_eq!(node.step(), "start a2");
    node.exit("a", 0);
    assert_eq!(node.step(), "wait 20s");
}

#[test]
fn restart_policies_decide_who_begins_again() {
    let check = |policy: &str, code, expected: &str| {
        let mut node = node(&json!({"restartPolicy": policy, "containers": [{"name": "a"}]}));
        node.step();
        node.step();
        node.exit("a", code);
        assert_eq!(node.step(), expected, "{policy} {code}");
    };
    check("Always", 0, "start a1");
    check("Always", 1, "start a1");
    check("OnFailure", 0, "stop s0");
    check("OnFailure", 1, "start a1");
    check("Never", 0, "stop s0");
    check("Never", 1, "stop s0");
}

#[test]
fn one_that_is_done_waits_for_the_others() {
    let mut node = node(&json!({"restartPolicy": "Never",
        "containers": [{"name": "a"}, {"name": "b"}]}));
    node.step();
    node.step();
    node.exit("a", 1);
    assert_eq!(node.step(), "rest");
    node.exit("b", 0);
    assert_eq!(node.step(), "stop s0");
}

#[test]
fn a_container_whose_liveness_fails_is_killed_and_started_again() {
    let mut node = node(&json!({"containers": [{"name": "a", "livenessProbe":
        {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 7}}]}));
    node.step();
    node.step();
    node.answers("a", Kind::Liveness, false, 2);
    assert_eq!(node.step(), "rest");
    node.answers("a", Kind::Liveness, false, 1);
    assert_eq!(node.step(), "kill a0 in 7s: Probe(Liveness)");
    assert_eq!(node.step(), "start a1");
    assert_eq!(node.step(), "rest");
}

#[test]
fn liveness_is_not_asked_before_the_container_is_up() {
    let probe = json!({"tcpSocket": {"port": 1}});
    let mut node = node(&json!({"containers": [{"name": "a", "startupProbe": probe,
        "livenessProbe": probe, "readinessProbe": probe}]}));
    node.step();
    node.step();
    let asked = |node: &mut Node| -> Vec<Kind> {
        node.memory.saw(&node.spec, &node.observed, node.now);
        let run = node.observed.latest("a").unwrap();
        let questions = node.memory.of("a").unwrap().questions(run);
        questions.into_iter().map(|(kind, _)| kind).collect()
    };
    assert_eq!(asked(&mut node), [Kind::Startup]);
    node.answers("a", Kind::Startup, true, 1);
    assert_eq!(asked(&mut node), [Kind::Liveness, Kind::Readiness]);
}

#[test]
fn a_failed_hook_after_the_start_kills_the_container() {
    let mut node = node(&json!({"containers": [{"name": "a",
        "lifecycle": {"postStart": {"exec": {"command": ["x"]}}}}]}));
    node.step();
    node.step();
    assert_eq!(node.step(), "rest");
    node.memory.hook_ended("a", "a0", false);
    assert_eq!(node.step(), "kill a0 in 30s: PostStart");
}

#[test]
fn a_changed_container_is_replaced() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    node.step();
    node.observed.runs[0].image = "of before".to_owned();
    assert_eq!(node.step(), "kill a0 in 30s: Changed");
    assert_eq!(node.step(), "start a1");
}

#[test]
fn a_lost_sandbox_takes_all_containers_with_it_and_they_begin_again() {
    let mut node = node(&json!({"initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}));
    node.step();
    node.step();
    node.exit("i", 0);
    node.step();
    node.lose_sandbox();
    assert_eq!(node.step(), "kill a0 in 30s: SandboxGone");
    assert_eq!(node.step(), "sandbox 1");
    assert_eq!(node.step(), "start i1");
    node.exit("i", 0);
    assert_eq!(node.step(), "start a1");
}

#[test]
fn what_cannot_be_started_is_tried_again_later() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    let trouble = Trouble {
        reason: "ErrImagePull",
        waiting: "ImagePullBackOff",
        message: "no such image".to_owned(),
    };
    node.memory.could_not_start("a", trouble, node.now);
    assert_eq!(node.step(), "wait 10s");
    node.now += 10 * SECOND;
    assert_eq!(node.step(), "start a0");
}

#[test]
fn a_pod_that_is_deleted_ends_its_containers_then_its_sidecars_then_its_sandbox() {
    let mut node = node(&json!({"initContainers": [
            {"name": "s", "restartPolicy": "Always"}, {"name": "t", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}]}));
    for _ in 0..4 {
        node.step();
    }
    node.wanted = Wanted::End(node.now + 20 * SECOND);
    assert_eq!(
        node.step(),
        "kill a0 in 20s: PodEnds, kill b0 in 20s: PodEnds"
    );
    node.now += 15 * SECOND;
    assert_eq!(node.step(), "kill t0 in 5s: PodEnds");
    node.now += 15 * SECOND;
    assert_eq!(node.step(), "kill s0 in 2s: PodEnds");
    assert_eq!(node.step(), "stop s0");
    assert_eq!(node.step(), "over");
}

#[test]
fn nothing_is_done_twice_at_once() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.busy.insert(String::new());
    assert_eq!(node.step(), "rest");
    node.busy.clear();
    node.step();
    node.busy.insert("a".to_owned());
    assert_eq!(node.step(), "rest");
    node.wanted = Wanted::End(node.now);
    assert_eq!(node.step(), "rest");
}

#[test]
fn what_was_ready_before_the_agent_came_back_stays_ready() {
    let probe = json!({"tcpSocket": {"port": 1}});
    let mut node = node(&json!({"containers": [{"name": "a", "startupProbe": probe,
        "readinessProbe": probe, "lifecycle": {"postStart": {}}}]}));
    node.step();
    node.step();
    node.memory = Memory::recall(&json!({"containerStatuses": [
        {"name": "a", "containerID": "runtime://a0", "ready": true, "started": true}]}));
    assert_eq!(node.step(), "rest");
    let run = node.observed.latest("a").unwrap();
    assert!(node.memory.of("a").unwrap().is_ready(run));
}

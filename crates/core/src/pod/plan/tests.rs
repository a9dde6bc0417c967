//! Walks pods through their lifecycle on a node that carries out every action at once.

use kennel_types::Timestamp;
use kennel_types::pod::WaitingReason;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::*;
use crate::pod::tracker::{ProbeResult, StartFailure};
use crate::pod::{Exit, Run, Sandbox, State};

const SECOND: Duration = Duration::from_secs(1);

struct FakeNode {
    spec: PodSpec,
    observed: Observed,
    tracker: Tracker,
    busy: BTreeSet<String>,
    desired: Desired,
    now: Monotonic,
}

fn node(spec: &Value) -> FakeNode {
    FakeNode {
        spec: PodSpec::deserialize(spec).unwrap(),
        observed: Observed::default(),
        tracker: Tracker::default(),
        busy: BTreeSet::new(),
        desired: Desired::Run,
        now: Monotonic::since_start(100 * SECOND),
    }
}

impl FakeNode {
    fn plan(&mut self) -> Plan {
        self.tracker.observe(&self.spec, &self.observed, self.now);
        plan(&PlanInput {
            spec: &self.spec,
            observed: &self.observed,
            tracker: &self.tracker,
            desired: self.desired,
            busy: &self.busy,
            now: self.now,
        })
    }

    /// Carries out the next plan, and returns it as text.
    fn step(&mut self) -> String {
        let plan = self.plan();
        let texts: Vec<String> = plan.actions.iter().map(text).collect();
        for action in plan.actions {
            self.carry_out(action);
        }
        match (texts.is_empty(), plan.finished, plan.wake) {
            (true, true, _) => "finished".to_owned(),
            (true, _, Some(wake)) => format!("wait {}s", (wake - self.now).as_secs()),
            (true, _, None) => "nothing".to_owned(),
            _ => texts.join(", "),
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
                self.tracker.started(&name);
                self.observed.runs.push(Run {
                    id: format!("{name}{attempt}"),
                    name,
                    attempt,
                    sandbox,
                    image: String::new(),
                    image_id: String::new(),
                    state: State::Running {
                        started_at: Timestamp::EPOCH,
                    },
                });
            }
            Action::Kill { name, .. } => self.exit(&name, 137),
        }
    }

    fn lose_sandbox(&mut self) {
        self.observed.sandbox.as_mut().unwrap().ready = false;
    }

    /// Lets the newest run of a container exit.
    fn exit(&mut self, name: &str, code: i32) {
        let runs = self.observed.runs.iter_mut();
        let newest = runs.filter(|run| run.name == name);
        newest.max_by_key(|run| run.attempt).unwrap().state = State::Exited(Exit {
            code,
            finished_at: Timestamp::from_secs(1),
            ..Exit::default()
        });
    }

    fn probe(&mut self, name: &str, kind: ProbeKind, success: bool, times: u32) {
        self.tracker.observe(&self.spec, &self.observed, self.now);
        let container = self.spec.container(name).unwrap().clone();
        let id = self.observed.latest(name).unwrap().id.clone();
        for _ in 0..times {
            let result = ProbeResult { kind, success };
            self.tracker.probed(&container, &id, result, self.now);
        }
    }
}

fn text(action: &Action) -> String {
    match action {
        Action::StartSandbox { attempt } => format!("sandbox {attempt}"),
        Action::StopSandbox { id } => format!("stop {id}"),
        Action::Start { name, attempt } => format!("start {name}{attempt}"),
        Action::Kill {
            id, grace, reason, ..
        } => {
            format!("kill {id} in {}s: {reason:?}", grace.as_secs())
        }
    }
}

#[test]
fn the_sandbox_starts_before_the_containers() {
    let mut node = node(&json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    assert_eq!(node.step(), "sandbox 0");
    assert_eq!(node.step(), "start a0, start b0");
    assert_eq!(node.step(), "nothing");
}

#[test]
fn init_containers_run_in_order_and_until_they_succeed() {
    let mut node = node(&json!({"initContainers": [{"name": "i"}, {"name": "j"}],
        "containers": [{"name": "a"}]}));
    node.step();
    assert_eq!(node.step(), "start i0");
    assert_eq!(node.step(), "nothing");
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
    assert_eq!(node.step(), "finished");
}

#[test]
fn a_sidecar_starts_before_the_next_container_and_stops_last() {
    let mut node = node(&json!({"restartPolicy": "Never", "initContainers": [
            {"name": "s", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}},
            {"name": "i"}],
        "containers": [{"name": "a"}]}));
    node.step();
    assert_eq!(node.step(), "start s0");
    assert_eq!(node.step(), "nothing");
    node.probe("s", ProbeKind::Startup, true, 1);
    assert_eq!(node.step(), "start i0");
    node.exit("s", 0);
    assert_eq!(node.step(), "start s1");
    node.probe("s", ProbeKind::Startup, true, 1);
    node.exit("i", 0);
    assert_eq!(node.step(), "start a0");
    node.exit("a", 0);
    assert_eq!(node.step(), "kill s1 in 30s: PodTerminating");
    assert_eq!(node.step(), "stop s0");
    assert_eq!(node.step(), "finished");
}

#[test]
fn crashes_are_restarted_with_growing_backoff() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    node.step();
    node.exit("a", 1);
    assert_eq!(node.step(), "start a1");
    node.exit("a", 1);
    assert_eq!(node.step(), "wait 10s");
    node.now = node.now + 10 * SECOND;
    assert_eq!(node.step(), "start a2");
    node.exit("a", 0);
    assert_eq!(node.step(), "wait 20s");
}

#[test]
fn restart_policies_decide_which_containers_restart() {
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
fn a_finished_container_does_not_end_the_pod() {
    let mut node = node(&json!({"restartPolicy": "Never",
        "containers": [{"name": "a"}, {"name": "b"}]}));
    node.step();
    node.step();
    node.exit("a", 1);
    assert_eq!(node.step(), "nothing");
    node.exit("b", 0);
    assert_eq!(node.step(), "stop s0");
}

#[test]
fn a_container_whose_liveness_fails_is_killed_and_started_again() {
    let mut node = node(&json!({"containers": [{"name": "a", "livenessProbe":
        {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 7}}]}));
    node.step();
    node.step();
    node.probe("a", ProbeKind::Liveness, false, 2);
    assert_eq!(node.step(), "nothing");
    node.probe("a", ProbeKind::Liveness, false, 1);
    assert_eq!(node.step(), "kill a0 in 7s: ProbeFailed(Liveness)");
    assert_eq!(node.step(), "start a1");
    assert_eq!(node.step(), "nothing");
}

#[test]
fn liveness_is_not_probed_before_the_startup_probe_passes() {
    let probe = json!({"tcpSocket": {"port": 1}});
    let mut node = node(&json!({"containers": [{"name": "a", "startupProbe": probe,
        "livenessProbe": probe, "readinessProbe": probe}]}));
    node.step();
    node.step();
    let probed = |node: &mut FakeNode| -> Vec<ProbeKind> {
        node.tracker.observe(&node.spec, &node.observed, node.now);
        let run = node.observed.latest("a").unwrap();
        let probes = node.tracker.container("a").unwrap().next_probes(run);
        probes.into_iter().map(|(kind, _)| kind).collect()
    };
    assert_eq!(probed(&mut node), [ProbeKind::Startup]);
    node.probe("a", ProbeKind::Startup, true, 1);
    assert_eq!(
        probed(&mut node),
        [ProbeKind::Liveness, ProbeKind::Readiness]
    );
}

#[test]
fn a_failed_post_start_hook_kills_the_container() {
    let mut node = node(&json!({"containers": [{"name": "a",
        "lifecycle": {"postStart": {"exec": {"command": ["x"]}}}}]}));
    node.step();
    node.step();
    assert_eq!(node.step(), "nothing");
    node.tracker.hook_finished("a", "a0", false);
    assert_eq!(node.step(), "kill a0 in 30s: PostStartHookFailed");
}

#[test]
fn a_changed_container_is_replaced() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    node.step();
    node.observed.runs[0].image = "of before".to_owned();
    assert_eq!(node.step(), "kill a0 in 30s: ImageChanged");
    assert_eq!(node.step(), "start a1");
}

#[test]
fn a_lost_sandbox_restarts_all_containers() {
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
fn a_failed_start_is_retried_after_the_backoff() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    let error = StartFailure {
        reason: WaitingReason::ErrImagePull,
        backoff_reason: WaitingReason::ImagePullBackOff,
        message: "no such image".to_owned(),
    };
    node.tracker.start_failed("a", error, node.now);
    assert_eq!(node.step(), "wait 10s");
    node.now = node.now + 10 * SECOND;
    assert_eq!(node.step(), "start a0");
}

#[test]
fn a_deleted_pod_stops_containers_then_sidecars_then_the_sandbox() {
    let mut node = node(&json!({"initContainers": [
            {"name": "s", "restartPolicy": "Always"}, {"name": "t", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}]}));
    for _ in 0..4 {
        node.step();
    }
    node.desired = Desired::Terminate(node.now + 20 * SECOND);
    assert_eq!(
        node.step(),
        "kill a0 in 20s: PodTerminating, kill b0 in 20s: PodTerminating"
    );
    node.now = node.now + 15 * SECOND;
    assert_eq!(node.step(), "kill t0 in 5s: PodTerminating");
    node.now = node.now + 15 * SECOND;
    assert_eq!(node.step(), "kill s0 in 2s: PodTerminating");
    assert_eq!(node.step(), "stop s0");
    assert_eq!(node.step(), "finished");
}

#[test]
fn busy_containers_are_skipped() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.busy.insert(String::new());
    assert_eq!(node.step(), "nothing");
    node.busy.clear();
    node.step();
    node.busy.insert("a".to_owned());
    assert_eq!(node.step(), "nothing");
    node.desired = Desired::Terminate(node.now);
    assert_eq!(node.step(), "nothing");
}

#[test]
fn a_ready_container_stays_ready_across_an_agent_restart() {
    let probe = json!({"tcpSocket": {"port": 1}});
    let mut node = node(&json!({"containers": [{"name": "a", "startupProbe": probe,
        "readinessProbe": probe, "lifecycle": {"postStart": {}}}]}));
    node.step();
    node.step();
    node.tracker = Tracker::from_status(&json!({"containerStatuses": [
        {"name": "a", "containerID": "runtime://a0", "ready": true, "started": true}]}));
    assert_eq!(node.step(), "nothing");
    let run = node.observed.latest("a").unwrap();
    assert!(node.tracker.container("a").unwrap().is_ready(run));
}

fn add_ephemeral(node: &mut FakeNode, name: &str) {
    let container = serde_json::from_value(json!({ "name": name })).unwrap();
    node.spec.ephemeral_containers.push(container);
}

#[test]
fn ephemeral_containers_start_once_whatever_the_others_do() {
    let mut node = node(&json!({"initContainers": [{"name": "i"}], "containers": [{"name": "a"}]}));
    node.step();
    assert_eq!(node.step(), "start i0");
    add_ephemeral(&mut node, "e");
    assert_eq!(node.step(), "start e0");
    assert_eq!(node.step(), "nothing");
    node.exit("e", 1);
    node.exit("i", 0);
    assert_eq!(node.step(), "start a0");
    add_ephemeral(&mut node, "f");
    assert_eq!(node.step(), "start f0");
    assert_eq!(node.step(), "nothing");
    node.observed.runs.retain(|run| run.name == "a");
    assert_eq!(node.step(), "nothing", "the runtime has lost e and f");
    node.lose_sandbox();
    node.exit("a", 1);
    assert_eq!(node.step(), "sandbox 1");
    assert_eq!(node.step(), "start i0", "and neither e nor f");
}

#[test]
fn another_agent_starts_no_ephemeral_container_again() {
    let mut node = node(&json!({"containers": [{"name": "a"}]}));
    node.step();
    node.step();
    for name in ["e", "f", "g", "h"] {
        add_ephemeral(&mut node, name);
    }
    node.tracker = Tracker::from_status(&json!({"ephemeralContainerStatuses": [
        {"name": "e", "containerID": "runtime://e0", "state": {"running": {}}},
        {"name": "f", "containerID": "runtime://f0", "state": {"terminated": {"exitCode": 0}}},
        {"name": "g", "containerID": "runtime://g0", "state": {"waiting": {}}}]}));
    node.observed.runs.push(Run {
        name: "g".to_owned(),
        state: State::Created,
        ..node.observed.runs[0].clone()
    });
    assert_eq!(node.step(), "start g0, start h0");
}

#[test]
fn a_finished_pod_stops_its_ephemeral_containers() {
    let mut node = node(&json!({"restartPolicy": "Never", "containers": [{"name": "a"}]}));
    node.step();
    add_ephemeral(&mut node, "e");
    assert_eq!(node.step(), "start e0, start a0");
    node.exit("a", 0);
    assert_eq!(node.step(), "kill e0 in 30s: PodTerminating");
    assert_eq!(node.step(), "stop s0");
    assert_eq!(node.step(), "finished");
}

//! Nodes whose container runtime is not there: they are registered and not ready, everything else works, and a signal
//! stops the process at once.

use std::time::{Duration, Instant};

use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Version, eventually};

use super::KENNEL;

/// A stop must not wait for the runtime. Generous, for busy machines.
const AT_ONCE: Duration = Duration::from_secs(8);
const MESSAGE: &str = "container runtime is down: the container runtime at /nowhere/containerd.sock does not answer: \
    No such file or directory (os error 2)";
const RUNTIME: [&str; 3] = [
    "--runtime=cri",
    "--cri-socket=/nowhere/containerd.sock",
    "--eviction-hard=memory.available<1Mi",
];
const DAEMON_SET: &str = r#"{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {
    "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
    "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}}}}"#;

/// Waits until the node is not ready because of its runtime.
fn is_not_ready(kubectl: &Kubectl, node: &str) {
    let expected = "cri unix:///nowhere/containerd.sock";
    eventually(Deadline::seconds(60), || {
        let node = kubectl.get(&["node", node])?;
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|condition| condition["type"] == "Ready");
        let ready = ready.ok_or("no condition")?;
        let message = ready["message"].as_str().unwrap_or_default();
        let says = message == MESSAGE;
        let is_down = says && ready["status"] == "False" && ready["reason"] == "KubeletNotReady";
        let version = &node["status"]["nodeInfo"]["containerRuntimeVersion"];
        assert_eq!(version, "unknown://Unknown");
        let chosen = &node["metadata"]["annotations"]["agent.kennel.dev/runtime"];
        assert_eq!(chosen, expected);
        is_down.then_some(()).ok_or(ready.to_string())
    });
}

/// Waits until the node is ready, with the process runtime.
fn runs_processes(kubectl: &Kubectl, node: &str) {
    eventually(Deadline::seconds(60), || {
        let node = kubectl.get(&["node", node])?;
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
        let chosen = &node["metadata"]["annotations"]["agent.kennel.dev/runtime"];
        let expected = ready && chosen == "process";
        expected.then_some(()).ok_or(node.to_string())
    });
}

#[test]
fn up_runs_the_control_plane_without_a_container_runtime() {
    for interrupt in [false, true] {
        let mut arguments = vec!["up", "--node-name=here"];
        arguments.extend(RUNTIME);
        let mut kennel = Kennel::start(KENNEL, &arguments);
        let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
        is_not_ready(&kubectl, "here");
        assert_eq!(kubectl.run(&["get", "--raw", "/healthz"]).ok(), "ok");
        kubectl
            .run_with_input(&["create", "-f", "-"], DAEMON_SET)
            .ok();
        // Controllers and scheduler run.
        eventually(Deadline::seconds(60), || {
            let pods = kubectl.get(&["pods"])?;
            let bound = pods["items"][0]["spec"]["nodeName"] == "here";
            bound.then_some(()).ok_or(pods.to_string())
        });
        let before = Instant::now();
        if interrupt {
            kennel.interrupt();
        } else {
            kennel.terminate();
        }
        assert!(kennel.wait_for_end().success(), "{}", kennel.log());
        assert!(before.elapsed() < AT_ONCE, "{:?}", before.elapsed());
        let log = kennel.log();
        let warned = log
            .matches("node here is not ready: container runtime is down")
            .count();
        assert_eq!(warned, 1, "{log}");
    }
}

#[test]
fn an_agent_registers_its_node_without_a_container_runtime() {
    let server = Kennel::start(KENNEL, &["up", "--nodes", "0"]);
    let mut arguments: Vec<String> = RUNTIME.iter().map(ToString::to_string).collect();
    arguments.push(format!("--kubeconfig={}", server.kubeconfig().display()));
    let plan = AgentPlan {
        binary: KENNEL.into(),
        node: "there".to_owned(),
        arguments,
    };
    let mut agent = Agent::start(plan, None);
    let kubectl = Kubectl::new(Version::V1_32, &server.kubeconfig());
    is_not_ready(&kubectl, "there");
    let before = Instant::now();
    assert!(agent.stop().success(), "{}", agent.log());
    assert!(before.elapsed() < AT_ONCE, "{:?}", before.elapsed());
}

#[test]
fn an_agent_keeps_its_runtime_until_a_flag_changes_it() {
    let server = Kennel::start(KENNEL, &["up", "--nodes", "0"]);
    let kubectl = Kubectl::new(Version::V1_32, &server.kubeconfig());
    let with = |more: &[&str]| {
        let usual = format!("--kubeconfig={}", server.kubeconfig().display());
        let usual = [usual, RUNTIME[2].to_owned()].into_iter();
        usual.chain(more.iter().map(ToString::to_string)).collect()
    };
    let plan = AgentPlan {
        binary: KENNEL.into(),
        node: "there".to_owned(),
        arguments: with(&["--cri-socket=/nowhere/containerd.sock"]),
    };
    let mut agent = Agent::start(plan, None);
    is_not_ready(&kubectl, "there");
    assert!(agent.stop().success(), "{}", agent.log());

    // As after a boot at which containerd is missing: no pod runs as a process.
    agent.start_again_with(with(&[]), None);
    agent.wait_for("this node has used it before");
    agent.wait_for("node there is not ready: container runtime is down");
    is_not_ready(&kubectl, "there");
    assert!(agent.stop().success(), "{}", agent.log());

    // The socket does not answer, so the pod of this directory may run there.
    let pod = agent.data_dir().join("pods/some-uid");
    std::fs::create_dir_all(&pod).unwrap();
    agent.start_again_with(with(&["--runtime=process"]), None);
    agent.wait_for("cannot change the runtime of this node from cri unix:///nowhere/containerd.sock to process");
    eventually(Deadline::seconds(60), || agent.ended().ok_or("it runs"));
    std::fs::remove_dir(&pod).unwrap();

    agent.start_again(None);
    runs_processes(&kubectl, "there");
    assert!(agent.stop().success(), "{}", agent.log());
    agent.start_again_with(with(&[]), None);
    agent.wait_for("using the runtime process: this node has used it before");
    runs_processes(&kubectl, "there");
    assert!(agent.stop().success(), "{}", agent.log());
}

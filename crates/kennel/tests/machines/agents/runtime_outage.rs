//! A containerd that starts after its agent, and one that dies later: the node says so, and becomes ready by itself.

use kennel_testkit::machine::{Containerd, Image};
use kennel_testkit::{Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::Value;

use super::fleet::TIMEOUT;

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
const APP: &str = "kennel.test/app:1";
const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"hostNetwork": true,
    "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0, "nodeName": "here",
    "containers": [{"name": "c", "image": "kennel.test/app:1", "command": ["sleep", "infinity"]}]}}"#;

/// Waits until the condition `Ready` has this status and a message that begins with these words.
fn wait_for_node(kubectl: &Kubectl, status: &str, words: &str) -> Value {
    eventually(Deadline::seconds(TIMEOUT), || {
        let node = kubectl.get(&["node", "here"])?;
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|condition| condition["type"] == "Ready");
        let ready = ready.cloned().unwrap_or_default();
        let message = ready["message"].as_str().unwrap_or_default();
        let expected = ready["status"] == status && message.starts_with(words);
        expected.then_some(node).ok_or(ready.to_string())
    })
}

fn runtime(node: &Value) -> &str {
    let version = &node["status"]["nodeInfo"]["containerRuntimeVersion"];
    version.as_str().unwrap_or_default()
}

#[test]
fn a_node_becomes_ready_when_containerd_appears_and_not_ready_when_it_dies() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let containerd = Containerd::start();
    containerd.import(&Image::new(APP));
    containerd.kill();
    let socket = format!("--cri-socket={}", containerd.socket().display());
    let logs = format!(
        "--log-dir={}",
        containerd.directory().join("logs").display()
    );
    let arguments = [
        "up",
        "--runtime=cri",
        &socket,
        &logs,
        "--node-name=here",
        "--node-listen=127.0.0.1:0",
        "--eviction-hard=memory.available<1Mi",
    ];
    let kennel = Kennel::start(KENNEL, &arguments);
    let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
    let node = wait_for_node(&kubectl, "False", "container runtime is down: ");
    assert_eq!(runtime(&node), "unknown://Unknown");
    kubectl.run_with_input(&["create", "-f", "-"], POD).ok();

    containerd.start_again();
    let node = wait_for_node(&kubectl, "True", "kubelet is posting ready status");
    let version = runtime(&node);
    assert!(
        version.starts_with("containerd://") && version != "containerd://Unknown",
        "{version}"
    );
    eventually(Deadline::seconds(TIMEOUT), || {
        let pod = kubectl.get(&["pod", "p"])?;
        let status = &pod["status"]["containerStatuses"][0];
        let id = status["containerID"].as_str().unwrap_or_default();
        let runs = status["ready"] == true && id.starts_with("containerd://");
        runs.then_some(())
            .ok_or_else(|| format!("{pod:#}\n{}", kennel.log()))
    });

    containerd.kill();
    let node = wait_for_node(&kubectl, "False", "container runtime is down: ");
    assert_eq!(runtime(&node), version, "the last known version stays");
    containerd.start_again();
    wait_for_node(&kubectl, "True", "kubelet is posting ready status");
    kubectl.run(&["delete", "pod", "p"]).ok();
    let status = kennel.stop();
    assert!(status.success(), "{status}");
}

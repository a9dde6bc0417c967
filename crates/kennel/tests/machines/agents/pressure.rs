//! A machine that runs out of memory: it says so, lets ordinary pods go, and keeps those it cannot do without.

use kennel_testkit::{Deadline, eventually};

use super::fleet::{Engine, Fleet, TIMEOUT, condition, is_ready};

const PODS: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: ordinary}
spec:
  nodeName: machine-1
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers: [{name: c, image: none, command: [sleep, infinity], resources: {requests: {memory: 1Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: critical}
spec:
  nodeName: machine-1
  hostNetwork: true
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: none, command: [sleep, infinity]}]
---
apiVersion: v1
kind: Pod
metadata: {name: careless}
spec:
  nodeName: machine-1
  hostNetwork: true
  containers: [{name: c, image: none, command: [sleep, infinity]}]
";

#[test]
fn a_machine_without_memory_says_so_and_keeps_what_it_cannot_do_without() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    // No machine has so much to spare: it is under pressure from the start.
    let told = ["--eviction-hard=memory.available<99%"];
    let fleet = Fleet::with(Engine::Process, 1, &[], &told);
    eventually(Deadline::seconds(TIMEOUT), || {
        let node = fleet.get(&["node", "machine-1"])?;
        let pressed = condition(&node, "MemoryPressure").is_some();
        let taints = node["spec"]["taints"].to_string();
        let tainted = taints.contains("node.kubernetes.io/memory-pressure");
        (pressed && tainted).then_some(()).ok_or(node.to_string())
    });
    fleet.apply(PODS);
    let failed = |pod: &serde_json::Value| pod["status"]["phase"] == "Failed";
    let ordinary = fleet.pod("ordinary", failed);
    assert_eq!(ordinary["status"]["reason"], "Evicted");
    let message = ordinary["status"]["message"].as_str().unwrap();
    let words = "The node was low on resource: memory.";
    assert!(message.starts_with(words), "{message}");
    let careless = fleet.pod("careless", failed);
    let message = careless["status"]["message"].as_str().unwrap();
    assert!(message.contains("MemoryPressure"), "{message}");
    fleet.pod("critical", is_ready);
}

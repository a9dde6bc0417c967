//! A node with a real agent, which runs the DaemonSet `agent`.

use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::json;

use crate::why::fixture::KENNEL;

pub(super) const NODE: &str = "real";

pub(super) struct RealNode {
    pub(super) kennel: Kennel,
    /// Kept running.
    pub(super) agent: Agent,
}

impl RealNode {
    /// Starts it; its daemon runs a shell command and has logged this.
    pub(super) fn start(command: &str, logged: &str) -> Self {
        let kennel = Kennel::start(KENNEL, &["up", "--nodes", "0"]);
        let plan = AgentPlan {
            binary: KENNEL.into(),
            node: NODE.to_owned(),
            arguments: vec![
                "--runtime=process".to_owned(),
                // Avoids disk pressure on a machine with a full disk.
                "--eviction-hard=memory.available<1Mi".to_owned(),
                format!("--kubeconfig={}", kennel.kubeconfig().display()),
            ],
        };
        let agent = Agent::start(plan, None);
        let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
        let mut set = crate::why::fixture::daemon_set(json!({}), json!({}));
        set["spec"]["template"]["spec"] = json!({
            "hostNetwork": true, "hostPID": true, "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "kennel/none", "command": ["/bin/sh", "-c", command]}]});
        kubectl
            .run_with_input(&["apply", "-f", "-"], &set.to_string())
            .ok();
        eventually(Deadline::seconds(90), || {
            // The agent has no serving certificate before somebody approves it.
            for request in kubectl.run(&["get", "csr", "-o", "name"]).ok().lines() {
                let name = request.rsplit('/').next().unwrap();
                kubectl.run(&["certificate", "approve", name]).ok();
            }
            let log = kubectl.run(&["logs", "ds/agent"]);
            log.stdout.contains(logged).then_some(()).ok_or(log.stderr)
        });
        Self { kennel, agent }
    }
}

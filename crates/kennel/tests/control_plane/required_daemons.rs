//! R12 end to end: a node that joins waits for its required daemons, as kubectl and `kennel why` show it.

use kennel_testkit::{Deadline, eventually};
use serde_json::json;

use crate::simulation::processes::Agent;
use crate::why::fixture::Fixture;

const SCENARIO: &str = "pods:\n- image: \"*:broken\"\n  unpullable: true\n";
const TAINT: &str = "kennel.dev/daemons-not-ready";

/// A cluster without nodes, and the scenario of those that will join.
struct Cluster {
    fixture: Fixture,
    scenario: tempfile::NamedTempFile,
}

impl Cluster {
    fn start() -> Self {
        let scenario = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(scenario.path(), SCENARIO).unwrap();
        Self {
            fixture: Fixture::with("", &["--simulate", "0"]),
            scenario,
        }
    }

    /// Simulated nodes `n1` and so on.
    fn join(&self, count: u32) -> Agent {
        let (count, path) = (format!("--count={count}"), self.scenario.path());
        let flags = [
            &count,
            "--node-prefix=n",
            "--scenario",
            path.to_str().unwrap(),
        ];
        Agent::start(&self.fixture.kennel, &flags)
    }

    fn kubectl(&self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.fixture.kubectl.run(&words).ok()
    }

    /// Waits until the output of a command contains a text.
    fn until(&self, command: &str, expected: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        eventually(Deadline::seconds(60), || {
            let answer = self.fixture.kubectl.run(&words);
            let shown = format!("{}{}", answer.stdout, answer.stderr);
            shown.contains(expected).then_some(()).ok_or(shown)
        });
    }

    fn apply(&self, name: &str, required: bool, image: &str) {
        let mut set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "main", "image": image}]}}}});
        if required {
            set["metadata"]["annotations"] = json!({"kennel.dev/required": "true"});
        }
        let kubectl = &self.fixture.kubectl;
        kubectl
            .run_with_input(&["apply", "-f", "-"], &set.to_string())
            .ok();
    }

    fn taints(&self, node: &str) -> String {
        self.kubectl(&format!(
            "get node {node} -o jsonpath={{.spec.taints[*].key}}"
        ))
    }
}

#[test]
fn r12_a_node_that_joins_gets_ordinary_pods_once_its_daemons_are_available() {
    let cluster = Cluster::start();
    cluster.apply("cni", true, "example.com/cni:broken");
    cluster.apply("csi", true, "example.com/csi:1");
    cluster.apply("logs", false, "example.com/logs:1");
    let _agent = cluster.join(1);
    // R12.1, R12.2 and R12.4: the daemons that work run, required or not, although the node waits.
    for set in ["csi", "logs"] {
        cluster.until(
            &format!("rollout status ds/{set} --timeout=60s"),
            "successfully rolled out",
        );
    }
    assert_eq!(cluster.taints("n1"), TAINT);
    cluster.kubectl("run web --image=web");
    cluster.until(
        "get pod web -o jsonpath={.status.conditions}",
        "untolerated taint",
    );
    // R12.5.
    cluster.until(
        "describe node n1",
        "Waiting for DaemonSet default/cni before other pods",
    );
    let why = cluster.fixture.why(&["ds/logs"]).stdout;
    let remark = "the node waits for default/cni: until then, other pods are not placed there";
    assert!(why.contains(remark), "{why}");
    // R12.3.
    cluster.kubectl("set image ds/cni main=example.com/cni:1");
    cluster.until(
        "wait pod web --for=condition=Ready --timeout=60s",
        "condition met",
    );
    assert_eq!(cluster.taints("n1"), "");
    cluster.until("describe node n1", "All required DaemonSets are available");
    // It does not come back.
    cluster.kubectl("set image ds/cni main=example.com/cni:broken");
    cluster.until("get pods -l app=cni", "ImagePullBackOff");
    assert_eq!(cluster.taints("n1"), "");
}

#[test]
fn r12_1_only_nodes_that_a_required_daemon_set_selects_wait() {
    let cluster = Cluster::start();
    cluster.apply("logs", false, "example.com/logs:1");
    let _agent = cluster.join(1);
    cluster.until(
        "rollout status ds/logs --timeout=60s",
        "successfully rolled out",
    );
    // Nobody waits for a DaemonSet that becomes required later.
    cluster.apply("cni", true, "example.com/cni:broken");
    cluster.until("get pods -l app=cni", "ImagePullBackOff");
    assert_eq!(cluster.taints("n1"), "");
    let tolerations =
        cluster.kubectl("get pods -l app=logs -o jsonpath={.items[*].spec.tolerations[*].key}");
    assert!(!tolerations.contains(TAINT), "{tolerations}");
    let tolerations =
        cluster.kubectl("get pods -l app=cni -o jsonpath={.items[*].spec.tolerations[*].key}");
    assert!(tolerations.contains(TAINT), "{tolerations}");
}

#[test]
fn r12_whether_a_daemon_set_is_required_is_checked_at_the_door() {
    let cluster = Cluster::start();
    cluster.apply("cni", true, "example.com/cni:1");
    let kubectl = &cluster.fixture.kubectl;
    let refused = kubectl.run(&[
        "annotate",
        "ds/cni",
        "kennel.dev/required=maybe",
        "--overwrite",
    ]);
    assert!(
        refused.stderr.contains("must be \"true\" or \"false\""),
        "{}",
        refused.stderr
    );
}

//! A rollout whose budget is used up by daemons that fail before their turn (R3.3), as kubectl and people see it.

use serde_json::json;

use super::fixture::{Fixture, WATCH};
use crate::why::fixture as cluster;

/// Version 1.1 crashes on sim-3 alone. The canary is another node.
const SCENARIO: &str = "
nodes:
- name: sim-2
  labels: {pool: canary}
pods:
- image: \"*:1.1\"
  node: sim-3
  ready: 1h
  exits: {after: 100ms, code: 1}
";

const POLICY: [(&str, &str); 3] = [
    ("stages", "nodes(pool=canary), 100%"),
    ("max-restarts", "0"),
    ("max-failures", "1"),
];

#[test]
fn r3_3_a_rollout_that_waits_for_the_budget_says_which_nodes_use_it_up() {
    let cluster = cluster::Fixture::with(SCENARIO, &["--simulate", "4"]);
    let strategy = json!({"rollingUpdate": {"maxUnavailable": 1}});
    let fixture = Fixture::with_strategy(cluster, 4, &POLICY, strategy);
    let kubectl = &fixture.cluster.kubectl;
    fixture.apply("1.1");
    // One node may fail.
    fixture.check(&["status", "ds/agent", WATCH], 0);
    fixture.apply("2");
    let waits = "waits: maxUnavailable is 1 and the pod on node sim-3 is not available";
    fixture.wait_for(
        "message",
        format!("stage 1 of 2 (nodes(pool=canary)), 0 of 1 nodes healthy; {waits}"),
    );
    let shown = fixture.rollout(&["status", "ds/agent"]).stdout;
    assert!(shown.contains("\n  sim-3: "), "{shown}");
    assert_eq!(fixture.nodes_with("2").len(), 0);
    let why = fixture.cluster.why(&["ds/agent", "--node", "sim-2"]).stdout;
    let busy = "maxUnavailable allows 1 node without an available pod, and that is sim-3";
    assert!(why.contains(busy), "{why}");
    assert!(why.contains(waits), "{why}");
    let message = "jsonpath={.status.conditions[?(@.type==\"Progressing\")].message}";
    let shown = kubectl.run(&["get", "ds", "agent", "-o", message]).ok();
    assert!(shown.ends_with(waits), "{shown}");

    let deadline = "rollout.kennel.dev/progress-deadline=1s";
    kubectl.run(&["annotate", "ds", "agent", deadline]).ok();
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    let reason = "no further node became healthy for 1s; maxUnavailable is 1 and the pod on node sim-3 is not \
                  available, so 1 node waits; see kennel rollout status agent -n default";
    assert!(shown.contains(reason), "{shown}");
    fixture.wait_for_event("RolloutPaused", reason);

    // Version 2 is what repairs the node.
    fixture.check(&["promote", "ds/agent", "--full"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 0);
    assert_eq!(fixture.nodes_with("2").len(), 4);
}

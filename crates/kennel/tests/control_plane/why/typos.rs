//! Templates that match no node because of a typo.

use serde_json::json;

use super::fixture::Fixture;

#[test]
fn a_misspelt_node_selector_is_a_problem_and_labels_no_node() {
    let fixture = Fixture::with("", &["--simulate", "2"]);
    fixture
        .kubectl
        .run(&["label", "node", "sim-2", "disk=ssd"])
        .ok();
    fixture.apply(json!({}), json!({"nodeSelector": {"dsik": "ssd"}}));
    let expected = "\
DaemonSet default/agent: no node should run it.
Warning: nodeSelector wants dsik=ssd, which no node has: did you mean disk=ssd, as on sim-2?

Not eligible: 2 nodes
  sim-1, sim-2
    nodeSelector wants dsik=ssd, the node has no label dsik
      # correct in spec.template.spec, instead of dsik:
      nodeSelector:
        disk: \"ssd\"
";
    fixture.wait_for_output(&["ds/agent"], expected, 1);
    check_groups(&fixture);
    let one = fixture.why(&["ds/agent", "--node", "sim-1"]);
    assert!(
        one.stdout
            .contains("\n  warning  nodeSelector wants dsik=ssd"),
        "{}",
        one.stdout
    );
    assert_eq!(one.code, 1);
    fixture.apply(json!({}), json!({"nodeSelector": {"gpu": "a100"}}));
    let expected = "\
DaemonSet default/agent: no node should run it.
Note: nodeSelector wants gpu=a100, which no node has.

Not eligible: 2 nodes
  sim-1, sim-2
    nodeSelector wants gpu=a100, the node has no label gpu
      kubectl label node sim-1 gpu=a100
";
    fixture.wait_for_output(&["ds/agent"], expected, 0);
}

/// Nodes whose remedies differ are not grouped, although their messages are the same.
fn check_groups(fixture: &Fixture) {
    for (node, taint) in [("sim-1", "a=:NoSchedule"), ("sim-2", "b=:NoSchedule")] {
        fixture.kubectl.run(&["taint", "node", node, taint]).ok();
    }
    let shown = fixture.why(&["ds/agent"]).stdout;
    let message = "nodeSelector wants dsik=ssd, the node has no label dsik (and one more rule)";
    assert_eq!(shown.matches(message).count(), 2, "{shown}");
    assert!(
        shown.contains("- key: a\n") && shown.contains("- key: b\n"),
        "{shown}"
    );
    for (node, taint) in [("sim-1", "a-"), ("sim-2", "b-")] {
        fixture.kubectl.run(&["taint", "node", node, taint]).ok();
    }
}

#[test]
fn a_misspelt_toleration_names_the_taint() {
    let fixture = Fixture::with("", &["--simulate", "2"]);
    fixture
        .kubectl
        .run(&["taint", "node", "sim-2", "dedicated=db:NoSchedule"])
        .ok();
    let toleration = json!({"key": "dedciated", "operator": "Exists"});
    fixture.apply(json!({}), json!({"tolerations": [toleration]}));
    let expected = "\
DaemonSet default/agent: the one node that should run it does.
Warning: toleration dedciated (any effect) matches no taint: did you mean dedicated=db:NoSchedule, as on sim-2?

Not eligible: 1 node
  sim-2
    taint dedicated=db:NoSchedule is not tolerated
      # correct in spec.template.spec:
      tolerations:
      - key: dedicated
        operator: Equal
        value: \"db\"
        effect: NoSchedule

Runs: 1 node
  sim-1
";
    fixture.wait_for_output(&["ds/agent"], expected, 0);
}

//! Node selectors, affinity and tolerations that match nothing because they are misspelt.

#![expect(clippy::needless_pass_by_value, reason = "tests pass json!(…) values")]

use serde_json::{Value, json};

use super::super::{Cause, Verdict};
use super::fixture::{Fixture, ready};

/// The codes and messages of the notes.
fn notes(fixture: &Fixture) -> Vec<(String, String)> {
    let notes = fixture.answer().notes.into_iter();
    notes.map(|note| (note.code, note.message)).collect()
}

fn check(fixture: &Fixture, code: &str, message: &str, ok: bool) {
    assert_eq!(notes(fixture), [(code.to_owned(), message.to_owned())]);
    assert_eq!(fixture.answer().ok, ok, "{message}");
}

fn remedy(fixture: &Fixture) -> String {
    fixture.on("n1").remedy.unwrap_or_default()
}

fn selector(key: &str, value: &str) -> Fixture {
    Fixture::with(json!({"nodeSelector": {key: value}}))
}

#[test]
fn a_misspelt_key_of_the_node_selector() {
    let fixture = selector("dsik", "ssd").label("disk", "ssd");
    let message =
        "nodeSelector wants dsik=ssd, which no node has: did you mean disk=ssd, as on n1?";
    check(&fixture, "typo", message, false);
    fixture.check(
        Verdict::Excluded,
        Cause::NodeSelector,
        "nodeSelector wants dsik=ssd, the node has no label dsik",
    );
    let expected =
        "# correct in spec.template.spec, instead of dsik:\nnodeSelector:\n  disk: \"ssd\"";
    assert_eq!(remedy(&fixture), expected);
}

#[test]
fn a_misspelt_value_of_the_node_selector() {
    let fixture = selector("disk", "sdd").label("disk", "ssd");
    let message =
        "nodeSelector wants disk=sdd, which no node has: did you mean disk=ssd, as on n1?";
    check(&fixture, "typo", message, false);
    let expected =
        "# correct in spec.template.spec, instead of disk:\nnodeSelector:\n  disk: \"ssd\"";
    assert_eq!(remedy(&fixture), expected);
}

#[test]
fn a_key_without_its_prefix() {
    let fixture = selector("hostname", "n1");
    let message = "nodeSelector wants hostname=n1, which no node has: \
                   did you mean kubernetes.io/hostname=n1, as on n1?";
    check(&fixture, "typo", message, false);
}

#[test]
fn a_misspelt_key_whose_value_no_node_has_either() {
    let fixture = selector("dsik", "nvme").label("disk", "ssd");
    let message = "nodeSelector wants dsik=nvme, which no node has: did you mean disk, as on n1?";
    check(&fixture, "typo", message, false);
    let expected =
        "# correct in spec.template.spec, instead of dsik:\nnodeSelector:\n  disk: \"nvme\"";
    assert_eq!(remedy(&fixture), expected);
}

#[test]
fn hardware_that_no_node_has_is_no_mistake() {
    let fixture = selector("gpu", "a100").label("disk", "ssd");
    let message = "nodeSelector wants gpu=a100, which no node has";
    check(&fixture, "selects-nothing", message, true);
    assert_eq!(remedy(&fixture), "kubectl label node n1 gpu=a100");
    let fixture = selector("zone", "c").label("zone", "a");
    let message = "nodeSelector wants zone=c, which no node has; the values of zone are a";
    check(&fixture, "selects-nothing", message, true);
}

#[test]
fn a_label_that_some_node_has_is_no_mistake() {
    let fixture = selector("disk", "ssd")
        .label("disk", "ssd")
        .pod(ready("p1", "n1"));
    assert!(notes(&fixture).is_empty() && fixture.answer().ok);
}

fn affinity(expressions: &Value) -> Fixture {
    Fixture::with(json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}}))
}

#[test]
fn a_misspelt_key_and_value_of_required_affinity() {
    let fixture = affinity(&json!([{"key": "dsik", "operator": "Exists"}])).label("disk", "ssd");
    let message = "required node affinity wants a label dsik, which no node has: \
                   did you mean disk, as on n1?";
    check(&fixture, "typo", message, false);
    let expected = "# in spec.template.spec.affinity, write disk instead of dsik";
    assert_eq!(remedy(&fixture), expected);
    let values = json!([{"key": "disk", "operator": "In", "values": ["nvme", "sdd"]}]);
    let message = "required node affinity wants disk in (nvme, sdd), which no node has: \
                   did you mean disk=ssd, as on n1?";
    check(
        &affinity(&values).label("disk", "ssd"),
        "typo",
        message,
        false,
    );
}

#[test]
fn what_affinity_forbids_need_not_exist() {
    let fixture =
        affinity(&json!([{"key": "dsik", "operator": "DoesNotExist"}])).label("disk", "ssd");
    assert!(notes(&fixture).is_empty());
}

fn toleration(toleration: Value) -> Fixture {
    Fixture::with(json!({ "tolerations": [toleration] })).taint(
        "dedicated",
        "database",
        "NoSchedule",
    )
}

#[test]
fn a_misspelt_toleration_warns_and_leaves_the_exit_code_to_the_other_nodes() {
    let fixture = toleration(json!({"key": "dedciated", "operator": "Exists"}));
    let fixture = fixture.pod(ready("p2", "n2")).pod(ready("p3", "n3"));
    let message = "toleration dedciated (any effect) matches no taint: \
                   did you mean dedicated=database:NoSchedule, as on n1?";
    check(&fixture, "typo", message, true);
    let expected = "# correct in spec.template.spec:\ntolerations:\n- key: dedicated\n  \
                    operator: Equal\n  value: \"database\"\n  effect: NoSchedule";
    assert_eq!(remedy(&fixture), expected);
}

#[test]
fn a_misspelt_toleration_that_leaves_no_node() {
    let mut fixture = toleration(json!({"key": "dedciated", "operator": "Exists"}));
    fixture.0.nodes.truncate(1);
    assert!(!fixture.answer().ok);
}

#[test]
fn a_toleration_that_differs_in_value_operator_or_effect() {
    for wrong in [
        json!({"key": "dedicated", "value": "databse"}),
        json!({"key": "dedicated"}),
        json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}),
    ] {
        let expected = usize::from(wrong["value"] != "dbs");
        assert_eq!(notes(&toleration(wrong.clone())).len(), expected, "{wrong}");
    }
}

#[test]
fn tolerations_of_taints_that_no_node_has_are_no_mistake() {
    let master = json!({"key": "node-role.kubernetes.io/master", "operator": "Exists"});
    let fixture = Fixture::with(json!({ "tolerations": [master] }));
    let fixture = fixture.taint("node-role.kubernetes.io/control-plane", "", "NoSchedule");
    assert!(notes(&fixture).is_empty());
    let other = json!({"key": "dedicated", "value": "gpu"});
    assert!(notes(&toleration(other)).is_empty());
    // Every daemon pod tolerates this one with the effect NoExecute alone.
    let fixture = Fixture::new().taint("node.kubernetes.io/not-ready", "", "NoSchedule");
    assert!(notes(&fixture).is_empty());
}

#[test]
fn a_misspelt_node_name() {
    let mut fixture = Fixture::with(json!({"nodeName": "wroker"}));
    for node in &mut fixture.0.nodes {
        node.view.name = format!("worker-{}", node.view.name).into();
    }
    fixture.0.nodes[0].view.name = "worker".into();
    let message = "spec.nodeName of the template is wroker, which no node is: did you mean worker?";
    check(&fixture, "typo", message, false);
}

//! Node objects and conditions, as tables.

use k8s_openapi::api::core::v1;
use kube::ResourceExt as _;

use super::*;
use crate::scenario::Scenario;

const NOW: &str = "2026-01-02T03:04:05Z";

#[test]
fn a_node_can_be_found_by_its_labels_and_is_ready() {
    let mut simulation = Simulation::new(3);
    simulation.labels.insert("rack".to_owned(), "a".to_owned());
    let made = object(&simulation, 3, "boot", NOW);
    let typed: v1::Node = serde_json::from_value(made.clone()).unwrap();
    assert_eq!(typed.labels()["kubernetes.io/hostname"], "sim-3");
    assert_eq!(typed.labels()["rack"], "a");
    assert_eq!(made["status"]["addresses"][0]["address"], "172.16.0.3");
    let ready = &made["status"]["conditions"][3];
    assert_eq!(
        (&ready["type"], &ready["status"]),
        (&json!("Ready"), &json!("True"))
    );
    assert_eq!(ready["lastTransitionTime"], NOW);
    assert_eq!(typed.spec.unwrap().pod_cidr, None, "nodes may not say so");
}

#[test]
fn a_scenario_sets_labels_taints_and_capacity() {
    let rules = "nodes:\n- {zones: [a, b], labels: {disk: slow}, capacity: {pods: 20, x/gpu: 2}}\n\
                 - {name: '*-3', labels: {disk: fast}, taints: [{key: k, effect: NoExecute}]}\n";
    let mut simulation = Simulation::new(3);
    simulation.scenario = Scenario::parse(rules).unwrap();
    let (second, third) = (
        object(&simulation, 2, "boot", NOW),
        object(&simulation, 3, "boot", NOW),
    );
    let label = |node: &Value, key: &str| node["metadata"]["labels"][key].clone();
    assert_eq!(label(&second, "topology.kubernetes.io/zone"), "a");
    assert_eq!(label(&third, "topology.kubernetes.io/zone"), "b");
    assert_eq!(
        (label(&second, "disk"), label(&third, "disk")),
        (json!("slow"), json!("fast"))
    );
    assert_eq!(third["spec"]["taints"][0]["effect"], "NoExecute");
    assert!(second["spec"].get("taints").is_none());
    let capacity = &third["status"]["allocatable"];
    assert_eq!(
        (&capacity["pods"], &capacity["x/gpu"]),
        (&json!("20"), &json!("2"))
    );
}

#[test]
fn conditions_that_others_changed_are_found() {
    let status = json!({"conditions": [
        {"type": "MemoryPressure", "status": "Unknown"}, {"type": "DiskPressure", "status": "False"},
        {"type": "PIDPressure", "status": "False"}, {"type": "Ready", "status": "Unknown"}]});
    let changed = changed_conditions(&serde_json::from_value(status).unwrap());
    let expected = [ConditionType::MemoryPressure, ConditionType::Ready];
    assert_eq!(changed, expected);
    let reported = conditions(&changed, NOW);
    assert_eq!(reported[0]["lastTransitionTime"], NOW);
    assert!(reported[1].get("lastTransitionTime").is_none());
}
